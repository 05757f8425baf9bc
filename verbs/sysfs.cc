#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "verbs/export.h"

// Files of sysfs, which programs and rdma-core's libraries read through libibverbs.

// /sys, or $SYSFS_PATH.
WEFT_VERBS_API const char* ibv_get_sysfs_path(void) {
  static const std::string* path = [] {
    const char* set = secure_getenv("SYSFS_PATH");
    auto* made = new std::string(set == nullptr || *set == '\0' ? "/sys" : set);
    while (made->size() > 1 && made->back() == '/') made->pop_back();
    return made;
  }();
  return path->c_str();
}

// The contents of `directory`/`file` without the last newline, terminated; returns their length, -1 with errno.
WEFT_VERBS_API int ibv_read_sysfs_file(const char* directory, const char* file, char* buffer, size_t size) {
  const std::string path = std::string(directory) + "/" + file;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t length = read(fd, buffer, size);
  const int error = errno;
  close(fd);
  if (length < 0) {
    errno = error;
    return -1;
  }
  if (length > 0 && buffer[length - 1] == '\n') --length;
  if (static_cast<size_t>(length) >= size) {
    errno = ENOSPC;
    return -1;
  }
  buffer[length] = '\0';
  return static_cast<int>(length);
}

// For providers with a kernel device of theirs. Ours have none, so no caller can hold a valid verbs_sysfs_dev.
WEFT_VERBS_API int weft_read_ibdev_sysfs_file(char*, size_t, void*, const char*, ...) {
  errno = EINVAL;
  return -1;
}
WEFT_PRIVATE_SYMBOL_SINCE_34(weft_read_ibdev_sysfs_file, ibv_read_ibdev_sysfs_file);
