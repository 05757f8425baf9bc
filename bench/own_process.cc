#include "bench/own_process.h"

#include <sched.h>
#include <sys/resource.h>

#include <fstream>
#include <string>

#include "bench/message.h"

namespace weft::bench {

void UseHalfOfTheCpus(int half) {
  cpu_set_t all, ours;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  CPU_ZERO(&ours);
  const int count = CPU_COUNT(&all);
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &all) && seen++ * 2 / count == half) CPU_SET(cpu, &ours);
  }
  if (CPU_COUNT(&ours) > 0) sched_setaffinity(0, sizeof ours, &ours);
}

// A process may hold as many connections as the administrator allows.
void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Exact, unlike VmRSS, which the kernel rounds per CPU.
int64_t ResidentBytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string word; rollup >> word;) {
    int64_t kib = 0;
    if (word == "Rss:" && rollup >> kib) return kib * 1024;
  }
  throw Failure("no Rss in /proc/self/smaps_rollup");
}

}  // namespace weft::bench
