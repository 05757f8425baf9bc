// UBSan finds out whether an object's table of virtual functions can be read by writing it into a new pipe; where there
// is no descriptor for one, the object "has an invalid vptr". Its pipes are beyond the soft limit that a test has set. Nothing
// of Weft's calls pipe(), but pipe2().
#ifdef __SANITIZE_ADDRESS__

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

extern "C" __attribute__((visibility("default"))) int pipe(int ends[2]) noexcept {
  if (pipe2(ends, 0) == 0) return 0;
  rlimit limit{};
  if (errno != EMFILE || getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
  const rlimit more{limit.rlim_max, limit.rlim_max};
  if (setrlimit(RLIMIT_NOFILE, &more) != 0) return -1;
  const int result = pipe2(ends, 0);
  setrlimit(RLIMIT_NOFILE, &limit);
  return result;
}

#endif
