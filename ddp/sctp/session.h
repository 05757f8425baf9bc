#ifndef DDP_SCTP_SESSION_H_
#define DDP_SCTP_SESSION_H_

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/byte_reader.h"
#include "ddp/sctp/chunk.h"
#include "ddp/sctp/held_messages.h"
#include "ddp/sctp/segment_sender.h"
#include "ddp/sctp/session_list.h"
#include "ddp/sctp/ssn_window.h"
#include "llp/placement.h"
#include "llp/ulpdu.h"

namespace weft::ddp::sctp {

class Association;

enum class SessionState : uint8_t {
  kInitiated,  // active: waiting for the peer's answer
  kRequested,  // passive: waiting for ours: Accept(), Reject() or End()
  kAccepted,   // segments may flow both ways
  kRejected,   // by the peer's program
  kRefused,    // not by a program: a Terminate came instead of an answer (section 6.4)
  kEnded,      // the peer's Terminate and everything before it arrived; we may still send
  kFailed,     // the peer violated the rules: see error() and why()
  kLost,       // the association is gone, and the peer had not ended its direction
};
const char* ToString(SessionState state);

enum class SessionError : uint8_t {
  kNone,
  kMalformed,   // the message is not a valid chunk
  kIllegal,     // the chunk fits no sequence of section 6
  kReplay,      // a DDP-SSN that was used before
  kGap,         // a DDP-SSN so far ahead or behind that no message in flight can have it (section 10)
  kWindowFull,  // more messages arrived early than we hold
};

// The next message to send: one SCTP message, to be sent with the U flag set.
struct Outgoing {
  uint16_t stream = 0;
  uint32_t ppid = 0;
  std::span<const iovec> pieces;  // valid until the next call to the association or its sessions
  size_t length = 0;              // bytes
  bool more = false;              // the session has more messages to send
  Session* session = nullptr;     // nullptr: an answer to a message for a session that does not exist
};

// One DDP stream session (RFC 5043 section 6): both directions of one pair of streams, from Initiate to Terminate. Its
// Association owns it until it is over and its user has released it. As an llp::UlpduWriter it accepts segments once
// the session is accepted.
//
// The sink is called only from within Association::OnMessage() and Deliver(). It may then call only the writer's
// functions, TakeOver(), End() and Abort().
class Session final : public llp::UlpduWriter {
 public:
  ~Session() override;
  Session(const Session&) = delete;

  uint16_t stream() const { return stream_; }
  bool active() const { return active_; }  // this end opened it
  SessionState state() const { return state_; }
  SessionError error() const { return error_; }
  const std::string& why() const { return why_; }  // a description; empty without an error
  // As received: of the peer's Initiate (passive), or of its Accept or Reject (active).
  const std::vector<uint8_t>& private_data() const { return private_data_; }
  bool enhanced() const { return enhanced_; }  // started with the function codes of RFC 6581
  std::string ToString() const;
  // A pointer for the session's user.
  void set_context(void* context) { context_ = context; }
  void* context() const { return context_; }

  // --- set-up ---

  // Passive, in kRequested. Returns false if the session is in another state (because the peer left, for example), or
  // if there are more than kMaxPrivateData bytes. The private data of an enhanced session begins with IRD and ORD.
  bool Accept(ByteSpan private_data);
  bool Reject(ByteSpan private_data);
  // Passive: this peer, another Weft, is known to send no segment before it has our Accept. So its first segment shows
  // that it has it.
  void AssumePeerWaits() { peer_waits_ = true; }

  // --- from the peer ---

  // Called once. `sink` outlives the session or Detach(). The session is closed at first: messages that arrive are
  // held.
  void Attach(llp::UlpduSink& sink) { sink_ = &sink; }
  // While a session is open, messages that arrive in order are handed on from within Association::OnMessage(). Messages
  // held before precede them and wait for Deliver().
  void SetOpen(bool open);
  // Hands on at most `most` held messages that are in order. Returns how many.
  size_t Deliver(size_t most);
  bool deliverable() const;  // Deliver() would hand on a message
  // The sink has refused: it gets nothing more.
  bool stopped() const { return stopped_; }
  uint64_t received() const { return received_; }  // bytes of ULPDUs handed to the sink
  // A message is missing, and later ones have arrived. If position() does not change for a long time, the gap will not
  // be filled, because the peer lies; the owner, which has a clock, then calls Abort().
  bool has_gap() const { return window_.held() != 0 && window_.next_held() == nullptr; }
  uint64_t position() const { return window_.next(); }  // messages received in order
  size_t held() const { return window_.held(); }        // messages that wait: early ones, and those for Deliver()

  // --- to the peer: llp::UlpduWriter; positions count the bytes of messages ---

  size_t max_ulpdu() const override;
  bool HasRoom(size_t payload_length, size_t payload_pieces) const override;
  void Append(ByteSpan header, std::span<const iovec> payload, bool volatile_payload) override;
  uint64_t appended() const override { return appended_; }
  uint64_t consumed() const { return consumed_; }
  bool empty() const { return sender_ == nullptr || sender_->empty(); }
  // Copies the appended payload in these bytes. If it is no longer mapped, payload_gone() becomes true.
  void TakeOver(const void* begin, size_t length, bool (*copy)(uint8_t* to, const uint8_t* from, size_t count));
  // Appended payload is no longer mapped: no waiting message is sent, and nothing can be appended. The user is told,
  // and ends the session.
  void LosePayload();
  bool payload_gone() const { return payload_gone_; }

  // Nothing appended at or behind this position is sent, and no Terminate. UINT64_MAX: no limit.
  void SetSendLimit(uint64_t position);

  // Nothing more is appended; a Terminate follows what was. The peer may still send. An Initiate that is not sent yet
  // is withdrawn; a request that was not answered is refused.
  void End();
  // Like End(), but at once: appended messages that are not sent are dropped.
  void Abort();
  bool ending() const { return ending_; }
  // Our last message is sent, or there will be none.
  bool output_over() const;
  // Nothing more can come from the peer either.
  bool over() const { return output_over() && input_over(); }

 private:
  friend class Association;
  Session(Association& association, uint16_t stream, bool active);

  // For the association's lists.
  static SessionLink& SendLink(Session& session) { return session.send_link_; }
  static SessionLink& NewsLink(Session& session) { return session.news_link_; }
  static SessionLink& HoldingLink(Session& session) { return session.holding_link_; }

  bool input_over() const { return peer_ended_ || ignoring_; }
  bool writable() const;
  bool has_output() const { return !opening_.empty() || !empty() || (ending_ && !end_out_); }
  void SetState(SessionState state);
  void TellState(SessionState state);  // changes the state and tells the user

  // --- input ---
  void OnChunk(const Chunk& chunk);
  bool CanTake(Chunk::Kind kind) const;
  void Hold(const Chunk& chunk);
  size_t Drain(size_t most);
  void TakeHeld(const SsnWindow::Early& early);
  void TakeControl(Chunk::Kind kind, bool enhanced, ByteSpan private_data);
  bool TakeAnswer(Chunk::Kind kind, bool enhanced, ByteSpan private_data);  // false: it is not an answer
  void TakeSegment(ByteSpan segment);
  void TakeSegment(const HeldMessages::Message& segment);
  bool MayTakeSegment();
  // First `bytes`, then `rest`; false: the memory is no longer mapped.
  bool PlaceHeld(ByteSpan bytes, HeldMessages::Reader& rest);
  bool BeginUlpdu(size_t length, ByteSpan head, llp::UlpduPlan* plan);
  void EndUlpdu(size_t length);
  void DiscardIfStopped();
  void Illegal(Chunk::Kind kind);
  void Fail(SessionError error, std::string why);
  void Ignore();   // everything that still arrives
  void Discard();  // drops the segments that arrive, but still follows their order
  void Leave(SessionState last);
  void LeaveIfDelivered();
  void OnLost();
  void UpdateHolding();

  // --- output ---
  void SetOpening(Chunk::Kind kind, ByteSpan private_data);
  bool Next(Outgoing* outgoing);
  void Took(uint64_t ordinal);
  bool MayTerminate() const;
  uint64_t Unacknowledged();

  Association& association_;
  const uint16_t stream_;
  const bool active_;
  bool enhanced_ = false;
  SessionState state_;
  SessionError error_ = SessionError::kNone;
  std::string why_;
  std::vector<uint8_t> private_data_;
  bool established_ = false;  // was accepted, whatever happened later
  void* context_ = nullptr;
  bool seen_ = false;      // it has a user
  bool released_ = false;  // the user has released it

  // Input.
  SsnWindow window_;
  llp::UlpduSink* sink_ = nullptr;
  bool open_ = false, stopped_ = false, discarding_ = false;
  bool peer_ended_ = false;  // its last chunk was processed
  bool ignoring_ = false;
  bool leaving_ = false;  // moves to `last_state_` when the held messages are delivered
  SessionState last_state_ = SessionState::kEnded;
  bool peer_waits_ = false;
  bool peer_has_answer_ = false;
  uint64_t received_ = 0;
  llp::Placement placement_;
  bool payload_gone_ = false;

  // Output: `opening_`, then the segments, then a Terminate. `opening_` is the Initiate, Accept or Reject until it is
  // sent.
  std::vector<uint8_t> opening_;
  bool opening_out_ = false;
  uint64_t opening_ordinal_ = 0;  // its number among the association's messages
  std::unique_ptr<SegmentSender> sender_;
  bool ending_ = false, end_out_ = false, withdrawn_ = false;
  iovec piece_{};                                    // of a control message
  std::array<uint8_t, kControlHeaderLength> end_{};  // the Terminate
  uint64_t appended_ = 0, consumed_ = 0;
  uint64_t send_limit_ = UINT64_MAX;
  uint64_t out_ = 0;  // messages sent; modulo 65536 the DDP-SSN of the next
  // Number of acknowledged messages of the session: `acknowledged_`; it becomes `marked_` when the association has
  // acknowledged `mark_`.
  uint64_t acknowledged_ = 0, marked_ = 0, mark_ = 0, last_ordinal_ = 0;

  bool waiting_ = false;  // send_link_ is in the list of sessions that wait for an acknowledgement
  SessionLink send_link_, news_link_, holding_link_;
};

}  // namespace weft::ddp::sctp

#endif  // DDP_SCTP_SESSION_H_
