#ifndef CM_EXPORT_H_
#define CM_EXPORT_H_

#include <cerrno>

// Exports a function of librdmacm.so.1 (everything is compiled with hidden symbols). librdmacm.map has its version.
#define WEFT_CM_EXPORT extern "C" __attribute__((visibility("default")))

namespace weft::cm {

// The result of an rdma_* function: 0, or -1 with errno. `error` is 0 or a positive errno.
inline int Return(int error) {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

}  // namespace weft::cm

#endif  // CM_EXPORT_H_
