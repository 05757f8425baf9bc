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

// The frames between this process and one other: a queue of output, and the parser of input. It only handles bytes; a
// transport carries them to and from the other process.
class Link {
 public:
  // kForeign: open; the peer has another MPI implementation. What is sent to it is in external32, and is never written at once.
  // kLeft: the peer said goodbye.
  enum class State : uint8_t { kFresh, kOpen, kForeign, kLeft, kDead };

  Link(Engine& engine, ProcessId peer);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  ProcessId peer() const { return peer_; }
  std::string Describe() const;  // the peer's name, for messages to the user
  // The lane of the wire, if it has one, while the connection is open; not owned. Else null.
  Lane* lane() const { return lane_; }
  void set_lane(Lane* lane) { lane_ = lane; }
  State state() const { return state_; }
  // The connection is established. The peer stores up to `window` bytes for this process.
  void Open(uint64_t window);
  // The same for a link to another MPI implementation. It has no lane and no streams, and stays foreign when the peer is gone.
  void OpenForeign(uint64_t window);
  bool is_foreign() const { return foreign_; }
  void set_gone(bool left) { state_ = left ? State::kLeft : State::kDead; }
  bool is_gone() const { return state_ >= State::kLeft; }
  bool is_open() const { return state_ == State::kOpen || state_ == State::kForeign; }
  // Open, with an empty queue: an eager message may be written at once.
  bool is_idle() const { return state_ == State::kOpen && !has_output(); }

  // --- streams ---
  // From now on the wire carries frames on `count` streams in each direction, at least one. Each stream is in order,
  // but streams may overtake one another. Call it before the first byte, at both ends or at neither.
  void UseStreams(size_t count);
  bool has_streams() const { return streams_ != nullptr; }
  // The flow of messages with that tag, for any number of streams. Store it with the message as long as needed.
  // Messages of equal context and tag must have the same flow.
  static uint32_t FlowOf(uint32_t context, int32_t tag) {
    return 1 + (((context * 0x9e3779b1u) ^ (static_cast<uint32_t>(tag) * 0x85ebca6bu)) >> 2);
  }
  static uint32_t FlowOf(const Comm& comm, uint32_t context, int32_t tag) {
    return comm.stream >= 0 ? 1 + static_cast<uint32_t>(comm.stream) : FlowOf(context, tag);
  }
  static constexpr uint32_t kControlFlow = 0;
  // The stream of a flow. Stream 0 is for answers, and for all frames if there is no other stream.
  size_t StreamOf(uint32_t flow) const;
  size_t stream_of_output() const { return StreamOf(first_->flow); }

  // --- out ---
  size_t unfinished_sends = 0;  // to this peer
  bool has_output() const { return first_ != nullptr; }
  // The part of the window, in bytes, that an eager message of `length` bytes takes.
  static int64_t CostOf(uint64_t length) { return static_cast<int64_t>(length) + 1024; }
  // Whether an eager message may be sent now. Until the link is open, the peer's window is assumed to be as large as
  // ours.
  bool HasCredit(int64_t cost) const { return cost <= credit_; }
  void TakeCredit(int64_t cost) { credit_ -= cost; }
  void ReturnCredit(int64_t cost) { credit_ += cost; }  // the message was not sent

  // Appends a frame to the queue. It also returns credit that is owed to the peer.
  void Enqueue(OutFrame& frame, const FrameHeader& header);
  // The same with an unchanged header, for a frame of which `written` bytes have been written already.
  void EnqueueRest(OutFrame& frame, const FrameHeader& header, size_t written);
  // Removes a frame from the queue and keeps the credit that it carried for the next one. False: a part of it has been
  // written.
  bool Dequeue(OutFrame& frame);
  void AddCreditTo(FrameHeader& header);  // adds owed credit, and the number, to a frame that is written at once
  void WroteAtOnce(const FrameHeader& header) {  // the whole frame was written
    if (has_streams()) CountOut(header.kind, header.context);
  }
  void SendControl(FrameHeader header, uint32_t flow = kControlFlow);
  void GiveBack(int64_t credit) {  // returns credit to the peer, soon
    if (is_gone()) return;
    owed_ += credit;
    if (owed_ * 2 > window_) [[unlikely]] SendControl({.kind = FrameKind::kCredit});
  }
  void Stream(SendRequest& send);  // queues its next chunk

  // Stores the next pieces to write, of at most `most_frames` frames, in `pieces`. Returns their number.
  size_t PrepareWrite(std::span<iovec> pieces, size_t most_frames = SIZE_MAX);
  // The data of the first frame, if that is a kRequest of which nothing is written and its data is contiguous. The data
  // stays in place until the peer has it; a wire may tell the peer where it is. Otherwise empty.
  std::span<const uint8_t> Offer() const;
  // Bytes of the first frame that are not written yet, for a wire that carries whole frames.
  size_t left_of_frame() const { return first_ == nullptr ? 0 : sizeof(first_->header) - first_->header_written + first_->body; }
  // `bytes` bytes of output were written.
  void Written(size_t bytes);
  // The peer has the first frame or a part of it. It is not Written() yet, since it may have to be sent again, but it
  // cannot be taken back.
  void set_first_is_out(bool out) { first_is_out_ = out; }
  bool first_is_out() const { return first_is_out_; }

  // --- in ---
  // Bytes that are certain to follow: the rest of the current body.
  // receives whose sender was told to send on this link, or whose data is being fetched from there
  uint32_t cleared = 0;
  uint64_t body_to_come() const { return first_in_.in_body ? first_in_.place + first_in_.drop : 0; }
  // Stores where the next bytes are to be read to: first memory of the current message, then (the last piece)
  // `staging`.
  size_t PrepareRead(std::span<iovec> pieces, std::span<uint8_t> staging, size_t stream = 0);
  // `bytes` bytes were read there. False: the peer violated the protocol, and the link cannot be used any more.
  [[nodiscard]] bool ReadDone(size_t bytes, std::span<const uint8_t> staging, size_t stream = 0);
  // The next bytes, which were read to another place: copies them to where they belong.
  [[nodiscard]] bool ReadStaged(std::span<const uint8_t> bytes, size_t stream = 0);

  // The next frame, which is completely available as `first` and `rest`: if it is an eager message for which a receive
  // is posted, the receive gets it. False: nothing has happened.
  [[nodiscard]] bool TakeForPosted(std::span<const uint8_t> first, std::span<const uint8_t> rest);
  // A complete kRequest. `offer`: address of its data for Lane::Fetch, not 0. False: it is another frame, or an invalid
  // one.
  [[nodiscard]] bool ReadRequest(std::span<const uint8_t> frame, uint64_t offer, uint64_t bytes);
  // No frame is incomplete: the next bytes are those of a header.
  bool is_between_frames() const { return !first_in_.in_body && first_in_.header_have == 0 && !has_streams(); }
  // For an eager message in the next frame that no posted receive matches and that is copied to the program at once:
  // accounts for its credit and its bytes. False: it is invalid, and nothing has happened.
  [[nodiscard]] bool TakeAtOnce(uint32_t credit, uint64_t length) {
    if (credit_ + credit > kMostCredit || length > static_cast<uint64_t>(window_)) [[unlikely]] return false;
    credit_ += credit;
    ++g_counters.messages_received;
    g_counters.bytes_received += length;
    GiveBack(CostOf(length));
    return true;
  }

  // Removes the notes of which nothing is written from the queue.
  std::vector<SendRequest*> TakeNotes();
  // The peer is gone: fails the queued sends and the message that is arriving.
  void Abandon(const Error& error);

 private:
  // There is external32 only where there are other clients.
  bool MaySay(const FrameHeader& header) const;
  friend class Engine;
  // The input of one stream.
  struct Inbound {
    uint8_t header_bytes[FrameHeader::kLength];
    size_t header_have = 0;
    bool in_body = false;
    FrameHeader header;                 // of the frame whose body arrives
    uint64_t place = 0, drop = 0;       // bytes of the body still to come: first those to keep, then those to discard
    ReceiveRequest* receive = nullptr;  // the receive that the bytes are for, or
    Message* message = nullptr;         // ... the message

    // The bytes of the body cannot be read to their place directly; they are copied.
    bool is_copied() const { return receive != nullptr && receive->payload.fine_grained(); }
  };
  // State that exists only if frames arrive over several streams.
  struct Streams {
    size_t count = 1;
    std::vector<std::unique_ptr<Inbound>> inbound;  // all but the first
    Arrivals arrivals;
    std::array<uint32_t, Arrivals::kGroups> next_out{};  // next numbers of messages
    uint64_t frames_out = 0, frames_in = 0;              // frames begun; complete frames
    std::optional<uint64_t> goodbye_after;               // the goodbye is valid after so many frames
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
  void OnBodyBytes(Inbound& in, size_t bytes);  // which are in place already
  void OnBodyEnd(Inbound& in);
  void OnFrameEnd();
  void FrameWritten(OutFrame& frame);
  void CountOut(FrameKind kind, uint32_t context);

  // A peer cannot return more credit than was taken.
  static constexpr int64_t kMostCredit = int64_t{1} << 40;

  Engine& engine_;
  const ProcessId peer_;
  const int64_t window_;  // bytes of eager messages that this process stores
  Lane* lane_ = nullptr;
  State state_ = State::kFresh;
  bool foreign_ = false;

  OutFrame* first_ = nullptr;
  OutFrame* last_ = nullptr;
  bool first_is_out_ = false;
  int64_t credit_ = 0;  // bytes that this process may still send eagerly
  int64_t owed_ = 0;    // credit to return

  Inbound first_in_;
  std::unique_ptr<Streams> streams_;  // null: one stream, in order
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_ENGINE_LINK_H_
