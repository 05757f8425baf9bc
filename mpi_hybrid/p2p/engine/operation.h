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

// A frame on its way out: the header's bytes, then `body` bytes of the payload of `send`.
struct OutFrame {
  uint8_t header[FrameHeader::kLength];
  FrameKind kind = FrameKind::kCredit;
  uint32_t header_written = 0;
  uint32_t flow = 0;            // Link::StreamOf
  size_t body = 0;              // left
  SendRequest* send = nullptr;  // null: the frame is from the pool and has no body
  OutFrame* next = nullptr;
};

// A send. Pooled. Besides the caller the engine holds a reference until it completes.
class SendRequest : public Request {
 public:
  enum class Stage : uint8_t {
    kIdle,
    kQueued,     // an eager message not yet written in full, or a rendezvous request
    kAnnounced,  // rendezvous: not cleared yet; also to oneself
    kStreaming,  // data are being written
    kMatching,   // synchronous eager: written, not matched yet
    kDone,
  };

  SendRequest() : Request(Kind::kSend) {}

  Error Cancel() override;
  // Copies the next `bytes` of fine-grained data to where frames take them from; nothing for others.
  void PackNext(size_t bytes);

  Engine* engine = nullptr;
  Link* link = nullptr;  // null: to oneself
  Stage stage = Stage::kIdle;
  bool synchronous = false;
  bool excuse = false;
  bool eager = false;
  bool cancelling = false;
  uint32_t id = 0;  // for the other side's answer; 0: none
  const Datatype* type = nullptr;  // kept alive by type_reference unless it is predefined
  Ref<const Datatype> type_reference;
  Payload payload;        // the data, or of fine-grained ones what is packed
  Payload fine_grained;   // ... and what is not yet
  std::unique_ptr<uint8_t[]> packed;
  OutFrame frame;
  size_t length = 0;           // of the message
  size_t stream_left = 0;      // rendezvous: bytes that no frame carries yet
  uint32_t stream_to = 0;      // ... the receive at the other side
  class Message* self = nullptr;  // to oneself: what waits for a receive
  const void* buffer = nullptr;   // to oneself
  MPI_Aint count = 0;

 private:
  void Recycle() override;
};

// A receive. Pooled, and referenced by the engine as a send is.
class ReceiveRequest : public Request {
 public:
  enum class Stage : uint8_t {
    kIdle,
    kPosted,
    kArriving,
    kCleared,
    kFetching,  // its data are copied from the sender's memory, one part in each Engine::FetchPart
    kDone
  };

  ReceiveRequest() : Request(Kind::kReceive) {}

  Error Cancel() override;
  Error Hindrance() const override;

  // What arrived: envelope and length. Truncation is noted; `payload` keeps what fits. An `excuse` is an error.
  void Matched(const MatchKey& envelope, uint64_t message_length, bool excuse) {
    if (excuse) [[unlikely]] NoteExcuse(envelope);
    length = message_length;
    status.MPI_SOURCE = envelope.source;
    status.MPI_TAG = envelope.tag;
    SetCount(status, static_cast<MPI_Count>(std::min(length, capacity)));
  }

  Engine* engine = nullptr;
  Link* link = nullptr;  // kArriving, kCleared, kFetching: from whom
  Stage stage = Stage::kIdle;
  MatchKey key;          // as posted
  ProcessId process = MPI_ANY_SOURCE;  // the source
  MatchHook hook;
  uint32_t id = 0;       // kCleared, kFetching
  const Datatype* type = nullptr;  // as of a send
  Ref<const Datatype> type_reference;
  Payload payload;
  uint64_t capacity = 0;  // bytes
  uint64_t length = 0;    // of the message
  uint64_t expected = 0;  // kCleared: bytes still to come
  bool in_body = false;   // kCleared: some of them are arriving
  void* buffer = nullptr;
  MPI_Aint count = 0;

 private:
  void NoteExcuse(const MatchKey& envelope);
  void Recycle() override;
};

// A message that arrived, or was announced, before its receive. Pooled.
class Message {
 public:
  static constexpr size_t kInline = 512;

  // Memory for `length` bytes of data.
  uint8_t* Allocate(size_t length);
  void Drop();  // back to the pool

  MessageHooks hooks;
  MatchKey envelope;
  uint64_t length = 0;
  Link* link = nullptr;             // null: from oneself
  FrameKind kind = FrameKind::kEager;  // or kRequest
  bool synchronous = false;
  bool excuse = false;
  bool taken = false;               // no longer among those that wait
  bool early = false;               // one that was sent before it is missing
  Arrivals::Early turn;             // early: when it is its turn
  uint32_t send_id = 0;             // at the sender
  uint64_t offer = 0;               // kRequest: Link::Offer
  SendRequest* send = nullptr;      // from oneself, without a copy
  uint8_t* data = nullptr;
  uint64_t arrived = 0;             // bytes of data
  ReceiveRequest* receive = nullptr;  // gets the data when all is here

 private:
  std::unique_ptr<uint8_t[]> large_;
  uint8_t inline_[kInline];
};

// A message that a matched probe took out (MPI_Message).
class MessageRequest : public Request {
 public:
  MessageRequest() : Request(Kind::kMessage) {}
  Message* message = nullptr;
};

// A request that is done: sends and receives of MPI_PROC_NULL, sends that the kernel took at once. Pooled.
class DoneRequest : public Request {
 public:
  DoneRequest() : Request(Kind::kDone) {}

  static DoneRequest* Make(const MPI_Status& status);

 private:
  void Recycle() override;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_ENGINE_OPERATION_H_
