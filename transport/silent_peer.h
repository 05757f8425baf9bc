#ifndef TRANSPORT_SILENT_PEER_H_
#define TRANSPORT_SILENT_PEER_H_

#include <chrono>
#include <cstdint>
#include <optional>

namespace weft::transport {

// Tells a host that is gone, switched off or cut off, from one whose program reads nothing, for a TCP connection on which bytes are under way: the
// kernel retransmits those for a quarter of an hour (tcp_retries2), and TCP_USER_TIMEOUT ends the connection to a program that does not read, too,
// though its host answers every probe. Where nothing is under way SO_KEEPALIVE does it.
//
// Gone is who has not acknowledged anything for `limit`, and in that time has been asked three times at least: the kernel asks a full
// receiver more and more seldom, at last every two minutes.
class SilentPeer {
 public:
  using Clock = std::chrono::steady_clock;

  // What the kernel knows of a connection.
  struct Sample {
    bool waits = false;                         // for an acknowledgement: something is under way, or the receiver is full
    std::chrono::milliseconds last_heard{};     // since something was acknowledged
    uint64_t asked = 0;                         // about as often as was retransmitted and probed; may fall when one is answered
  };
  static constexpr uint64_t kLeastAsked = 3;

  explicit SilentPeer(std::chrono::milliseconds limit) : limit_(limit) {}

  // Whether it is gone. To be called now and then, a few times in `limit`.
  bool Look(const Sample& sample, Clock::time_point now);
  // The same, of a descriptor; false for what is no TCP connection.
  bool Look(int fd, Clock::time_point now);

 private:
  const std::chrono::milliseconds limit_;
  std::optional<Clock::time_point> heard_;  // the last time, as far as is known
  uint64_t asked_then_ = 0;
};

}  // namespace weft::transport

#endif  // TRANSPORT_SILENT_PEER_H_
