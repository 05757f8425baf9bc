// UBSan finds out whether an object's table of virtual functions can be read by writing it into a new pipe; where there
// is no descriptor for one, the object "has an invalid vptr". Its pipes are beyond the limit that a test has set: the soft one is
// raised for a moment, and for a hard one there are pipes from before. Nothing of Weft's calls pipe(), but pipe2().
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "tests/hostile/no_descriptors/limit.h"

#ifdef __SANITIZE_ADDRESS__
namespace {

constexpr int kFirstNumber = 512, kPipes = 32;  // UBSan keeps what it found out of an object's type
int g_pipes[kPipes][2];
int g_left = 0;

void KeepPipes() {
  for (; g_left < kPipes; ++g_left) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    for (int i = 0; i < 2; ++i) {
      g_pipes[g_left][i] = fcntl(ends[i], F_DUPFD_CLOEXEC, kFirstNumber);
      close(ends[i]);
    }
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int pipe(int ends[2]) noexcept {
  if (pipe2(ends, 0) == 0) return 0;
  rlimit limit{};
  if (errno != EMFILE || getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
  if (limit.rlim_cur == limit.rlim_max && g_left > 0) {
    --g_left;
    ends[0] = g_pipes[g_left][0];
    ends[1] = g_pipes[g_left][1];
    return 0;
  }
  const rlimit more{limit.rlim_max, limit.rlim_max};
  if (setrlimit(RLIMIT_NOFILE, &more) != 0) return -1;
  const int result = pipe2(ends, 0);
  setrlimit(RLIMIT_NOFILE, &limit);
  return result;
}
#endif

void LowerDescriptorLimit(unsigned long count) {
#ifdef __SANITIZE_ADDRESS__
  KeepPipes();
#endif
  const rlimit limit{count, count};
  setrlimit(RLIMIT_NOFILE, &limit);
}
