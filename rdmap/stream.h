#ifndef RDMAP_STREAM_H_
#define RDMAP_STREAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/byte_reader.h"
#include "ddp/types.h"
#include "llp/stream.h"
#include "llp/ulpdu.h"
#include "rdmap/delivery.h"
#include "rdmap/host.h"
#include "rdmap/request.h"
#include "rdmap/stream_state.h"
#include "rdmap/terminate.h"

namespace weft::rdmap {

struct StreamOptions {
  uint32_t ird = 0;  // Reads we take at once (RFC 5040 section 3.2); more is an error of the peer
  uint32_t ord = 0;  // Reads we have outstanding at most; further Reads wait in order
  // Responder in peer-to-peer mode: the first message is this RTR, zero length, and takes no receive (RFC 6581
  // section 9.2). Until it comes, nothing but a Terminate is sent. Any other valid first message says as well that the
  // initiator is ready, and is taken for what it is.
  llp::Rtr expected_rtr = llp::Rtr::kNone;
  Delivery delivery = Delivery::kPlain;
  // A Read's data go where Request::local says, in pieces; otherwise the host is asked for the sink as a tagged buffer
  // (Access::kReadSink), which has to be open to the peer as RFC 5040 wants it.
  bool scatter_reads = false;
  // The peer's requests name the target that they are for (rdmap/delivery.h). Our own do wherever Request::target is not 0.
  bool targeted = false;
};

// RDMAP over DDP for one stream (RFC 5040, RFC 5041): state, the untagged queues, the queue of inbound RDMA Reads,
// segmentation and placement, Terminate. No I/O: segments come in through UlpduSink, go out through an UlpduWriter.
//
// Once state() is not kOperational the stream touches no Request and takes or completes no receive any more: their fate
// is indeterminate (RFC 5040 section 6.2.1) and the owner flushes them. Payload that was appended before stays
// referenced by the UlpduWriter.
class Stream final : public llp::UlpduSink {
 public:
  Stream(const StreamOptions& options, Host& host);
  ~Stream() override;

  bool Begin(size_t length, ByteSpan head, llp::UlpduPlan* plan) override;
  bool End() override;
  void OnUnplaceable() override;

  // Appends segments while `out` has room and there is something to send: a Terminate first (on a reliable stream the answers to
  // what came before its cause are in front), then inbound Reads' responses and the host's requests, message by message. Returns
  // whether anything was appended.
  bool Transmit(llp::UlpduWriter& out);
  // Bytes up to stream position `position` (see UlpduWriter::appended) were handed down; reports Sent() in order.
  void OnTransmitted(uint64_t position) override;
  // RDMA Writes only: the sink of a Read may be scattered.
  std::optional<llp::TaggedPlacement> PlacementOf(ByteSpan header) const override;
  bool TouchesMemory(ByteSpan header) const override;
  std::optional<uint32_t> ReachedTag(ByteSpan header) const override;
  std::optional<llp::TaggedBuffer> OpenBuffer(uint32_t tag) override;
  // There is something that Transmit would append, given room.
  bool HasWork() const;
  // ... of its own, or of a request that it has begun.
  bool HasWorkBesideRequests() const;

  // Extended streams. Request messages of the peer that were carried out and not acknowledged yet; an acknowledgement goes with
  // whatever is sent next, or, after Acknowledge(), with the next Transmit.
  uint32_t unacknowledged() const;
  bool acknowledgement_wanted() const;  // the peer waits for one of them (Request::acknowledge)
  void Acknowledge();
  // Reliable streams, once, at the start: received() is kept there as well (llp::Channel::CarriedOutHere). May be null.
  void ShowReceived(std::atomic<uint32_t>* word);
  // Reliable streams, initiator, once, at the start: sends an acknowledgement of nothing. Until it hears from the initiator a responder
  // may not send (RFC 5044 section 7.1.3), and revision 1 of MPA has no RTR message.
  void Greet();
  // A receive is missing there: so many (min_rnr_timer, 0 to 31) the peer is to wait.
  void SetReceiverTimer(uint8_t timer);
  // The time is over (Host::ReceiverNotReady): sends again what was refused and what came after it.
  void Resume();
  bool waiting_for_receiver() const;
  uint32_t received() const;      // number of the peer's last request message that was carried out or accepted
  uint32_t acknowledged() const;  // number of our last request message that the peer has carried out

  // Grows when the peer acknowledges, refuses or answers requests of ours; not with what else it says.
  uint64_t answers() const;

  bool message_open() const;      // some segments of a message came, the last did not

  // Sends the zero-length RTR message of RFC 6581 ahead of everything else (initiator, once, at the start).
  void SendRtr(llp::Rtr kind);
  // Responder in peer-to-peer mode: true once the RTR came. Otherwise true: there is nothing to wait for.
  bool RtrReceived() const;

  // The lower layer found the stream broken: queues a Terminate of layer LLP (RFC 5044 section 8).
  void OnLowerLayerError(llp::Error error);
  // The RNIC ends the stream for a reason of its own (e.g. a local catastrophic error). The first reason wins.
  void Terminate(const TerminateMessage& why);

  StreamState state() const;
  // The Terminate that we sent, or that came; nullopt while operational. In words for logs.
  const std::optional<TerminateMessage>& terminate() const;
  bool terminated_by_peer() const;
  // A Terminate of ours has been appended in full: end_position for OnTransmitted comparison; 0: none.
  uint64_t terminate_end_position() const;

  // The region `stag` goes away: true if a message being received, a queued Read Response or an outstanding Read uses
  // it. The stream then places and reads no byte there any more, and ends with a Terminate (layer RDMAP, remote
  // protection). The owner also calls FpduReceiver::DivertPlacement.
  bool ForgetRegion(ddp::STag stag);

  uint32_t outstanding_reads() const;
  // Nothing is half done in either direction: safe to close in order.
  bool idle() const;

 private:
  struct State;
  std::unique_ptr<State> state_;  // under 4 KiB, and 48 bytes for each of IRD and ORD
};

}  // namespace weft::rdmap

#endif  // RDMAP_STREAM_H_
