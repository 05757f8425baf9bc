#ifndef DDP_SCTP_ASSOCIATION_H_
#define DDP_SCTP_ASSOCIATION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/buffer_pool.h"
#include "base/byte_reader.h"
#include "ddp/sctp/chunk.h"
#include "ddp/sctp/held_budget.h"
#include "ddp/sctp/held_messages.h"
#include "ddp/sctp/session.h"
#include "ddp/sctp/session_list.h"

namespace weft::ddp::sctp {

struct AssociationOptions {
  bool initiator =
      false;  // of the association: it takes even streams first, the other end odd ones, so that they do not meet
  uint32_t streams = 0;      // pairs: the lesser number of both directions, at most 65536
  size_t max_segment = 516;  // bytes: MaxSegment()
  // Requests of the peer that wait for a program's answer. Those beyond are answered with a Terminate (RFC 5043
  // section 5.2.3).
  size_t most_requests = 128;
  // For messages that came early, or to a session that is not open; each takes a multiple of 256. A peer has about as
  // much on the way as its send buffer holds.
  size_t most_held_bytes = size_t{4} << 20;
  // For those of all associations that have the same, which outlives them. nullptr: only `most_held_bytes` is a bound.
  HeldBudget* held_budget = nullptr;
  // Messages of a session that are out and not known to be acknowledged. With an SCTP that never takes more than this
  // for a stream without acknowledgement by itself, UINT32_MAX says that it does.
  uint32_t most_unacknowledged = kMostInFlight;
};

// The DDP stream sessions of one SCTP association whose peer's adaptation indication is DDP's. No socket, clock, thread
// or lock: its owner brings messages (OnMessage) and acknowledgements, takes messages (Next, Took), and looks whom that
// concerns (TakeNews). What breaks the rules ends its session; the others never notice. Not thread safe.
class Association {
 public:
  // `pool` outlives it.
  Association(const AssociationOptions& options, BufferPool& pool);
  ~Association();
  Association(const Association&) = delete;

  // --- sessions ---

  // Asks the peer for a session, on a stream on which nothing of an earlier one can be on the way. nullptr: there is
  // none, the association is lost, or there are more than kMaxPrivateData bytes. The caller is its user. The private
  // data of an enhanced session begins with IRD and ORD.
  Session* Open(ByteSpan private_data, bool enhanced);
  // The user of a session has no use for it any more. It ends, if it has not; what the peer still sends is thrown away.
  void Release(Session& session);
  // A session of which something is new: it is a request (kRequested, whose user is who takes it from here), its state
  // changed, or it is deliverable(). nullptr: there is no more.
  Session* TakeNews();

  // --- from the peer ---

  // A message that came, in whatever order.
  void OnMessage(uint16_t stream, uint32_t ppid, ByteSpan bytes);
  // False: no message is to be brought before some session that is deliverable() has delivered, or a message might not
  // fit.
  bool HasRoom() const { return holding_.empty() || held_.Fits(kLongestSegment); }
  // The association was aborted, restarted or shut down by the peer, or failed: there is nothing more to bring or to
  // take.
  void OnLost();
  bool lost() const { return lost_; }

  // --- to the peer ---

  // The next message, of any session, or of this one. False: there is none that may go.
  bool Next(Outgoing* outgoing);
  bool NextOf(Session& session, Outgoing* outgoing);
  // SCTP has it: `outgoing` is what Next() or NextOf() said last.
  void Took(const Outgoing& outgoing);
  // How many it has; the first `count` of them are known to be acknowledged.
  uint64_t taken() const { return taken_; }
  void OnAcknowledged(uint64_t count);
  // The path's MTU changed.
  void SetMaxSegment(size_t bytes);

  // --- what it is ---

  const AssociationOptions& options() const { return options_; }
  struct Counters {
    uint64_t messages_in = 0, early = 0;  // of those, with a gap before them
    uint64_t requests = 0, refused = 0;   // for want of room in the queue of requests
    uint64_t failed = 0;                  // sessions in which the peer broke the rules
    uint64_t unknown = 0;                 // messages of no session
  };
  const Counters& counters() const { return counters_; }
  size_t sessions() const { return by_stream_.size() + retired_.size(); }
  size_t requests() const { return requests_; }
  size_t held_bytes() const { return held_.cells_in_use() * HeldMessages::kCellSize; }
  size_t resting_streams() const { return rests_.size(); }

 private:
  friend class Session;

  // A stream without a session, when that is not the whole truth.
  struct Rest {
    enum class Kind : uint8_t {
      kClean,      // nothing of the peer is on the way
      kDiscarded,  // something may be; a Terminate has said all that is to be said of it
      kUnknown,    // segments came without a session. The Terminate to them may pass for an answer to the next Initiate
    };
    Kind kind = Kind::kClean;
    bool answering = false;  // a Terminate is to go
    uint64_t ordinal = 0;    // of our last message there
  };

  Session& Make(uint16_t stream, bool active);
  bool FindFree(uint16_t* stream);
  bool IsFree(uint16_t stream);
  void OnUnknown(uint16_t stream, const Result<Chunk, ChunkError>& chunk);
  void OnInitiate(uint16_t stream, const Chunk& chunk);
  void Answer(uint16_t stream, Rest::Kind kind);
  bool NextAnswer(Outgoing* outgoing);
  void LeaveStream(Session& session);
  void Retire(Session& session);  // it has left its stream
  void ReapIfDone(Session& session);
  void Forget(Session& session);

  // For sessions.
  void Ready(Session& session);                    // it may have something to send
  void Tell(Session& session);                     // its user: there is news
  bool MakeRoom(Session& session, size_t length);  // false: `session` itself had to end

  AssociationOptions options_;
  BufferPool& pool_;
  HeldMessages held_;
  Counters counters_;
  bool lost_ = false;

  std::unordered_map<uint16_t, std::unique_ptr<Session>> by_stream_;
  std::vector<std::unique_ptr<Session>> retired_;  // over, with another on their stream or none, and not released
  std::unordered_map<uint16_t, Rest> rests_;
  std::deque<uint16_t> answers_;
  bool answer_next_ = true;  // answers and sessions take turns
  size_t requests_ = 0;
  // By parity: where to look for a free stream, and how many have a session.
  struct Half {
    uint32_t next = 0, used = 0;
  };
  Half halves_[2];

  uint64_t taken_ = 0, acknowledged_ = 0;
  SessionList<&Session::SendLink> to_send_;
  SessionList<&Session::SendLink> waiting_;  // for an acknowledgement
  SessionList<&Session::NewsLink> news_;
  SessionList<&Session::HoldingLink> holding_;  // deliverable
};

}  // namespace weft::ddp::sctp

#endif  // DDP_SCTP_ASSOCIATION_H_
