#include <dirent.h>
#include <glob.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/interpose.h"

// Reading directories.
namespace weft::preload {
namespace {

bool MayBeNode(const char* name) { return strncmp(name, "uverbs", 6) == 0 || strcmp(name, "rdma_cm") == 0; }

// A device node's entry says that it is one, as its status does.
template <typename Entry>
Entry* Shown(DIR* directory, Entry* entry) {
  if (entry == nullptr || entry->d_type != DT_REG || !MayBeNode(entry->d_name)) [[likely]] return entry;
  const int error = errno;
  struct stat status;
  if (syscall(SYS_newfstatat, dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && IsNode(status)) {
    entry->d_type = DT_CHR;
  }
  errno = error;
  return entry;
}

using Filter = int (*)(const struct dirent*);
using Compare = int (*)(const struct dirent**, const struct dirent**);

WEFT_INTERPOSE(DIR*, opendir, const char* path) {
  return Redirected(AT_FDCWD, path, [](int, const char* to, Place) { return next_opendir()(to); });
}
WEFT_INTERPOSE(struct dirent*, readdir, DIR* directory) { return Shown(directory, next_readdir()(directory)); }
WEFT_INTERPOSE(struct dirent64*, readdir64, DIR* directory) { return Shown(directory, next_readdir64()(directory)); }

// struct dirent64 is struct dirent where off_t has 64 bits.
WEFT_INTERPOSE(int, scandir, const char* path, struct dirent*** list, Filter filter, Compare compare) {
  return Redirected(AT_FDCWD, path, [=](int, const char* to, Place) { return next_scandir()(to, list, filter, compare); });
}
WEFT_INTERPOSE(int, scandir64, const char* path, struct dirent*** list, Filter filter, Compare compare) {
  return Redirected(AT_FDCWD, path, [=](int, const char* to, Place) { return next_scandir64()(to, list, filter, compare); });
}
WEFT_INTERPOSE(int, scandirat, int dirfd, const char* path, struct dirent*** list, Filter filter, Compare compare) {
  return Redirected(dirfd, path, [=](int from, const char* to, Place) { return next_scandirat()(from, to, list, filter, compare); });
}
WEFT_INTERPOSE(int, scandirat64, int dirfd, const char* path, struct dirent*** list, Filter filter, Compare compare) {
  return Redirected(dirfd, path, [=](int from, const char* to, Place) { return next_scandirat64()(from, to, list, filter, compare); });
}

// glob's own calls do not come by here, but it takes functions of the caller's.
template <typename Next>
int GlobWithOurs(Next next, const char* pattern, int flags, int (*on_error)(const char*, int), glob_t* found) {
  if (pattern == nullptr || !MayBeOurs(pattern) || (flags & GLOB_ALTDIRFUNC) != 0) [[likely]] {
    return next(pattern, flags, on_error, found);
  }
  found->gl_opendir = [](const char* path) -> void* { return weft_opendir(path); };
  found->gl_readdir = [](void* directory) { return weft_readdir(static_cast<DIR*>(directory)); };
  found->gl_closedir = [](void* directory) { closedir(static_cast<DIR*>(directory)); };
  found->gl_stat = [](const char* path, struct stat* status) { return stat(path, status); };
  found->gl_lstat = [](const char* path, struct stat* status) { return lstat(path, status); };
  return next(pattern, flags | GLOB_ALTDIRFUNC, on_error, found);
}

WEFT_INTERPOSE(int, glob, const char* pattern, int flags, int (*on_error)(const char*, int), glob_t* found) {
  return GlobWithOurs(next_glob(), pattern, flags, on_error, found);
}
WEFT_INTERPOSE(int, glob64, const char* pattern, int flags, int (*on_error)(const char*, int), glob_t* found) {
  return GlobWithOurs(next_glob64(), pattern, flags, on_error, found);
}

}  // namespace
}  // namespace weft::preload
