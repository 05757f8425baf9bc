#ifndef CM_RSOCKET_WAITING_SOCKET_H_
#define CM_RSOCKET_WAITING_SOCKET_H_

#include <sys/time.h>

#include <cstdint>
#include <mutex>

#include "cm/rsocket/socket.h"
#include "cm/rsocket/waiting.h"

namespace weft::rsocket {

// The common parts of both types of rsockets: the lock, waiting for the socket, and the options of socket(7).
//
// No wake-up is lost: a waiting thread puts itself on the list, asks for an event (Arm), checks once more (Drive), and
// only then sleeps. A thread that consumes an event or completions for which another thread may sleep wakes that thread
// through its own descriptor.
class WaitingSocket : public Socket {
 public:
  short Poll(short events) final;
  short BeginWait(short events, WaitNode& node, int fds[kWaitFds]) final;
  void EndWait(WaitNode& node) final;

 protected:
  using Lock = std::unique_lock<std::mutex>;

  using Socket::Socket;

  // All of these require mutex_.

  // Processes what arrived. Wakes other waiting threads if something may have changed for them.
  virtual void Drive() = 0;
  // Makes wait_fd() readable when the next thing arrives.
  virtual void Arm() = 0;
  // Consumes what made wait_fd() readable. Other threads that wait there are woken and arm it again.
  virtual void TakeEvents() = 0;
  virtual int wait_fd() const = 0;
  // Which of `wanted`, POLLERR and POLLHUP are true.
  virtual short Events(short wanted) const = 0;

  // Waits until `ready`, a function of a derived class, is true. Returns 0, EAGAIN after the deadline, EINTR after a
  // signal, or EMFILE. Releases the lock while it waits.
  template <typename Derived>
  int Await(Lock& lock, const Deadline& deadline, bool (Derived::*ready)() const) {
    return AwaitCondition(lock, deadline, static_cast<Condition>(ready));
  }
  // The deadline of a call with `flags` on a socket with SO_RCVTIMEO or SO_SNDTIMEO `timeout`.
  Deadline DeadlineOf(int flags, const timeval& timeout) const;

  mutable std::mutex mutex_;  // guards the members below, and those that derived classes name
  bool closing_ = false;      // rclose
  WaitList waiters_;
  timeval receive_timeout_{0, 0}, send_timeout_{0, 0};

 private:
  using Condition = bool (WaitingSocket::*)() const;
  int AwaitCondition(Lock& lock, const Deadline& deadline, Condition ready);
};

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_WAITING_SOCKET_H_
