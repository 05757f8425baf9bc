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
  uint32_t ird = 0;  // Reads that we accept at once (RFC 5040 section 3.2); more is an error of the peer
  uint32_t ord = 0;  // maximum number of Reads outstanding; further Reads wait in order
  // Responder in peer-to-peer mode: the first message is this RTR, which has zero length and consumes no receive (RFC
  // 6581 section 9.2). Until it arrives, only a Terminate may be sent. Any other valid first message also shows that
  // the initiator is ready, and is handled as usual.
  llp::Rtr expected_rtr = llp::Rtr::kNone;
  Delivery delivery = Delivery::kPlain;
  bool atomics = false;  // on a plain stream, too (RFC 7306)
  // The data of a Read goes to the pieces of Request::local. If false, the host is asked for the sink as a tagged
  // buffer (Access::kReadSink), which must be open to the peer as RFC 5040 requires.
  bool scatter_reads = false;
  // The peer's requests name their target (rdmap/delivery.h). Ours do if Request::target is not 0.
  bool targeted = false;
};

// RDMAP over DDP for one stream (RFC 5040, RFC 5041): state, the untagged queues, the queue of inbound RDMA Reads,
// segmentation and placement, Terminate. No I/O: segments come in through UlpduSink and go out through an UlpduWriter.
//
// When state() is no longer kOperational, the stream touches no Request, and takes or completes no receive. The state
// of those is indeterminate (RFC 5040 section 6.2.1), and the owner flushes them. The UlpduWriter still references
// payload that was appended before.
class Stream final : public llp::UlpduSink {
 public:
  Stream(const StreamOptions& options, Host& host);
  ~Stream() override;

  bool Begin(size_t length, ByteSpan head, llp::UlpduPlan* plan) override;
  bool End() override;
  void OnUnplaceable() override;
  void OnUnplaced(size_t length, ByteSpan head, bool gone) override;

  // Appends segments while `out` has room and there is something to send: first a Terminate (on a reliable stream,
  // after the answers to what arrived before its cause), then the responses to inbound Reads and the host's requests,
  // message by message. Returns whether anything was appended.
  bool Transmit(llp::UlpduWriter& out);
  // The lower layer has sent all bytes up to stream position `position` (see UlpduWriter::appended). Calls Sent() in
  // order.
  void OnTransmitted(uint64_t position) override;
  // RDMA Writes only: the sink of a Read may be scattered.
  std::optional<llp::TaggedPlacement> PlacementOf(ByteSpan header) const override;
  bool TouchesMemory(ByteSpan header) const override;
  std::optional<uint32_t> ReachedTag(ByteSpan header) const override;
  std::optional<llp::TaggedBuffer> OpenBuffer(uint32_t tag) override;
  // Whether Transmit would append something if there is room.
  bool HasWork() const;
  // ... for the stream itself, or for a request that it has begun.
  bool HasWorkBesideRequests() const;

  // Extended streams. Number of the peer's request messages that were carried out but not acknowledged. An
  // acknowledgement is sent with the next message, or, after Acknowledge(), with the next Transmit.
  uint32_t unacknowledged() const;
  bool acknowledgement_wanted() const;  // the peer waits for one of them (Request::acknowledge)
  void Acknowledge();
  // Reliable streams: called once, at the start. `word` then always holds received() too
  // (llp::Channel::CarriedOutHere). May be null.
  void ShowReceived(std::atomic<uint32_t>* word);
  // Reliable streams, initiator: called once, at the start. Sends an acknowledgement of nothing. A responder may not
  // send before it has heard from the initiator (RFC 5044 section 7.1.3), and revision 1 of MPA has no RTR message.
  void Greet();
  // How long the peer has to wait if there is no receive (an encoded min_rnr_timer, 0 to 31).
  void SetReceiverTimer(uint8_t timer);
  // The time of Host::ReceiverNotReady is over: sends again what was refused, and everything after it.
  void Resume();
  bool waiting_for_receiver() const;
  uint32_t received() const;      // number of the peer's last request message that was carried out or accepted
  uint32_t acknowledged() const;  // number of our last request message that the peer has carried out

  // Increases when the peer acknowledges, refuses or answers requests of ours, and with no other message.
  uint64_t answers() const;

  bool message_open() const;      // some segments of a message have arrived, but not the last

  // Sends the zero-length RTR message of RFC 6581 ahead of everything else (initiator, once, at the start).
  void SendRtr(llp::Rtr kind);
  // Responder in peer-to-peer mode: whether the RTR has arrived. Always true otherwise.
  bool RtrReceived() const;

  // The lower layer found the stream broken: queues a Terminate of layer LLP (RFC 5044 section 8).
  void OnLowerLayerError(llp::Error error);
  // The RNIC ends the stream for its own reason (such as a local catastrophic error). The first reason wins.
  void Terminate(const TerminateMessage& why);

  StreamState state() const;
  // The Terminate that was sent or received; nullopt while operational. ToString() describes it for logs.
  const std::optional<TerminateMessage>& terminate() const;
  bool terminated_by_peer() const;
  // Stream position after our Terminate, to compare with OnTransmitted(). 0: none was appended in full.
  uint64_t terminate_end_position() const;

  // The region `stag` goes away. Returns true if a message being received, a queued Read Response or an outstanding
  // Read uses it. The stream then no longer reads or writes the region, and ends with a Terminate (layer RDMAP, remote
  // protection). The owner also calls FpduReceiver::DivertPlacement.
  bool ForgetRegion(ddp::STag stag);

  uint32_t outstanding_reads() const;
  // No message is partly sent or received: the stream can be closed in order.
  bool idle() const;

 private:
  struct State;
  std::unique_ptr<State> state_;  // under 4 KiB, and 48 bytes for each of IRD and ORD
};

}  // namespace weft::rdmap

#endif  // RDMAP_STREAM_H_
