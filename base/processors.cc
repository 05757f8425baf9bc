#include "base/processors.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

namespace weft {

int ProcessorCount() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return CPU_COUNT(&allowed);
  return static_cast<int>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));  // more of them than the set has room for
}

bool OnlyOneProcessor() {
  static const bool only_one = ProcessorCount() == 1;
  return only_one;
}

}  // namespace weft
