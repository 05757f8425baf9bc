#include <stdlib.h>
#include <unistd.h>

#include "preload/interpose.h"

// Names of files: links, canonical paths, the working directory. The tree's own place is not shown.
namespace weft::preload {
namespace {

ssize_t ShownLink(char* buffer, ssize_t length) {
  return length <= 0 ? length : static_cast<ssize_t>(ShowAsProgramKnows(buffer, static_cast<size_t>(length)));
}

char* ShownPath(char* path) {
  if (path != nullptr) ShowAsProgramKnows(path);
  return path;
}

WEFT_INTERPOSE(ssize_t, readlink, const char* path, char* buffer, size_t size) {
  return Redirected(AT_FDCWD, path, [=](int, const char* to, Place) { return ShownLink(buffer, next_readlink()(to, buffer, size)); });
}
WEFT_INTERPOSE(ssize_t, readlinkat, int dirfd, const char* path, char* buffer, size_t size) {
  return Redirected(dirfd, path, [=](int from, const char* to, Place) {
    return ShownLink(buffer, next_readlinkat()(from, to, buffer, size));
  });
}
WEFT_INTERPOSE(ssize_t, __readlink_chk, const char* path, char* buffer, size_t size, size_t room) {
  return Redirected(AT_FDCWD, path, [=](int, const char* to, Place) {
    return ShownLink(buffer, next___readlink_chk()(to, buffer, size, room));
  });
}
WEFT_INTERPOSE(ssize_t, __readlinkat_chk, int dirfd, const char* path, char* buffer, size_t size, size_t room) {
  return Redirected(dirfd, path, [=](int from, const char* to, Place) {
    return ShownLink(buffer, next___readlinkat_chk()(from, to, buffer, size, room));
  });
}

WEFT_INTERPOSE(char*, realpath, const char* path, char* resolved) {
  return Redirected(AT_FDCWD, path, [=](int, const char* to, Place) { return ShownPath(next_realpath()(to, resolved)); });
}
WEFT_INTERPOSE(char*, __realpath_chk, const char* path, char* resolved, size_t room) {
  return Redirected(AT_FDCWD, path, [=](int, const char* to, Place) { return ShownPath(next___realpath_chk()(to, resolved, room)); });
}
WEFT_INTERPOSE(char*, canonicalize_file_name, const char* path) {
  return Redirected(AT_FDCWD, path, [=](int, const char* to, Place) { return ShownPath(next_canonicalize_file_name()(to)); });
}

WEFT_INTERPOSE(int, chdir, const char* path) {
  return Redirected(AT_FDCWD, path, [](int, const char* to, Place) { return next_chdir()(to); });
}
WEFT_INTERPOSE(char*, getcwd, char* buffer, size_t size) { return ShownPath(next_getcwd()(buffer, size)); }
WEFT_INTERPOSE(char*, __getcwd_chk, char* buffer, size_t size, size_t room) { return ShownPath(next___getcwd_chk()(buffer, size, room)); }
WEFT_INTERPOSE(char*, get_current_dir_name, void) { return ShownPath(next_get_current_dir_name()()); }

}  // namespace
}  // namespace weft::preload
