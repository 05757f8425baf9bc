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
  kInitiated,  // active: the peer's answer is waited for
  kRequested,  // passive: ours is: Accept(), Reject() or End()
  kAccepted,   // segments go both ways
  kRejected,   // by the program that was asked
  kRefused,    // not by a program: a Terminate takes the place of an answer (section 6.4)
  kEnded,      // the peer's Terminate came, after all that it sent; we may still send
  kFailed,     // the peer broke the rules: error(), why()
  kLost,       // the association is gone, and the peer had not ended its direction
};
const char* ToString(SessionState state);

enum class SessionError : uint8_t {
  kNone,
  kMalformed,   // a message that is no chunk
  kIllegal,     // a chunk that fits to no sequence of section 6
  kReplay,      // a DDP-SSN that was used before
  kGap,         // a DDP-SSN so far ahead or behind that no message in flight can have it (section 10)
  kWindowFull,  // more came early than we hold
};

// What goes out next: one SCTP message, to be sent with the U flag set.
struct Outgoing {
  uint16_t stream = 0;
  uint32_t ppid = 0;
  std::span<const iovec> pieces;  // valid until something else is asked of the association or its sessions
  size_t length = 0;              // bytes
  bool more = false;              // the session has others behind it
  Session* session = nullptr;     // nullptr: an answer to a peer that speaks of a session that is not there
};

// One DDP stream session (RFC 5043 section 6): what came and what is to go on one pair of streams, from Initiate to
// Terminate. Its Association owns it, until the user releases it and it is over. As an llp::UlpduWriter it takes
// segments from when it was accepted.
//
// The sink is called from within Association::OnMessage() and Deliver() only. It may call the writer's functions,
// TakeOver(), End() and Abort() then, nothing else.
class Session final : public llp::UlpduWriter {
 public:
  ~Session() override;
  Session(const Session&) = delete;

  uint16_t stream() const { return stream_; }
  bool active() const { return active_; }  // we asked for it
  SessionState state() const { return state_; }
  SessionError error() const { return error_; }
  const std::string& why() const { return why_; }  // in words; empty without an error
  // Of the peer's Initiate (passive), or of its Accept or Reject (active), as it came.
  const std::vector<uint8_t>& private_data() const { return private_data_; }
  bool enhanced() const { return enhanced_; }  // set up with the function codes of RFC 6581
  std::string ToString() const;
  // Whatever its user wants to find again with it.
  void set_context(void* context) { context_ = context; }
  void* context() const { return context_; }

  // --- set-up ---

  // Passive, in kRequested. False: it is in another state (the peer left, say), or there are more than kMaxPrivateData
  // bytes. That of an enhanced session begins with IRD and ORD.
  bool Accept(ByteSpan private_data);
  bool Reject(ByteSpan private_data);
  // Passive: this peer is known to send no segment before it has our Accept (another Weft). Its first one then shows
  // that it has.
  void AssumePeerWaits() { peer_waits_ = true; }

  // --- from the peer ---

  // Once. `sink` outlives the session or Detach(). Closed at first: what comes is held.
  void Attach(llp::UlpduSink& sink) { sink_ = &sink; }
  // While a session is open what comes in order is handed on from within Association::OnMessage(). What was held before
  // is in front of it and waits for Deliver().
  void SetOpen(bool open);
  // Hands on at most `most` of the messages that are held and in order. Returns how many.
  size_t Deliver(size_t most);
  bool deliverable() const;  // Deliver() would
  // The sink has refused: nothing reaches it any more.
  bool stopped() const { return stopped_; }
  uint64_t received() const { return received_; }  // bytes of ULPDUs that went to the sink
  // A message that is missing has others behind it. A gap with the same position() for long will not be filled: the
  // peer lies, and who has a clock calls Abort().
  bool has_gap() const { return window_.held() != 0 && window_.next_held() == nullptr; }
  uint64_t position() const { return window_.next(); }  // messages that were taken in
  size_t held() const { return window_.held(); }        // messages that wait, early or for Deliver()

  // --- to the peer: llp::UlpduWriter; positions count the bytes of messages ---

  size_t max_ulpdu() const override;
  bool HasRoom(size_t payload_length, size_t payload_pieces) const override;
  void Append(ByteSpan header, std::span<const iovec> payload, bool volatile_payload) override;
  uint64_t appended() const override { return appended_; }
  uint64_t consumed() const { return consumed_; }
  bool empty() const { return sender_ == nullptr || sender_->empty(); }
  // Copies the payload that was appended and lies in these bytes. If it is not there any more, payload_gone() says so.
  void TakeOver(const void* begin, size_t length, bool (*copy)(uint8_t* to, const uint8_t* from, size_t count));
  // Payload that was appended is not there any more: nothing of what waits goes out, and nothing can be appended. Its user is told, and ends it.
  void LosePayload();
  bool payload_gone() const { return payload_gone_; }

  // Nothing that is appended at or behind this position goes out, nor the Terminate; UINT64_MAX: no limit.
  void SetSendLimit(uint64_t position);

  // Nothing is appended any more: a Terminate follows what was. The peer may still send. An Initiate that is not out is
  // withdrawn, a request that was not answered is refused.
  void End();
  // The same, at once: what was appended and is not out is forgotten.
  void Abort();
  bool ending() const { return ending_; }
  // Our last message is out of our hands, or there will be none.
  bool output_over() const;
  // Nothing more is to come from the peer either.
  bool over() const { return output_over() && input_over(); }

 private:
  friend class Association;
  Session(Association& association, uint16_t stream, bool active);

  // Of the association's lists.
  static SessionLink& SendLink(Session& session) { return session.send_link_; }
  static SessionLink& NewsLink(Session& session) { return session.news_link_; }
  static SessionLink& HoldingLink(Session& session) { return session.holding_link_; }

  bool input_over() const { return peer_ended_ || ignoring_; }
  bool writable() const;
  bool has_output() const { return !opening_.empty() || !empty() || (ending_ && !end_out_); }
  void SetState(SessionState state);
  void TellState(SessionState state);  // and the user hears of it

  // --- input ---
  void OnChunk(const Chunk& chunk);
  bool CanTake(Chunk::Kind kind) const;
  void Hold(const Chunk& chunk);
  size_t Drain(size_t most);
  void TakeHeld(const SsnWindow::Early& early);
  void TakeControl(Chunk::Kind kind, bool enhanced, ByteSpan private_data);
  bool TakeAnswer(Chunk::Kind kind, bool enhanced, ByteSpan private_data);  // false: it is none
  void TakeSegment(ByteSpan segment);
  void TakeSegment(const HeldMessages::Message& segment);
  bool MayTakeSegment();
  bool PlaceHeld(ByteSpan bytes, HeldMessages::Reader& rest);  // `bytes` and then the rest; false: the memory is not there
  bool BeginUlpdu(size_t length, ByteSpan head, llp::UlpduPlan* plan);
  void EndUlpdu(size_t length);
  void DiscardIfStopped();
  void Illegal(Chunk::Kind kind);
  void Fail(SessionError error, std::string why);
  void Ignore();   // all that still comes
  void Discard();  // nobody wants the segments that come; their order is still followed
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
  bool established_ = false;  // was accepted, whatever came then
  void* context_ = nullptr;
  bool seen_ = false;      // somebody has it
  bool released_ = false;  // the user is gone

  // Input.
  SsnWindow window_;
  llp::UlpduSink* sink_ = nullptr;
  bool open_ = false, stopped_ = false, discarding_ = false;
  bool peer_ended_ = false;  // its last chunk was taken in
  bool ignoring_ = false;
  bool leaving_ = false;  // for `last_state_`, when what is held is delivered
  SessionState last_state_ = SessionState::kEnded;
  bool peer_waits_ = false;
  bool peer_has_answer_ = false;
  uint64_t received_ = 0;
  llp::Placement placement_;
  bool payload_gone_ = false;

  // Output: `opening_`, then the segments, then a Terminate.
  std::vector<uint8_t> opening_;  // Initiate, Accept or Reject, as long as it is not out
  bool opening_out_ = false;
  uint64_t opening_ordinal_ = 0;  // of the association's messages
  std::unique_ptr<SegmentSender> sender_;
  bool ending_ = false, end_out_ = false, withdrawn_ = false;
  iovec piece_{};                                    // of a control message
  std::array<uint8_t, kControlHeaderLength> end_{};  // the Terminate
  uint64_t appended_ = 0, consumed_ = 0;
  uint64_t send_limit_ = UINT64_MAX;
  uint64_t out_ = 0;  // messages that are out; modulo 65536 the DDP-SSN of the next
  // Messages of the session that are acknowledged: `acknowledged_`, and `marked_` when the association's `mark_` is.
  uint64_t acknowledged_ = 0, marked_ = 0, mark_ = 0, last_ordinal_ = 0;

  bool waiting_ = false;  // send_link_ is in the list of those who wait for an acknowledgement
  SessionLink send_link_, news_link_, holding_link_;
};

}  // namespace weft::ddp::sctp

#endif  // DDP_SCTP_SESSION_H_
