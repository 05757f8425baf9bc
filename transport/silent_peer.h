#ifndef TRANSPORT_SILENT_PEER_H_
#define TRANSPORT_SILENT_PEER_H_

#include <chrono>
#include <cstdint>
#include <optional>

namespace weft::transport {

// Detects whether the host of a TCP connection's peer is gone, switched off or cut off, while bytes are in flight; a
// host whose program does not read is not gone. The kernel's own means do not suffice: it retransmits for a quarter of
// an hour (tcp_retries2), and TCP_USER_TIMEOUT also ends a connection whose program does not read, although its host
// answers every probe. If nothing is in flight, SO_KEEPALIVE does the work.
//
// A peer is gone if it has acknowledged nothing for `limit`, and was asked at least three times in that time: the
// kernel probes a full receiver less and less often, in the end every two minutes.
class SilentPeer {
 public:
  using Clock = std::chrono::steady_clock;

  // What the kernel knows about a connection.
  struct Sample {
    bool waits = false;                         // for an acknowledgement: bytes are in flight, or the receiver is full
    std::chrono::milliseconds last_heard{};     // since the last acknowledgement
    // approximate number of retransmissions and probes; may fall when one is answered
    uint64_t asked = 0;
  };
  static constexpr uint64_t kLeastAsked = 3;

  explicit SilentPeer(std::chrono::milliseconds limit) : limit_(limit) {}

  // Returns whether the peer is gone. To be called a few times in each `limit`.
  bool Look(const Sample& sample, Clock::time_point now);
  // The same for a descriptor; false if it is no TCP connection.
  bool Look(int fd, Clock::time_point now);

 private:
  const std::chrono::milliseconds limit_;
  std::optional<Clock::time_point> heard_;  // time of the last sign of life, as far as known
  uint64_t asked_then_ = 0;
};

}  // namespace weft::transport

#endif  // TRANSPORT_SILENT_PEER_H_
