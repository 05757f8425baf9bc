#include <sys/types.h>

#include "preload/interpose.h"

// Extended attributes, which `ls -l` looks for: the files have none, but must be there.
namespace weft::preload {
namespace {

WEFT_INTERPOSE(ssize_t, getxattr, const char* path, const char* name, void* value, size_t size) {
  return Redirected(AT_FDCWD, path, [=](int, const char* to, Place) { return next_getxattr()(to, name, value, size); });
}
WEFT_INTERPOSE(ssize_t, lgetxattr, const char* path, const char* name, void* value, size_t size) {
  return Redirected(AT_FDCWD, path, [=](int, const char* to, Place) { return next_lgetxattr()(to, name, value, size); });
}
WEFT_INTERPOSE(ssize_t, listxattr, const char* path, char* list, size_t size) {
  return Redirected(AT_FDCWD, path, [=](int, const char* to, Place) { return next_listxattr()(to, list, size); });
}
WEFT_INTERPOSE(ssize_t, llistxattr, const char* path, char* list, size_t size) {
  return Redirected(AT_FDCWD, path, [=](int, const char* to, Place) { return next_llistxattr()(to, list, size); });
}

}  // namespace
}  // namespace weft::preload
