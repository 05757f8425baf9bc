#ifndef IMPI_MESSAGE_PAIR_H_
#define IMPI_MESSAGE_PAIR_H_

#include <cstddef>
#include <deque>
#include <optional>

#include "base/result.h"
#include "impi/message/flow.h"
#include "impi/message/receiver.h"
#include "impi/message/sender.h"
#include "impi/message/types.h"

namespace weft::impi {

// This process and one of another client: both halves, and which packet is next. PROTOACK is before all others and is never blocked; then answers to the
// peer, CANCEL, and data, while the peer's high water is not reached (flow.h).
class Pair {
 public:
  // SYNCACK and cancel replies that a peer that acknowledges nothing can make this process keep, 24 bytes each, beside one for each message that is held.
  static constexpr size_t kMostAnswers = 1 << 16;

  Pair(PeerId id, const ProcessName& self, const ProcessName& peer, Peer kind, const FlowLimits& limits, uint32_t data_length, Handles<Outbound>& sends,
       Handles<Inbound>& messages);
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  const ProcessName& peer() const { return peer_; }
  const FlowIn& flow_in() const { return flow_in_; }
  const FlowOut& flow_out() const { return flow_out_; }
  Sender& sender() { return sender_; }

  // kTooLate after FINI, too.
  CancelOutcome Cancel(SendId id);

  bool has_output() const;
  std::optional<Outgoing> Next();
  // From the peer to this process.
  Result<Event, Complaint> OnPacket(const Packet& packet);
  Matched Match(MessageId id, uint64_t room);
  void Claim(MessageId id) { receiver_.Claim(id); }
  std::optional<MessageId> WithdrawnBy(uint64_t number) const { return receiver_.WithdrawnBy(number); }

  // --- the end (section 3.8) ---
  void Discard() { receiver_.Discard(); }
  // This process has nothing to send now, but perhaps PROTOACK.
  bool is_quiet() const { return answers_.empty() && !sender_.has_cancels() && !sender_.has_firsts() && !sender_.has_rests(); }
  void OnFiniSent();  // from now on it sends PROTOACK only
  void OnFini() { fini_came_ = true; }
  // The peer is gone. Nothing is taken any more, and no packet is accepted.
  void Lose() { lost_ = true; }
  bool is_lost() const { return lost_; }

 private:
  Packet Take(Outgoing& out);
  Result<Event, Complaint> Handle(const Packet& packet);
  std::optional<Complaint> Refusal(const Packet& packet) const;

  const ProcessName self_, peer_;
  const Peer kind_;
  FlowIn flow_in_;
  FlowOut flow_out_;
  Sender sender_;
  Receiver receiver_;
  std::deque<Answer> answers_;
  uint64_t packets_ = 0;  // that were taken
  bool fini_sent_ = false, fini_came_ = false, lost_ = false;
};

}  // namespace weft::impi

#endif  // IMPI_MESSAGE_PAIR_H_
