#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <atomic>

#include "preload/interpose.h"

// Asking about files: stat in all its forms, access.
namespace weft::preload {
namespace {

constexpr mode_t kNodeMode = S_IFCHR | 0666;

// A device node of the tree is shown as the character device that it stands for.
int Shown(int result, struct stat* status) {
  if (result != 0 || !IsNode(*status)) return result;
  status->st_rdev = static_cast<dev_t>(status->st_mtim.tv_sec);
  status->st_mode = kNodeMode;
  status->st_mtim = status->st_atim = status->st_ctim;
  return result;
}

#if defined(__x86_64__)
constexpr int kStatVersion = 1;
#else
constexpr int kStatVersion = 0;
#endif

// The function that would have been called without us. Before glibc 2.33 there was only `old`, which takes the version of the structure: stat and the
// like were parts of each program that called it.
struct NextStatus {
  std::atomic<void*> function{nullptr}, old{nullptr};
};

template <typename... Arguments>
int CallNext(NextStatus& next, const char* name, const char* old_name, Arguments... arguments) {
  void* old = next.old.load(std::memory_order_relaxed);
  if (old == nullptr) [[likely]] {
    if (void* function = Next(next.function, name)) return reinterpret_cast<int (*)(Arguments...)>(function)(arguments...);
    old = Next(next.old, old_name);
  }
  return reinterpret_cast<int (*)(int, Arguments...)>(old)(kStatVersion, arguments...);
}

// struct stat64 is struct stat where off_t has 64 bits.
static_assert(sizeof(off_t) == 8);

WEFT_INTERPOSE(int, stat, const char* path, struct stat* status) {
  static constinit NextStatus next;
  return Redirected(AT_FDCWD, path, [status](int, const char* to, Place) { return Shown(CallNext(next, "stat", "__xstat", to, status), status); });
}
WEFT_INTERPOSE(int, stat64, const char* path, struct stat* status) {
  static constinit NextStatus next;
  return Redirected(AT_FDCWD, path, [status](int, const char* to, Place) { return Shown(CallNext(next, "stat64", "__xstat64", to, status), status); });
}
WEFT_INTERPOSE(int, lstat, const char* path, struct stat* status) {
  static constinit NextStatus next;
  return Redirected(AT_FDCWD, path, [status](int, const char* to, Place) { return Shown(CallNext(next, "lstat", "__lxstat", to, status), status); });
}
WEFT_INTERPOSE(int, lstat64, const char* path, struct stat* status) {
  static constinit NextStatus next;
  return Redirected(AT_FDCWD, path, [status](int, const char* to, Place) { return Shown(CallNext(next, "lstat64", "__lxstat64", to, status), status); });
}
WEFT_INTERPOSE(int, fstatat, int dirfd, const char* path, struct stat* status, int flags) {
  static constinit NextStatus next;
  return Redirected(dirfd, path, [status, flags](int from, const char* to, Place) {
    return Shown(CallNext(next, "fstatat", "__fxstatat", from, to, status, flags), status);
  });
}
WEFT_INTERPOSE(int, fstatat64, int dirfd, const char* path, struct stat* status, int flags) {
  static constinit NextStatus next;
  return Redirected(dirfd, path, [status, flags](int from, const char* to, Place) {
    return Shown(CallNext(next, "fstatat64", "__fxstatat64", from, to, status, flags), status);
  });
}
WEFT_INTERPOSE(int, fstat, int fd, struct stat* status) {
  static constinit NextStatus next;
  return Shown(CallNext(next, "fstat", "__fxstat", fd, status), status);
}
WEFT_INTERPOSE(int, fstat64, int fd, struct stat* status) {
  static constinit NextStatus next;
  return Shown(CallNext(next, "fstat64", "__fxstat64", fd, status), status);
}

// Programs that were linked before glibc 2.33; the first argument is the version of the structure, of which there is one.
WEFT_INTERPOSE(int, __xstat, int, const char* path, struct stat* status) { return weft_stat(path, status); }
WEFT_INTERPOSE(int, __xstat64, int, const char* path, struct stat* status) { return weft_stat(path, status); }
WEFT_INTERPOSE(int, __lxstat, int, const char* path, struct stat* status) { return weft_lstat(path, status); }
WEFT_INTERPOSE(int, __lxstat64, int, const char* path, struct stat* status) { return weft_lstat(path, status); }
WEFT_INTERPOSE(int, __fxstat, int, int fd, struct stat* status) { return weft_fstat(fd, status); }
WEFT_INTERPOSE(int, __fxstat64, int, int fd, struct stat* status) { return weft_fstat(fd, status); }
WEFT_INTERPOSE(int, __fxstatat, int, int dirfd, const char* path, struct stat* status, int flags) {
  return weft_fstatat(dirfd, path, status, flags);
}
WEFT_INTERPOSE(int, __fxstatat64, int, int dirfd, const char* path, struct stat* status, int flags) {
  return weft_fstatat(dirfd, path, status, flags);
}

WEFT_INTERPOSE(int, statx, int dirfd, const char* path, int flags, unsigned mask, struct statx* status) {
  return Redirected(dirfd, path, [=](int from, const char* to, Place) {
    const int result = next_statx()(from, to, flags, mask | STATX_BASIC_STATS, status);
    if (result != 0) return result;
    struct stat same = {};
    same.st_mode = status->stx_mode;
    same.st_size = static_cast<off_t>(status->stx_size);
    same.st_dev = makedev(status->stx_dev_major, status->stx_dev_minor);
    if (!IsNode(same)) return result;
    const auto number = static_cast<dev_t>(status->stx_mtime.tv_sec);
    status->stx_rdev_major = major(number);
    status->stx_rdev_minor = minor(number);
    status->stx_mode = static_cast<decltype(status->stx_mode)>(kNodeMode);
    status->stx_mtime = status->stx_atime = status->stx_ctime;
    return result;
  });
}

WEFT_INTERPOSE(int, access, const char* path, int mode) {
  return Redirected(AT_FDCWD, path, [mode](int, const char* to, Place) { return next_access()(to, mode); });
}
WEFT_INTERPOSE(int, eaccess, const char* path, int mode) {
  return Redirected(AT_FDCWD, path, [mode](int, const char* to, Place) { return next_eaccess()(to, mode); });
}
WEFT_INTERPOSE(int, euidaccess, const char* path, int mode) {
  return Redirected(AT_FDCWD, path, [mode](int, const char* to, Place) { return next_euidaccess()(to, mode); });
}
WEFT_INTERPOSE(int, faccessat, int dirfd, const char* path, int mode, int flags) {
  return Redirected(dirfd, path, [mode, flags](int from, const char* to, Place) { return next_faccessat()(from, to, mode, flags); });
}

}  // namespace
}  // namespace weft::preload
