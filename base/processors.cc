#include "base/processors.h"

#include <sched.h>

namespace weft {
namespace {

// More than 1024 of them: the call fails, and there are several.
bool Ask() {
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && CPU_COUNT(&allowed) == 1;
}

}  // namespace

bool OnlyOneProcessor() {
  static const bool only_one = Ask();
  return only_one;
}

}  // namespace weft
