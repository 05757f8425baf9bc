#ifndef WIRES_SCTP_CHANNEL_SESSION_FAULTS_H_
#define WIRES_SCTP_CHANNEL_SESSION_FAULTS_H_

#include <cstdint>
#include <deque>
#include <functional>

#include "faults/connection_faults.h"
#include "transport/network.h"
#include "transport/socket_address.h"

namespace weft::sctp {

// The faults of one session: how far it may send, and whether it has come to its end. Messages are what passes or does not; positions are
// those of the session's writer. Used by one thread at a time.
class SessionFaults {
 public:
  using End = faults::ConnectionFaults::End;

  // As ConnectionFaults.
  SessionFaults(faults::ConnectionInfo info, const transport::SocketAddress& peer, transport::Network& network, std::function<void()> wake)
      : network_(network), faults_(std::move(info), peer, network, std::move(wake)) {}

  void Reselect() { faults_.Reselect(); }
  // True: the session has come to its end by this.
  bool Update() { return faults_.Update(); }
  End end() const { return faults_.end(); }
  bool shut() const { return faults_.shut(); }
  bool silent() const { return faults_.shut() || faults_.end() == End::kGivenUp; }

  // The position beyond which nothing is to go out now, of `appended`, of which `consumed` is out. Wakes when it grows.
  uint64_t Limit(uint64_t consumed, uint64_t appended);
  // So much is out, or came. True: as Update().
  bool Sent(uint64_t consumed);
  bool Received(uint64_t bytes);
  // A packet is to be damaged.
  bool StrikeCorruption();

 private:
  struct Due {
    uint64_t position;
    transport::Time when;
  };

  transport::Network& network_;
  faults::ConnectionFaults faults_;
  std::deque<Due> delayed_;  // in order
  uint64_t seen_ = 0;        // of what was appended
  uint64_t sent_ = 0;
  transport::Time may_send_from_{};  // bandwidth
};

}  // namespace weft::sctp

#endif  // WIRES_SCTP_CHANNEL_SESSION_FAULTS_H_
