#ifndef RDMAP_STREAM_H_
#define RDMAP_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "ddp/types.h"
#include "mpa/fpdu_receiver.h"
#include "mpa/start_up.h"
#include "mpa/ulpdu.h"
#include "rdmap/request.h"
#include "rdmap/terminate.h"

namespace weft::rdmap {

enum class Access : uint8_t { kRemoteWrite, kRemoteRead, kReadSink };

// Why memory was refused; the stream turns it into the Terminate that RFC 5040 section 4.8 asks for.
enum class AccessError : uint8_t { kInvalidStag, kBounds, kAccessRights, kStagNotAssociated, kOffsetWrap };

// A receive that a program posted.
struct ReceiveTarget {
  std::span<const iovec> memory;  // stays valid until Received()
  uint64_t length = 0;            // bytes of `memory`
};

// A Send message that arrived whole.
struct ReceivedSend {
  uint32_t length = 0;
  bool solicited = false;
  std::optional<ddp::STag> invalidated;
};

// What the stream asks of the RNIC. Called from within Begin, End, Transmit, OnTransmitted; must not call the stream back.
class Host {
 public:
  virtual ~Host() = default;

  // Memory of a tagged buffer: `length` bytes at `offset`, contiguous. Zero length still checks the STag where the RFC does.
  virtual Result<uint8_t*, AccessError> Resolve(ddp::STag stag, ddp::TaggedOffset offset, uint32_t length,
                                                Access access) = 0;

  // The oldest posted receive that no message has taken; nullopt: none (the stream ends with a Terminate).
  virtual std::optional<ReceiveTarget> TakeReceive() = 0;
  // A Send message is complete in the receive taken for it. Invalidation was done by Invalidate().
  virtual void Received(const ReceivedSend& message) = 0;
  // Send with Invalidate: makes `stag` unusable. An error ends the stream.
  virtual std::optional<AccessError> Invalidate(ddp::STag stag) = 0;

  // The next request to transmit, in posted order; nullptr: none. The stream calls Started() when it takes it.
  virtual Request* NextRequest() = 0;
  virtual void Started(Request& request) = 0;
  // Every byte of a Write or Send was handed to the lower layer (RFC 5040 section 6.1: the source may be reused).
  virtual void Sent(Request& request) = 0;
  // A Read's data are all in place.
  virtual void ReadDone(Request& request) = 0;
};

enum class StreamState : uint8_t {
  kOperational,
  kTerminating,  // we sent or are sending a Terminate: nothing more is received; close after it is out
  kTerminated,   // the peer's Terminate arrived: nothing more is sent
};

struct StreamOptions {
  uint32_t ird = 0;           // Reads we take at once (RFC 5040 section 3.2); more is an error of the peer
  uint32_t ord = 0;           // Reads we have outstanding at most; further Reads wait in order
  // Responder in peer-to-peer mode: the first message is this RTR, zero length, and takes no receive (RFC 6581 section 4).
  mpa::Rtr expected_rtr = mpa::Rtr::kNone;
};

// RDMAP over DDP for one stream (RFC 5040, RFC 5041): state, the untagged queues, the queue of inbound RDMA Reads, segmentation
// and placement, Terminate. No I/O: segments come in through UlpduSink, go out through an UlpduWriter.
class Stream final : public mpa::UlpduSink {
 public:
  Stream(const StreamOptions& options, Host& host);
  ~Stream() override;

  bool Begin(size_t length, ByteSpan head, mpa::UlpduPlan* plan) override;
  bool End() override;

  // Appends segments while `out` has room and there is something to send: a Terminate first, then inbound Reads' responses
  // and the host's requests, message by message. Returns whether anything was appended.
  bool Transmit(mpa::UlpduWriter& out);
  // Bytes up to stream position `position` (see UlpduWriter::appended) were handed down; reports Sent() in order.
  void OnTransmitted(uint64_t position);
  // There is something that Transmit would append, given room.
  bool HasWork() const;

  // Sends the zero-length RTR message of RFC 6581 ahead of everything else (initiator, once, at the start).
  void SendRtr(mpa::Rtr kind);
  // Responder in peer-to-peer mode: true once the RTR came.
  bool RtrReceived() const;

  // The lower layer found the stream broken: queues a Terminate of layer LLP (RFC 5044 section 8).
  void OnLowerLayerError(mpa::FpduError error);
  // The RNIC ends the stream for a reason of its own (e.g. a local catastrophic error).
  void Terminate(const TerminateMessage& why);

  StreamState state() const;
  // The Terminate that we sent, or that came; nullopt while operational. In words for logs.
  const std::optional<TerminateMessage>& terminate() const;
  bool terminated_by_peer() const;
  // A Terminate of ours has been appended in full: end_position for OnTransmitted comparison; 0: none.
  uint64_t terminate_end_position() const;

  // The region `stag` goes away: true if a message being received, a queued Read Response or an outstanding Read uses it.
  // The stream then places and reads no byte there any more, and ends with a Terminate (layer RDMAP, remote protection).
  // The owner also calls FpduReceiver::DivertPlacement.
  bool ForgetRegion(ddp::STag stag);

  uint32_t outstanding_reads() const;
  // Nothing is half done in either direction: safe to close in order.
  bool idle() const;

 private:
  struct State;
  std::unique_ptr<State> state_;  // the author may choose another layout; keep it lean: an idle stream is under 4 KiB + IRD
};

}  // namespace weft::rdmap

#endif  // RDMAP_STREAM_H_
