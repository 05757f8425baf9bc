#ifndef WIRES_SCTP_CHANNEL_SESSION_FAULTS_H_
#define WIRES_SCTP_CHANNEL_SESSION_FAULTS_H_

#include <cstdint>
#include <deque>
#include <functional>

#include "faults/connection_faults.h"
#include "transport/network.h"
#include "transport/socket_address.h"

namespace weft::sctp {

// The faults of one session: how far it may send, and whether it has ended. Messages pass or do not pass; positions are
// those of the session's writer. Used by one thread at a time.
class SessionFaults {
 public:
  using End = faults::ConnectionFaults::End;

  // See ConnectionFaults.
  SessionFaults(faults::ConnectionInfo info, const transport::SocketAddress& peer, transport::Network& network, std::function<void()> wake)
      : network_(network), faults_(std::move(info), peer, network, std::move(wake)) {}

  void Reselect() { faults_.Reselect(); }
  // Returns true if the session has now ended.
  bool Update() { return faults_.Update(); }
  End end() const { return faults_.end(); }
  bool shut() const { return faults_.shut(); }
  bool silent() const { return faults_.shut() || faults_.end() == End::kGivenUp; }

  // The position up to which messages may be sent now. Everything up to `appended` was appended, and up to `consumed`
  // was sent. Calls `wake` when the limit grows.
  uint64_t Limit(uint64_t consumed, uint64_t appended);
  // So many bytes were sent, or received. Returns true if the session has now ended.
  bool Sent(uint64_t consumed);
  bool Received(uint64_t bytes);
  // Whether a packet must be damaged.
  bool StrikeCorruption();

 private:
  struct Due {
    uint64_t position;
    transport::Time when;
  };

  transport::Network& network_;
  faults::ConnectionFaults faults_;
  std::deque<Due> delayed_;  // in order
  uint64_t seen_ = 0;        // part of `appended` that was examined
  uint64_t sent_ = 0;
  transport::Time may_send_from_{};  // for bandwidth
};

}  // namespace weft::sctp

#endif  // WIRES_SCTP_CHANNEL_SESSION_FAULTS_H_
