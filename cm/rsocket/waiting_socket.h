#ifndef CM_RSOCKET_WAITING_SOCKET_H_
#define CM_RSOCKET_WAITING_SOCKET_H_

#include <sys/time.h>

#include <cstdint>
#include <mutex>

#include "cm/rsocket/socket.h"
#include "cm/rsocket/waiting.h"

namespace weft::rsocket {

// What the types of rsockets have in common: the lock, waiting for the socket, and options of socket(7).
//
// No wake-up is lost: a waiting thread puts itself on the list, asks for an event (Arm), looks once more (Drive), and only then sleeps.
// Who takes an event or completions that it might have slept for wakes it through its own descriptor.
class WaitingSocket : public Socket {
 public:
  short Poll(short events) final;
  short BeginWait(short events, WaitNode& node, int fds[kWaitFds]) final;
  void EndWait(WaitNode& node) final;

 protected:
  using Lock = std::unique_lock<std::mutex>;

  using Socket::Socket;

  // All of these with mutex_ held.

  // Looks at what came; wakes others that wait if something may have changed for them.
  virtual void Drive() = 0;
  // Lets wait_fd() become readable with the next thing that comes.
  virtual void Arm() = 0;
  // Takes what made wait_fd() readable; whoever else waits there is woken and arms it again.
  virtual void TakeEvents() = 0;
  virtual int wait_fd() const = 0;
  // What of `wanted`, POLLERR, POLLHUP is the case.
  virtual short Events(short wanted) const = 0;

  // Until `ready`, a function of a derived class: 0, EAGAIN when the deadline passed, EINTR when a signal came, EMFILE. Gives up the lock
  // while it waits.
  template <typename Derived>
  int Await(Lock& lock, const Deadline& deadline, bool (Derived::*ready)() const) {
    return AwaitCondition(lock, deadline, static_cast<Condition>(ready));
  }
  // Of a call with `flags` on a socket with SO_RCVTIMEO or SO_SNDTIMEO `timeout`.
  Deadline DeadlineOf(int flags, const timeval& timeout) const;

  mutable std::mutex mutex_;  // guards what follows and what derived classes say
  bool closing_ = false;      // rclose
  WaitList waiters_;
  timeval receive_timeout_{0, 0}, send_timeout_{0, 0};

 private:
  using Condition = bool (WaitingSocket::*)() const;
  int AwaitCondition(Lock& lock, const Deadline& deadline, Condition ready);
};

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_WAITING_SOCKET_H_
