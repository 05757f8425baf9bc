#ifndef BENCH_CONTROL_CHANNEL_H_
#define BENCH_CONTROL_CHANNEL_H_

#include <optional>

#include "bench/message.h"

namespace weft::bench {

// One end of the socket between driver and worker, which it owns. Messages arrive whole and in order.
class ControlChannel {
 public:
  explicit ControlChannel(int fd) : fd_(fd) {}
  ~ControlChannel();
  ControlChannel(const ControlChannel&) = delete;
  ControlChannel& operator=(const ControlChannel&) = delete;

  int fd() const { return fd_; }
  // Failure: the other end is gone.
  void Send(const Message& message);
  // Sleeps until a message arrives. nullopt: the other end is gone. Failure: none arrived in `timeout_ms` (-1: for
  // ever).
  std::optional<Message> Receive(int timeout_ms = -1);

 private:
  const int fd_;
};

}  // namespace weft::bench

#endif  // BENCH_CONTROL_CHANNEL_H_
