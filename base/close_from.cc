#include "base/close_from.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weft {
namespace {

// What getdents64(2) writes.
struct Entry {
  uint64_t inode;
  int64_t offset;
  unsigned short length;
  unsigned char type;
  char name[1];
};
constexpr size_t kNameAt = offsetof(Entry, name);

// -1: it is not a number.
int NumberOf(const char* name) {
  int number = 0;
  for (; *name >= '0' && *name <= '9'; ++name) number = number * 10 + (*name - '0');
  return *name == '\0' ? number : -1;
}

// Without opendir(3), which allocates. False: the kernel does not list our descriptors.
bool CloseListed(int first) {
  const int list = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (list < 0) return false;
  alignas(Entry) char bytes[4096];
  for (long got; (got = syscall(SYS_getdents64, list, bytes, sizeof bytes)) > 0;) {
    for (long at = 0; at < got;) {
      Entry entry;
      std::memcpy(&entry, bytes + at, kNameAt);
      const char* const name = bytes + at + kNameAt;
      const int fd = *name == '.' ? -1 : NumberOf(name);
      if (fd >= first && fd != list) close(fd);
      at += entry.length;
    }
  }
  close(list);
  return true;
}

}  // namespace

void CloseFrom(int first) {
#ifdef __NR_close_range
  if (syscall(__NR_close_range, first, ~0u, 0) == 0) return;
#endif
  if (CloseListed(first)) return;
  constexpr rlim_t kMost = 1 << 20;  // the kernel's limit of limits (fs.nr_open) where nobody changed it
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  for (rlim_t fd = static_cast<rlim_t>(first); fd < std::min(limit.rlim_cur, kMost); ++fd) close(static_cast<int>(fd));
}

}  // namespace weft
