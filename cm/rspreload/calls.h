#ifndef CM_RSPRELOAD_CALLS_H_
#define CM_RSPRELOAD_CALLS_H_

#include <dlfcn.h>
#include <poll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>

#define WEFT_PRELOAD_EXPORT extern "C" __attribute__((visibility("default")))

namespace weft::rspreload {

// The C library's function that ours replaces: Next<decltype(&read)>("read").
template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}
#define WEFT_NEXT(name) \
  static const auto next = ::weft::rspreload::Next<decltype(&::name)>(#name)

// The functions of rdma/rsocket.h. They come from the librdmacm.so.1 in the directory above this library's, or else
// from the one that the program finds.
struct Rsockets {
  int (*socket)(int, int, int);
  int (*bind)(int, const sockaddr*, socklen_t);
  int (*listen)(int, int);
  int (*accept)(int, sockaddr*, socklen_t*);
  int (*connect)(int, const sockaddr*, socklen_t);
  int (*shutdown)(int, int);
  int (*close)(int);
  ssize_t (*recvfrom)(int, void*, size_t, int, sockaddr*, socklen_t*);
  ssize_t (*recvmsg)(int, msghdr*, int);
  ssize_t (*sendto)(int, const void*, size_t, int, const sockaddr*, socklen_t);
  ssize_t (*sendmsg)(int, const msghdr*, int);
  ssize_t (*readv)(int, const iovec*, int);
  ssize_t (*writev)(int, const iovec*, int);
  int (*poll)(pollfd*, nfds_t, int);
  int (*getpeername)(int, sockaddr*, socklen_t*);
  int (*getsockname)(int, sockaddr*, socklen_t*);
  int (*setsockopt)(int, int, int, const void*, socklen_t);
  int (*getsockopt)(int, int, int, void*, socklen_t*);
  int (*fcntl)(int, int, ...);

  // nullptr: there are none; an error was printed to stderr once.
  static const Rsockets* Get();
};

}  // namespace weft::rspreload

#endif  // CM_RSPRELOAD_CALLS_H_
