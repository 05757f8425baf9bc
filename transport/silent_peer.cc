#include "transport/silent_peer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace weft::transport {

bool SilentPeer::Look(const Sample& sample, Clock::time_point now) {
  const auto heard = now - sample.last_heard;
  // The kernel's clock is coarse: the same moment comes back as one some milliseconds apart.
  if (!sample.waits || !heard_ || heard > *heard_ + std::chrono::milliseconds(100)) {
    heard_ = sample.waits ? heard : now;
    asked_then_ = sample.asked;
  }
  if (sample.asked < asked_then_) asked_then_ = sample.asked;  // some were answered
  return sample.waits && now - *heard_ >= limit_ && sample.asked - asked_then_ >= kLeastAsked;
}

bool SilentPeer::Look(int fd, Clock::time_point now) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || info.tcpi_state != TCP_ESTABLISHED) return false;
  return Look({.waits = info.tcpi_unacked != 0 || info.tcpi_probes != 0,
               .last_heard = std::chrono::milliseconds(info.tcpi_last_ack_recv),
               // The first counts what was sent, the second attempts without success, also those for which there is no route any more.
               .asked = uint64_t{info.tcpi_total_retrans} + info.tcpi_retransmits + info.tcpi_probes},
              now);
}

}  // namespace weft::transport
