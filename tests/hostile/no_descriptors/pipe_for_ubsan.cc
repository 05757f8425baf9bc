// UBSan finds out whether an object's table of virtual functions can be read by writing it into a new pipe; where there
// is no descriptor for one, the object "has an invalid vptr". Its pipes are beyond the limit that a test has set, also beyond
// the hard one where root runs it. Nothing of Weft's calls pipe(), but pipe2().
#ifdef __SANITIZE_ADDRESS__

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

constexpr rlim_t kRoom = 4096;

extern "C" __attribute__((visibility("default"))) int pipe(int ends[2]) noexcept {
  if (pipe2(ends, 0) == 0) return 0;
  rlimit limit{};
  if (errno != EMFILE || getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
  const rlim_t room = std::max<rlim_t>(limit.rlim_max, geteuid() == 0 ? kRoom : 0);
  const rlimit more{room, room};
  if (setrlimit(RLIMIT_NOFILE, &more) != 0) return -1;
  const int result = pipe2(ends, 0);
  setrlimit(RLIMIT_NOFILE, &limit);
  return result;
}

#endif
