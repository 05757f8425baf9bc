#ifndef MPI_HYBRID_P2P_ENGINE_LINK_H_
#define MPI_HYBRID_P2P_ENGINE_LINK_H_

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/counters.h"
#include "mpi_hybrid/p2p/engine/arrivals.h"
#include "mpi_hybrid/p2p/engine/lane.h"
#include "mpi_hybrid/p2p/engine/operation.h"
#include "mpi_hybrid/p2p/engine/wire.h"

namespace weft::mpi {

// The frames between this process and one other: what waits to be written, and the parser of what arrives. Bytes go in and out through
// it; how they reach the other process is a transport's matter.
class Link {
 public:
  enum class State : uint8_t { kFresh, kOpen, kLeft, kDead };  // kLeft: it said goodbye

  Link(Engine& engine, ProcessId peer);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  ProcessId peer() const { return peer_; }
  std::string Describe() const;  // the peer, for messages to the user
  // Of a wire that has one, for as long as the connection is open; not owned. Else null.
  Lane* lane() const { return lane_; }
  void set_lane(Lane* lane) { lane_ = lane; }
  State state() const { return state_; }
  // The other side says that it stores up to `window` bytes for us.
  void Open(uint64_t window);
  void set_gone(bool left) { state_ = left ? State::kLeft : State::kDead; }
  bool is_gone() const { return state_ == State::kLeft || state_ == State::kDead; }
  // Open, and nothing is queued: an eager message may be written at once.
  bool is_idle() const { return state_ == State::kOpen && !has_output(); }

  // --- streams ---
  // From now on the wire carries frames on `count` streams each way, each in order, which may overtake one another.
  // Before the first byte; at least one. Both ends do, or neither.
  void UseStreams(size_t count);
  bool has_streams() const { return streams_ != nullptr; }
  // Where messages with that tag go, whatever the number of streams: to be kept for as long as there are any. Those of
  // equal context and tag must have one flow.
  static uint32_t FlowOf(uint32_t context, int32_t tag) {
    return 1 + (((context * 0x9e3779b1u) ^ (static_cast<uint32_t>(tag) * 0x85ebca6bu)) >> 2);
  }
  static uint32_t FlowOf(const Comm& comm, uint32_t context, int32_t tag) {
    return comm.stream >= 0 ? 1 + static_cast<uint32_t>(comm.stream) : FlowOf(context, tag);
  }
  static constexpr uint32_t kControlFlow = 0;
  // The stream of a flow; 0 is for answers, and for all where there is no other.
  size_t StreamOf(uint32_t flow) const;
  size_t stream_of_output() const { return StreamOf(first_->flow); }

  // --- out ---
  size_t unfinished_sends = 0;  // to this peer
  bool has_output() const { return first_ != nullptr; }
  // What an eager message of `length` bytes takes of the window.
  static int64_t CostOf(uint64_t length) { return static_cast<int64_t>(length) + 1024; }
  // Whether an eager message may be sent now. Until the link is open its window is taken to be as ours.
  bool HasCredit(int64_t cost) const { return cost <= credit_; }
  void TakeCredit(int64_t cost) { credit_ -= cost; }
  void ReturnCredit(int64_t cost) { credit_ += cost; }  // the message was not sent

  // Behind what is queued; an outstanding credit goes with it.
  void Enqueue(OutFrame& frame, const FrameHeader& header);
  // The same for a header as it is, and with `written` bytes of the frame gone.
  void EnqueueRest(OutFrame& frame, const FrameHeader& header, size_t written);
  // Takes a frame of which nothing is written out of the queue, and keeps the credit that it carried for the next; false: too late.
  bool Dequeue(OutFrame& frame);
  void AddCreditTo(FrameHeader& header);  // to one that is written at once, and its number
  void WroteAtOnce(const FrameHeader& header) {  // all of it
    if (has_streams()) CountOut(header.kind, header.context);
  }
  void SendControl(FrameHeader header, uint32_t flow = kControlFlow);
  void GiveBack(int64_t credit) {  // returns credit, soon
    if (is_gone()) return;
    owed_ += credit;
    if (owed_ * 2 > window_) [[unlikely]] SendControl({.kind = FrameKind::kCredit});
  }
  void Stream(SendRequest& send);  // its next chunk

  // The next pieces to write into `pieces`, of at most so many frames; how many.
  size_t PrepareWrite(std::span<iovec> pieces, size_t most_frames = SIZE_MAX);
  // Where the first frame is a kRequest of which nothing is written, whose data are in one piece: these, which stay there until the peer has
  // them; a wire may tell it where that is. Else nothing.
  std::span<const uint8_t> Offer() const;
  // Bytes of the first frame that are not written, for a wire that carries whole frames.
  size_t left_of_frame() const { return first_ == nullptr ? 0 : sizeof(first_->header) - first_->header_written + first_->body; }
  // So many bytes of them were written.
  void Written(size_t bytes);
  // The first frame, or a part of it, is with the peer, though it is not Written(), since it may have to be sent again:
  // it cannot be taken back.
  void set_first_is_out(bool out) { first_is_out_ = out; }
  bool first_is_out() const { return first_is_out_; }

  // --- in ---
  // Bytes that surely follow: the rest of the body under way.
  uint32_t cleared = 0;  // receives whose sender was told to send on this link, or whose data are being fetched from there
  uint64_t body_to_come() const { return first_in_.in_body ? first_in_.place + first_in_.drop : 0; }
  // Where the next bytes go: first those that belong to the message under way, then (the last piece) `staging`.
  size_t PrepareRead(std::span<iovec> pieces, std::span<uint8_t> staging, size_t stream = 0);
  // `bytes` were read there. False: the peer broke the protocol; the link is of no more use.
  [[nodiscard]] bool ReadDone(size_t bytes, std::span<const uint8_t> staging, size_t stream = 0);
  // The next bytes, which were read to somewhere else: they are copied to where they belong.
  [[nodiscard]] bool ReadStaged(std::span<const uint8_t> bytes, size_t stream = 0);

  // The next frame, of which the first bytes and all others are there: if it is an eager message for which a receive is posted, that has it.
  // False: nothing has happened.
  [[nodiscard]] bool TakeForPosted(std::span<const uint8_t> first, std::span<const uint8_t> rest);
  // A kRequest in full; `offer` is where its data lie for Lane::Fetch, not 0. False: it is something else, or not legal.
  [[nodiscard]] bool ReadRequest(std::span<const uint8_t> frame, uint64_t offer, uint64_t bytes);
  // Nothing is missing of what has begun to arrive: the next bytes are those of a header.
  bool is_between_frames() const { return !first_in_.in_body && first_in_.header_have == 0 && !has_streams(); }
  // An eager message that is the next frame, to which no posted receive has a right, is copied to the program at once: its credit and its
  // bytes. False: it is not legal; nothing has happened.
  [[nodiscard]] bool TakeAtOnce(uint32_t credit, uint64_t length) {
    if (credit_ + credit > kMostCredit || length > static_cast<uint64_t>(window_)) [[unlikely]] return false;
    credit_ += credit;
    ++g_counters.messages_received;
    g_counters.bytes_received += length;
    GiveBack(CostOf(length));
    return true;
  }

  // Takes the notes out of the queue, of which nothing is written.
  std::vector<SendRequest*> TakeNotes();
  // The peer is gone: fails the sends that are queued and what arrives just now.
  void Abandon(const Error& error);

 private:
  friend class Engine;
  // What arrives on one stream.
  struct Inbound {
    uint8_t header_bytes[FrameHeader::kLength];
    size_t header_have = 0;
    bool in_body = false;
    FrameHeader header;                 // whose body arrives
    uint64_t place = 0, drop = 0;       // bytes of the body still to come: to keep, to throw away behind them
    ReceiveRequest* receive = nullptr;  // they are for this, or
    Message* message = nullptr;         // ... this

    // The bytes of the body are not read to their place, but copied.
    bool is_copied() const { return receive != nullptr && receive->payload.fine_grained(); }
  };
  // What there is only where frames come over several streams.
  struct Streams {
    size_t count = 1;
    std::vector<std::unique_ptr<Inbound>> inbound;  // but the first
    Arrivals arrivals;
    std::array<uint32_t, Arrivals::kGroups> next_out{};  // numbers of messages
    uint64_t frames_out = 0, frames_in = 0;              // that were begun, that are whole
    std::optional<uint64_t> goodbye_after;               // so many frames
  };

  Inbound& InboundOf(size_t stream);
  template <typename Visit>
  void ForEachInbound(Visit visit) {
    visit(first_in_);
    if (streams_ == nullptr) return;
    for (const auto& one : streams_->inbound) {
      if (one != nullptr) visit(*one);
    }
  }
  bool Arrived(const FrameHeader& header);
  bool OnHeader(Inbound& in, const FrameHeader& header);
  bool OnEager(Inbound& in, const FrameHeader& header);
  bool OnRequest(const FrameHeader& header, uint64_t offer = 0);
  bool OnClear(const FrameHeader& header);
  bool OnData(Inbound& in, const FrameHeader& header);
  bool OnMatched(const FrameHeader& header);
  bool OnFetched(const FrameHeader& header);
  bool OnGoodbye(const FrameHeader& header);
  bool OnCancel(const FrameHeader& header);
  bool OnCancelled(const FrameHeader& header);
  bool OnRevoked(const FrameHeader& header);
  bool OnNote(Inbound& in, const FrameHeader& header);
  void OnBodyBytes(Inbound& in, size_t bytes);  // that are in place already
  void OnBodyEnd(Inbound& in);
  void OnFrameEnd();
  void FrameWritten(OutFrame& frame);
  void CountOut(FrameKind kind, uint32_t context);

  // A peer cannot give back more than was taken.
  static constexpr int64_t kMostCredit = int64_t{1} << 40;

  Engine& engine_;
  const ProcessId peer_;
  const int64_t window_;  // bytes of eager messages that we store
  Lane* lane_ = nullptr;
  State state_ = State::kFresh;

  OutFrame* first_ = nullptr;
  OutFrame* last_ = nullptr;
  bool first_is_out_ = false;
  int64_t credit_ = 0;  // bytes that we may still send eagerly
  int64_t owed_ = 0;    // credit to give back

  Inbound first_in_;
  std::unique_ptr<Streams> streams_;  // null: one stream, in order
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_ENGINE_LINK_H_
