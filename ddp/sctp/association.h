#ifndef DDP_SCTP_ASSOCIATION_H_
#define DDP_SCTP_ASSOCIATION_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
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
  // Whether this end initiated the association. The initiator opens sessions on even streams, the other end on odd
  // ones, so that they do not collide.
  bool initiator = false;
  uint32_t streams = 0;      // stream pairs: the smaller number of both directions, at most 65536
  size_t max_segment = 516;  // bytes: MaxSegment()
  // Maximum number of the peer's requests that wait for an answer of the program. Further requests are answered with a
  // Terminate (RFC 5043 section 5.2.3).
  size_t most_requests = 128;
  // Memory for messages that arrived early, or for a session that is not open; each takes a multiple of 256 bytes. The
  // data that a peer has in flight is about as large as its send buffer.
  size_t most_held_bytes = size_t{4} << 20;
  // The budget that several associations share; it outlives them. nullptr: only `most_held_bytes` limits the memory.
  HeldBudget* held_budget = nullptr;
  // Maximum number of messages of a session that are sent but not known to be acknowledged. UINT32_MAX if the SCTP
  // implementation itself never accepts more unacknowledged messages for a stream than kMostInFlight.
  uint32_t most_unacknowledged = kMostInFlight;
};

// The DDP stream sessions of one SCTP association whose peer has sent the adaptation indication of DDP. Uses no socket,
// clock, thread or lock. The owner hands in messages (OnMessage) and acknowledgements, takes messages out (Next, Took),
// and asks which sessions have news (TakeNews). A violation of the rules ends only the session in which it occurs. Not
// thread safe.
class Association {
 public:
  // `pool` outlives the association.
  Association(const AssociationOptions& options, BufferPool& pool);
  ~Association();
  Association(const Association&) = delete;

  // --- sessions ---

  // Asks the peer for a session, on a stream that can have no message of an earlier session in flight. The caller
  // becomes the session's user. The private data of an enhanced session begins with IRD and ORD. Returns nullptr if no
  // stream is free, if the association is lost, or if there are more than kMaxPrivateData bytes.
  Session* Open(ByteSpan private_data, bool enhanced);
  // The user no longer needs the session. It ends if it has not ended yet; what the peer still sends is dropped.
  void Release(Session& session);
  // Returns a session that has news: it is a new request (kRequested; the caller becomes its user), its state has
  // changed, or it is deliverable(). nullptr: there is no other.
  Session* TakeNews();

  // --- from the peer ---

  // A message has arrived. Messages may arrive in any order.
  void OnMessage(uint16_t stream, uint32_t ppid, ByteSpan bytes);
  // Returns false if OnMessage() may not be called: a message might not fit until a deliverable() session has
  // delivered.
  bool HasRoom() const { return holding_.empty() || held_.Fits(kLongestSegment); }
  // The association was aborted, restarted or shut down by the peer, or failed: there are no more messages in either
  // direction.
  void OnLost();
  bool lost() const { return lost_; }

  // --- to the peer ---

  // Returns the next message to send, of a session or of the association. False: no message may be sent now.
  bool Next(Outgoing* outgoing);
  bool NextOf(Session& session, Outgoing* outgoing);
  // SCTP has accepted the message; `outgoing` is the last result of Next() or NextOf().
  void Took(const Outgoing& outgoing);
  // Number of messages that SCTP has accepted; the first `count` of them are known to be acknowledged.
  uint64_t taken() const { return taken_; }
  void OnAcknowledged(uint64_t count);
  // The path's MTU has changed.
  void SetMaxSegment(size_t bytes);

  // --- state ---

  const AssociationOptions& options() const { return options_; }
  struct Counters {
    uint64_t messages_in = 0, early = 0;  // `early`: those that arrived before an earlier message
    uint64_t requests = 0, refused = 0;   // `refused`: because the queue of requests was full
    uint64_t failed = 0;                  // sessions in which the peer violated the rules
    uint64_t unknown = 0;                 // messages for no session
  };
  const Counters& counters() const { return counters_; }
  size_t sessions() const { return by_stream_.size() + retired_.size(); }
  size_t requests() const { return requests_; }
  size_t held_bytes() const { return held_.cells_in_use() * HeldMessages::kCellSize; }
  size_t resting_streams() const { return rests_.size(); }

 private:
  friend class Session;

  // A stream that has no session now, but had one or got messages.
  struct Rest {
    enum class Kind : uint8_t {
      kClean,      // the peer has nothing in flight
      kDiscarded,  // the peer may have messages in flight; a Terminate has already answered them
      // Segments arrived without a session. The peer may mistake the Terminate that answers them for an answer to the
      // next Initiate.
      kUnknown,
    };
    Kind kind = Kind::kClean;
    bool answering = false;  // a Terminate is to be sent
    uint64_t ordinal = 0;    // number of our last message on the stream
  };

  Session& Make(uint16_t stream, bool active);
  bool FindFree(uint16_t* stream);
  bool IsFree(uint16_t stream);
  void OnUnknown(uint16_t stream, const Result<Chunk, ChunkError>& chunk);
  void OnInitiate(uint16_t stream, const Chunk& chunk);
  void Answer(uint16_t stream, Rest::Kind kind);
  bool NextAnswer(Outgoing* outgoing);
  void LeaveStream(Session& session);
  void Retire(Session& session);  // the session has left its stream
  void ReapIfDone(Session& session);
  void Forget(Session& session);

  // Called by sessions. Ready(): the session may have something to send. Tell(): it has news for its user. MakeRoom()
  // returns false if `session` itself had to end.
  void Ready(Session& session);
  void Tell(Session& session);
  bool MakeRoom(Session& session, size_t length);
  // Called before a thread of Weft sends a message. `pieces` are the message: what is staged, then what references
  // memory of the program, which is copied; `pieces` become those of the copy. Returns false if some of it is no longer
  // mapped.
  [[nodiscard]] bool CopyPayload(std::span<const iovec>* pieces);

  AssociationOptions options_;
  BufferPool& pool_;
  HeldMessages held_;
  Counters counters_;
  bool lost_ = false;

  std::unordered_map<uint16_t, std::unique_ptr<Session>> by_stream_;
  std::vector<std::unique_ptr<Session>> retired_;  // over, no longer on their stream, and not yet released
  std::unordered_map<uint16_t, Rest> rests_;
  std::deque<uint16_t> answers_;
  bool answer_next_ = true;  // answers and sessions take turns
  size_t requests_ = 0;
  // By parity of the stream: where to look for a free one, and how many have a session.
  struct Half {
    uint32_t next = 0, used = 0;
  };
  Half halves_[2];

  BufferPool::Lease copy_;  // of the payload of the next message, while there are messages to send
  iovec copied_[2];         // the message with that copy

  uint64_t taken_ = 0, acknowledged_ = 0;
  SessionList<&Session::SendLink> to_send_;
  SessionList<&Session::SendLink> waiting_;  // sessions that wait for an acknowledgement
  SessionList<&Session::NewsLink> news_;
  SessionList<&Session::HoldingLink> holding_;  // deliverable sessions
};

}  // namespace weft::ddp::sctp

#endif  // DDP_SCTP_ASSOCIATION_H_
