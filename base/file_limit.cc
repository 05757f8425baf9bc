#include "base/file_limit.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weft {

rlimit RaiseFileLimit() {
  static const rlimit before = [] {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return limit;
    rlimit raised = limit;
    raised.rlim_cur = std::min(raised.rlim_max, kMostFiles);
    if (raised.rlim_cur > limit.rlim_cur) setrlimit(RLIMIT_NOFILE, &raised);  // where it fails the old one stays
    return limit;
  }();
  return before;
}

bool IsShortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM || error == EADDRNOTAVAIL;
}

bool MayMakeFile(uint64_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= bytes;
}

bool IsToSpare(int fd) {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 && static_cast<rlim_t>(fd) < limit.rlim_cur / 4;
}

std::string DescribeShortage(int error) {
  std::string text = std::strerror(error);
  rlimit limit{};
  if (error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    text += " (the limit is " + std::to_string(limit.rlim_cur) + ", see ulimit -n)";
  } else if (error == ENFILE) {
    text += " (the limit for all processes together, see /proc/sys/fs/file-max)";
  } else if (error == EADDRNOTAVAIL) {
    text += " (no port is free, see /proc/sys/net/ipv4/ip_local_port_range, or this host no longer has the address)";
  }
  return text;
}

}  // namespace weft
