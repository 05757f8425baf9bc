#ifndef BENCH_OWN_PROCESS_H_
#define BENCH_OWN_PROCESS_H_

#include <cstdint>

// What a measured end changes and queries in its own process.
namespace weft::bench {

// Restricts this process to one half, 0 or 1, of the CPUs that it may use, if there are at least two: both ends on one
// CPU would not behave like two machines.
void UseHalfOfTheCpus(int half);

// Raises the limit on open files as far as the system allows.
void RaiseFileLimit();

// Resident memory of this process. Exact, unlike VmRSS, which the kernel rounds per CPU. Failure: the kernel does not
// tell.
int64_t ResidentBytes();

}  // namespace weft::bench

#endif  // BENCH_OWN_PROCESS_H_
