#ifndef CM_RSOCKET_SOCKET_H_
#define CM_RSOCKET_SOCKET_H_

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <atomic>
#include <memory>

#include "cm/rsocket/waiting.h"

namespace weft::rsocket {

// An rsocket of either type, as the functions of rdma/rsocket.h use it. Functions return 0 or a positive errno; those
// that return ssize_t, a count or a negative errno. Thread safe; one sender and one receiver do not wait for each
// other.
class Socket {
 public:
  explicit Socket(int domain) : domain_(domain) {}
  virtual ~Socket() = default;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int domain() const { return domain_; }
  // The number of the socket: a descriptor that only reserves the number and is never read or written.
  int fd() const { return fd_; }
  void set_fd(int fd) { fd_ = fd; }
  bool nonblocking() const { return nonblocking_; }
  void set_nonblocking(bool on) { nonblocking_ = on; }

  virtual int type() const = 0;
  virtual int Bind(const sockaddr* address, socklen_t length) = 0;
  virtual int Listen(int backlog) = 0;
  // `accepted` has no number yet.
  virtual int Accept(std::shared_ptr<Socket>* accepted) = 0;
  virtual int Connect(const sockaddr* address, socklen_t length) = 0;
  virtual int Shutdown(int how) = 0;
  // Threads that wait in the socket get EBADF. This is the last call, except for calls in progress. Returns false if
  // the peer has not received everything that was sent; Linger() must then be called from time to time until it returns
  // true.
  virtual bool Close() = 0;
  // Does not wait. Returns true if the socket may be destroyed.
  virtual bool Linger() { return true; }
  // The process ends, and the program has not closed the socket: does what the peer should notice of Close. Does not
  // wait. Returns false if it must be called again, as long as there is time.
  virtual bool Farewell() = 0;

  virtual ssize_t Send(const iovec* pieces, int count, int flags, const sockaddr* to, socklen_t to_length) = 0;
  // `from` may be nullptr. MSG_TRUNC is set in `*out_flags` if a datagram was cut.
  virtual ssize_t Receive(const iovec* pieces, int count, int flags, sockaddr_storage* from, int* out_flags) = 0;
  // Gets the address of the peer, or with `peer` false the socket's own. Weft itself uses it, too.
  virtual int Name(bool peer, sockaddr_storage* name) = 0;

  virtual int SetOption(int level, int name, const void* value, socklen_t length) = 0;
  virtual int GetOption(int level, int name, void* value, socklen_t* length) = 0;

  virtual off_t Map(void* buffer, size_t length, int protection, off_t offset) = 0;  // or a negative errno
  virtual int Unmap(void* buffer, size_t length) = 0;
  virtual ssize_t WriteMapped(const void* from, size_t count, off_t offset, int flags) = 0;

  // Which of `events`, POLLERR and POLLHUP (poll(2)) are true now.
  virtual short Poll(short events) = 0;
  // Like Poll(). If none is true, puts `node` on the socket's list, and returns the descriptors (up to kWaitFds; others
  // are -1) that become readable when something may have changed. EndWait removes the node, and consumes what made them
  // readable.
  static constexpr int kWaitFds = 2;
  virtual short BeginWait(short events, WaitNode& node, int fds[kWaitFds]) = 0;
  virtual void EndWait(WaitNode& node) = 0;

 protected:
  const int domain_;
  std::atomic<int> fd_{-1};
  std::atomic<bool> nonblocking_{false};
};

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_SOCKET_H_
