// rsockets are not supported yet: rsocket() refuses, so that no descriptor is an rsocket and every other call is told
// EBADF. rpoll and rselect take ordinary descriptors too, and serve those.
#include <fcntl.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <sys/select.h>

#include <cerrno>

#include "cm/export.h"

using weft::cm::Return;

WEFT_CM_EXPORT int rsocket(int, int, int) { return Return(EOPNOTSUPP); }
WEFT_CM_EXPORT int rbind(int, const sockaddr*, socklen_t) { return Return(EBADF); }
WEFT_CM_EXPORT int rlisten(int, int) { return Return(EBADF); }
WEFT_CM_EXPORT int raccept(int, sockaddr*, socklen_t*) { return Return(EBADF); }
WEFT_CM_EXPORT int rconnect(int, const sockaddr*, socklen_t) { return Return(EBADF); }
WEFT_CM_EXPORT int rshutdown(int, int) { return Return(EBADF); }
WEFT_CM_EXPORT int rclose(int) { return Return(EBADF); }

WEFT_CM_EXPORT ssize_t rrecv(int, void*, size_t, int) { return Return(EBADF); }
WEFT_CM_EXPORT ssize_t rrecvfrom(int, void*, size_t, int, sockaddr*, socklen_t*) { return Return(EBADF); }
WEFT_CM_EXPORT ssize_t rrecvmsg(int, msghdr*, int) { return Return(EBADF); }
WEFT_CM_EXPORT ssize_t rsend(int, const void*, size_t, int) { return Return(EBADF); }
WEFT_CM_EXPORT ssize_t rsendto(int, const void*, size_t, int, const sockaddr*, socklen_t) { return Return(EBADF); }
WEFT_CM_EXPORT ssize_t rsendmsg(int, const msghdr*, int) { return Return(EBADF); }
WEFT_CM_EXPORT ssize_t rread(int, void*, size_t) { return Return(EBADF); }
WEFT_CM_EXPORT ssize_t rreadv(int, const iovec*, int) { return Return(EBADF); }
WEFT_CM_EXPORT ssize_t rwrite(int, const void*, size_t) { return Return(EBADF); }
WEFT_CM_EXPORT ssize_t rwritev(int, const iovec*, int) { return Return(EBADF); }

WEFT_CM_EXPORT int rpoll(pollfd* fds, nfds_t nfds, int timeout) { return poll(fds, nfds, timeout); }
WEFT_CM_EXPORT int rselect(int nfds, fd_set* readfds, fd_set* writefds, fd_set* exceptfds, timeval* timeout) {
  return select(nfds, readfds, writefds, exceptfds, timeout);
}

WEFT_CM_EXPORT int rgetpeername(int, sockaddr*, socklen_t*) { return Return(EBADF); }
WEFT_CM_EXPORT int rgetsockname(int, sockaddr*, socklen_t*) { return Return(EBADF); }
WEFT_CM_EXPORT int rsetsockopt(int, int, int, const void*, socklen_t) { return Return(EBADF); }
WEFT_CM_EXPORT int rgetsockopt(int, int, int, void*, socklen_t*) { return Return(EBADF); }
WEFT_CM_EXPORT int rfcntl(int, int, ...) { return Return(EBADF); }

WEFT_CM_EXPORT off_t riomap(int, void*, size_t, int, int, off_t) { return Return(EBADF); }
WEFT_CM_EXPORT int riounmap(int, void*, size_t) { return Return(EBADF); }
WEFT_CM_EXPORT size_t riowrite(int, const void*, size_t, off_t, int) { return static_cast<size_t>(Return(EBADF)); }
