#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/interpose.h"

// Opening files.
namespace weft::preload {
namespace {

bool Writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0; }

// A file of the tree that a program would write, as the kernel answers for an attribute of /sys; 0: it is no file of the tree (a link led
// out of it), so the kernel decides.
int RefusalToWrite(const char* path, int flags) {
  struct stat status, root;
  if (syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0) != 0) return (flags & O_CREAT) != 0 && errno == ENOENT ? EACCES : errno;
  char root_path[kMaxRoot];
  if (!AskForRoot(root_path) || syscall(SYS_newfstatat, AT_FDCWD, root_path, &root, 0) != 0) return EACCES;
  if (status.st_dev != root.st_dev) return 0;
  return S_ISDIR(status.st_mode) ? EISDIR : EACCES;
}

// call(dirfd, path, flags) with what the place allows. A device node opens, but there is no driver behind it: what is read, written or asked
// of it fails, since the file is open for reading only and is none.
template <typename Call>
int Open(int dirfd, const char* path, int flags, Call call) {
  return Redirected(dirfd, path, [&](int to_dirfd, const char* to_path, Place place) -> int {
    if (place == Place::kDevice) flags &= O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_DIRECTORY | O_PATH;
    if (place == Place::kSys && Writes(flags)) {
      if (const int refusal = RefusalToWrite(to_path, flags); refusal != 0) {
        errno = refusal;
        return -1;
      }
    }
    return call(to_dirfd, to_path, flags);
  });
}

// The program's third argument, which is there only when a file may be made.
#define WEFT_MODE(flags)                                        \
  mode_t mode = 0;                                              \
  if (((flags) & O_CREAT) != 0 || ((flags) & O_TMPFILE) == O_TMPFILE) { \
    va_list arguments;                                          \
    va_start(arguments, flags);                                 \
    mode = va_arg(arguments, mode_t);                           \
    va_end(arguments);                                          \
  }

int ReadFlags(const char* mode) {
  const int access = strchr(mode, '+') != nullptr ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
  return access | (mode[0] == 'r' ? 0 : O_CREAT);
}

template <typename Call>
FILE* OpenStream(const char* path, const char* mode, Call call) {
  return Redirected(AT_FDCWD, path, [&](int, const char* to_path, Place place) -> FILE* {
    if (place == Place::kDevice) return call(to_path, "r");
    if (place == Place::kSys && mode != nullptr && Writes(ReadFlags(mode))) {
      if (const int refusal = RefusalToWrite(to_path, ReadFlags(mode)); refusal != 0) {
        errno = refusal;
        return nullptr;
      }
    }
    return call(to_path, mode);
  });
}

WEFT_INTERPOSE(int, open, const char* path, int flags, ...) {
  WEFT_MODE(flags)
  return Open(AT_FDCWD, path, flags, [mode](int, const char* to, int how) { return next_open()(to, how, mode); });
}
WEFT_INTERPOSE(int, open64, const char* path, int flags, ...) {
  WEFT_MODE(flags)
  return Open(AT_FDCWD, path, flags, [mode](int, const char* to, int how) { return next_open64()(to, how, mode); });
}
WEFT_INTERPOSE(int, openat, int dirfd, const char* path, int flags, ...) {
  WEFT_MODE(flags)
  return Open(dirfd, path, flags, [mode](int from, const char* to, int how) { return next_openat()(from, to, how, mode); });
}
WEFT_INTERPOSE(int, openat64, int dirfd, const char* path, int flags, ...) {
  WEFT_MODE(flags)
  return Open(dirfd, path, flags, [mode](int from, const char* to, int how) { return next_openat64()(from, to, how, mode); });
}
WEFT_INTERPOSE(int, creat, const char* path, mode_t mode) {
  return Open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, [mode](int, const char* to, int how) {
    return (how & O_CREAT) != 0 ? next_creat()(to, mode) : static_cast<int>(syscall(SYS_openat, AT_FDCWD, to, how, 0));
  });
}
WEFT_INTERPOSE(int, creat64, const char* path, mode_t mode) { return weft_creat(path, mode); }

// What _FORTIFY_SOURCE makes of the calls without a mode.
WEFT_INTERPOSE(int, __open_2, const char* path, int flags) {
  return Open(AT_FDCWD, path, flags, [](int, const char* to, int how) { return next___open_2()(to, how); });
}
WEFT_INTERPOSE(int, __open64_2, const char* path, int flags) {
  return Open(AT_FDCWD, path, flags, [](int, const char* to, int how) { return next___open64_2()(to, how); });
}
WEFT_INTERPOSE(int, __openat_2, int dirfd, const char* path, int flags) {
  return Open(dirfd, path, flags, [](int from, const char* to, int how) { return next___openat_2()(from, to, how); });
}
WEFT_INTERPOSE(int, __openat64_2, int dirfd, const char* path, int flags) {
  return Open(dirfd, path, flags, [](int from, const char* to, int how) { return next___openat64_2()(from, to, how); });
}

WEFT_INTERPOSE(FILE*, fopen, const char* path, const char* mode) {
  return OpenStream(path, mode, [](const char* to, const char* how) { return next_fopen()(to, how); });
}
WEFT_INTERPOSE(FILE*, fopen64, const char* path, const char* mode) {
  return OpenStream(path, mode, [](const char* to, const char* how) { return next_fopen64()(to, how); });
}
WEFT_INTERPOSE(FILE*, freopen, const char* path, const char* mode, FILE* stream) {
  return OpenStream(path, mode, [stream](const char* to, const char* how) { return next_freopen()(to, how, stream); });
}
WEFT_INTERPOSE(FILE*, freopen64, const char* path, const char* mode, FILE* stream) {
  return OpenStream(path, mode, [stream](const char* to, const char* how) { return next_freopen64()(to, how, stream); });
}

#undef WEFT_MODE

}  // namespace
}  // namespace weft::preload
