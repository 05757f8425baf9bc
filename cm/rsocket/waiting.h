#ifndef CM_RSOCKET_WAITING_H_
#define CM_RSOCKET_WAITING_H_

#include <chrono>
#include <optional>

namespace weft::rsocket {

using Clock = std::chrono::steady_clock;
using Deadline = std::optional<Clock::time_point>;  // nullopt: never

// A thread that waits for sockets. A thread that processes a socket's queues may find there what another thread waits
// for, and consume the event that would have woken it. It then wakes the waiting thread through this descriptor.
class Waiter {
 public:
  // The calling thread's. fd() is -1 if the process is out of descriptors.
  static Waiter& Mine();

  int fd() const { return fd_; }
  void Wake();
  void Clear();  // clears the wake-up

 private:
  Waiter();
  ~Waiter();
  int fd_ = -1;
  int generation_ = 0;  // number of forks before it was made
};

// Says that `waiter` waits for one socket: an element of the socket's list.
struct WaitNode {
  Waiter* waiter = nullptr;
  WaitNode* previous = nullptr;
  WaitNode* next = nullptr;
  bool listed = false;
};

// Guarded by its socket's lock.
class WaitList {
 public:
  void Add(WaitNode& node);
  void Remove(WaitNode& node);
  // Wakes all waiters except `except`.
  void WakeAll(const Waiter* except = nullptr);
  bool empty() const { return first_ == nullptr; }

 private:
  WaitNode* first_ = nullptr;
};

// A timeout for poll(2): milliseconds until `deadline`, rounded up; -1: for ever.
int PollTimeout(const Deadline& deadline);
inline bool Passed(const Deadline& deadline) { return deadline && Clock::now() >= *deadline; }

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_WAITING_H_
