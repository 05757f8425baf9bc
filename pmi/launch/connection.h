#ifndef PMI_LAUNCH_CONNECTION_H_
#define PMI_LAUNCH_CONNECTION_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "pmi/launch/frame.h"
#include "pmi/launch/outbox.h"
#include "pmi/launch/sockets.h"
#include "transport/silent_peer.h"

namespace weft::pmi {

// Numbers of frames and of their bytes since the beginning.
struct Traffic {
  uint64_t sent = 0, sent_bytes = 0, received = 0, received_bytes = 0;
  Traffic& operator+=(const Traffic& other) {
    sent += other.sent;
    sent_bytes += other.sent_bytes;
    received += other.received;
    received_bytes += other.received_bytes;
    return *this;
  }
};

inline constexpr std::chrono::seconds kSilenceLook{5};  // between two checks of all connections

// One end of the stream of frames between mpiexec and a proxy. Owns the descriptor, and makes it non-blocking.
class Connection {
 public:
  explicit Connection(int fd);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd() const { return fd_; }
  void Send(const Frame& frame);
  const Traffic& traffic() const { return traffic_; }
  bool wants_to_write() const { return !out_.empty(); }
  size_t unsent() const { return out_.size(); }
  // Both return false if the other end is gone.
  bool Write();
  bool Read();
  std::optional<Frame> Next();
  bool broken() const { return in_.failed(); }  // the received data is not a frame
  // Ends the connection if the other end's host is gone; the connection then appears closed. Call it every few seconds.
  // For TCP sockets that ConfigureTcp() (greeting.h) has set up; on an idle connection the kernel detects it.
  void LookForPeer(std::chrono::steady_clock::time_point now);
  // Waits until all data is sent, at most `milliseconds`.
  void Drain(int milliseconds);

 private:
  const int fd_;
  Outbox out_;
  FrameReader in_;
  Traffic traffic_;
  transport::SilentPeer peer_{kSilence};
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_CONNECTION_H_
