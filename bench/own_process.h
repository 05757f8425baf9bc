#ifndef BENCH_OWN_PROCESS_H_
#define BENCH_OWN_PROCESS_H_

#include <cstdint>

// What a measured end does to the process that it is, and asks of it.
namespace weft::bench {

// Leaves this process one half of the CPUs that it may use, 0 or 1, if there are two at least: both ends on one CPU
// would show what no two machines can.
void UseHalfOfTheCpus(int half);

// As many open files as the system lets it have.
void RaiseFileLimit();

// Of its memory. Exact, unlike VmRSS, which the kernel rounds per CPU. Failure: the kernel does not say.
int64_t ResidentBytes();

}  // namespace weft::bench

#endif  // BENCH_OWN_PROCESS_H_
