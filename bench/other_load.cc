#include "bench/other_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace weft::bench {
namespace {

// CPU seconds that the whole machine has spent on anything, the host's share taken from us included.
double BusySeconds() {
  std::ifstream stat("/proc/stat");
  std::string label;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, softirq = 0, steal = 0;
  stat >> label >> user >> nice >> system >> idle >> wait >> irq >> softirq >> steal;
  return (user + nice + system + irq + softirq + steal) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double OwnSeconds() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
      seconds += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    }
  }
  return seconds;
}

}  // namespace

OtherLoad::OtherLoad() : start_(Clock::now()), busy_(BusySeconds()), own_(OwnSeconds()) {}

double OtherLoad::Cpus() const {
  const double others = (BusySeconds() - busy_) - (OwnSeconds() - own_);
  return std::max(0.0, others / Seconds(Clock::now() - start_));
}

}  // namespace weft::bench
