#ifndef MPI_HYBRID_P2P_ENGINE_OPERATION_H_
#define MPI_HYBRID_P2P_ENGINE_OPERATION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "mpi_hybrid/comm/group.h"
#include "mpi_hybrid/p2p/engine/arrivals.h"
#include "mpi_hybrid/p2p/engine/matching.h"
#include "mpi_hybrid/p2p/engine/payload.h"
#include "mpi_hybrid/p2p/request/request.h"
#include "mpi_hybrid/p2p/engine/wire.h"

namespace weft::mpi {

class Engine;
class Link;
class SendRequest;

// A frame to be written: the bytes of the header, then `body` bytes of the payload of `send`.
struct OutFrame {
  uint8_t header[FrameHeader::kLength];
  FrameKind kind = FrameKind::kCredit;
  uint32_t header_written = 0;
  uint32_t flow = 0;            // Link::StreamOf
  size_t body = 0;              // bytes not yet written
  SendRequest* send = nullptr;  // null: the frame comes from the pool and has no body
  OutFrame* next = nullptr;
};

// A send. Pooled. Besides the caller, the engine holds a reference until the send completes.
class SendRequest : public Request {
 public:
  enum class Stage : uint8_t {
    kIdle,
    kQueued,     // an eager message that is not completely written, or a rendezvous request
    kAnnounced,  // rendezvous that is not cleared yet; also a message to this process itself
    kStreaming,  // data is being written
    kMatching,   // synchronous eager: written, not matched yet
    kDone,
  };

  SendRequest() : Request(Kind::kSend) {}

  Error Cancel() override;
  // Copies the next `bytes` bytes of fine-grained data to the memory that frames are written from. No effect on other
  // data.
  void PackNext(size_t bytes);

  Engine* engine = nullptr;
  Link* link = nullptr;  // null: to this process itself
  Stage stage = Stage::kIdle;
  bool synchronous = false;
  bool excuse = false;
  bool external = false;  // the data are in external32 (IsPackedForClients)
  bool eager = false;
  bool cancelling = false;
  uint32_t id = 0;  // for the peer's answer; 0: none
  const Datatype* type = nullptr;  // kept alive by type_reference unless it is predefined
  Ref<const Datatype> type_reference;
  Payload payload;        // the data; if it is fine-grained, its packed part
  Payload fine_grained;   // fine-grained data that is not packed yet
  std::unique_ptr<uint8_t[]> packed;
  OutFrame frame;
  size_t length = 0;           // of the message
  size_t stream_left = 0;      // rendezvous: bytes that no frame contains yet
  uint32_t stream_to = 0;      // rendezvous: the receive at the peer
  class Message* self = nullptr;  // to this process itself: the message that waits for a receive
  const void* buffer = nullptr;   // to this process itself
  MPI_Aint count = 0;

 private:
  void Recycle() override;
};

// A receive. Pooled; the engine holds a reference as it does for a send.
class ReceiveRequest : public Request {
 public:
  enum class Stage : uint8_t {
    kIdle,
    kPosted,
    kArriving,
    kCleared,
    kFetching,  // its data is copied from the sender's memory, a part in each Engine::FetchPart
    kDone
  };

  ReceiveRequest() : Request(Kind::kReceive) {}

  Error Cancel() override;
  Error Hindrance() const override;

  // Sets the envelope and the length of the message that arrived. Truncation is recorded; `payload` keeps the part that
  // fits. `flags`: of the frame, those of kUnusualData. An excuse is an error. Data in external32 goes to memory of its
  // own first, unless it fits in place: from now on `capacity` and `payload` are in external32.
  void Matched(const MatchKey& envelope, uint64_t message_length, uint8_t flags) {
    length = message_length;
    status.MPI_SOURCE = envelope.source;
    status.MPI_TAG = envelope.tag;
    if (flags != 0) [[unlikely]] NoteUnusual(envelope, flags);
    SetCount(status, static_cast<MPI_Count>(std::min(length, capacity)));
  }
  // Data that came in external32 is complete: converts it. `length` and `capacity` are bytes of memory again, if the
  // message had room.
  void Convert();

  Engine* engine = nullptr;
  Link* link = nullptr;  // kArriving, kCleared, kFetching: the link of the sender
  Stage stage = Stage::kIdle;
  MatchKey key;          // as posted
  ProcessId process = MPI_ANY_SOURCE;  // the source
  MatchHook hook;
  uint32_t id = 0;       // kCleared, kFetching
  const Datatype* type = nullptr;  // as in SendRequest
  Ref<const Datatype> type_reference;
  Payload payload;
  uint64_t capacity = 0;  // bytes
  uint64_t length = 0;    // of the message
  uint64_t expected = 0;  // kCleared: bytes still to come
  bool in_body = false;   // kCleared: some of them are arriving now
  bool ends_slowly = false;  // Engine::Finish has more to do: it is kFetching, or `external` is set
  uint8_t* external = nullptr;  // data in external32, until all of it is here: in `buffer`, or in `staged`
  std::unique_ptr<uint8_t[]> staged;
  void* buffer = nullptr;
  MPI_Aint count = 0;

 private:
  void NoteUnusual(const MatchKey& envelope, uint8_t flags);
  void Recycle() override;
};

// A message that arrived, or was announced, before its receive was posted. Pooled.
class Message {
 public:
  static constexpr size_t kInline = 512;

  // Memory for `length` bytes of data.
  uint8_t* Allocate(size_t length);
  void Drop();  // returns it to the pool

  MessageHooks hooks;
  MatchKey envelope;
  uint64_t length = 0;
  Link* link = nullptr;             // null: from this process itself
  FrameKind kind = FrameKind::kEager;  // or kRequest
  bool synchronous = false;
  uint8_t unusual = 0;              // flags of the frame, those of kUnusualData
  bool taken = false;               // no longer among the waiting messages
  bool early = false;               // a message that was sent before it is missing
  Arrivals::Early turn;             // early: its place in the order
  uint32_t send_id = 0;             // at the sender
  uint64_t offer = 0;               // kRequest: Link::Offer
  SendRequest* send = nullptr;      // from this process itself, without a copy
  uint8_t* data = nullptr;
  uint64_t arrived = 0;             // bytes of data
  ReceiveRequest* receive = nullptr;  // gets the data when all of it has arrived

 private:
  std::unique_ptr<uint8_t[]> large_;
  uint8_t inline_[kInline];
};

// A message that a matched probe has removed from the waiting ones (MPI_Message).
class MessageRequest : public Request {
 public:
  MessageRequest() : Request(Kind::kMessage) {}
  Message* message = nullptr;
};

// A completed request: sends and receives of MPI_PROC_NULL, and sends that the kernel accepted at once. Pooled.
class DoneRequest : public Request {
 public:
  DoneRequest() : Request(Kind::kDone) {}

  static DoneRequest* Make(const MPI_Status& status);

 private:
  void Recycle() override;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_ENGINE_OPERATION_H_
