#ifndef RDMAP_INBOUND_H_
#define RDMAP_INBOUND_H_

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/byte_reader.h"
#include "ddp/header.h"
#include "ddp/segmenter.h"
#include "ddp/untagged_queue.h"
#include "llp/stream.h"
#include "llp/ulpdu.h"
#include "rdmap/atomic.h"
#include "rdmap/delivery.h"
#include "rdmap/host.h"
#include "rdmap/opcode.h"
#include "rdmap/read_queues.h"
#include "rdmap/terminate.h"
#include "rdmap/termination.h"

namespace weft::rdmap {

class Outbound;

// The receiving half of a stream. Checks each segment (RFC 5041 section 7.1, RFC 5040 section 7.2), tells where its
// payload goes, and completes messages. It trusts nothing that the peer sends.
class Inbound {
 public:
  // `outbound` is told what the peer reports about delivery.
  Inbound(llp::Rtr expected_rtr, bool scatter_reads, Host& host, ReadQueues& reads, Termination& termination,
          DeliveryAccount& account, Outbound& outbound);

  // See UlpduSink.
  bool Begin(size_t length, ByteSpan head, llp::UlpduPlan* plan);
  bool End();
  void OnUnplaceable();
  void OnUnplaced(size_t length, ByteSpan head, bool gone);

  bool rtr_received() const { return !awaiting_rtr_; }
  // If the segment between Begin and End goes into `stag`, the stream ends and the result is true.
  bool Forget(ddp::STag stag);
  // No message is partly received.
  bool idle() const;

  // The last segment of a Write, a Send or a Read Response has not arrived.
  bool message_open() const { return tagged_open_ || queues_[kSendQueue].message_open(); }

 private:
  // Begins one segment of an untagged message that is not a Send.
  bool BeginControl(const ddp::UntaggedHeader& header, MutableByteSpan buffer, llp::UlpduPlan* plan);
  bool IsWholeSend(ByteSpan head) const;
  bool BeginWholeSend(ByteSpan head, llp::UlpduPlan* plan);
  bool PlaceSend(llp::UlpduPlan* plan);
  bool BeginTagged(ByteSpan head, llp::UlpduPlan* plan);
  bool BeginUntagged(ByteSpan head, llp::UlpduPlan* plan);
  bool BeginReadResponse(const ddp::TaggedHeader& header);
  bool BeginSend(const ddp::UntaggedHeader& header, llp::UlpduPlan* plan);
  bool BeginImmediate(const ddp::UntaggedHeader& header, llp::UlpduPlan* plan);
  bool BeginDelivery(const ddp::UntaggedHeader& header, llp::UlpduPlan* plan);
  // Takes a receive for the message that begins. Returns false if the stream failed, or (reliable) if the segment is
  // dropped; `plan` then says so.
  bool TakeReceive(uint64_t needed, llp::UlpduPlan* plan);
  // Tells the host the target of the current segment. Returns false if there is no such target; the stream has failed.
  bool SelectTarget() { return !account_.targeted || account_.target_selected || SelectNewTarget(); }
  bool SelectNewTarget();
  // Drops the current segment, a request that the peer will send again.
  bool Drop(llp::UlpduPlan* plan);
  // Places the payload of a tagged segment in the memory that the host names.
  bool Place(const ddp::TaggedHeader& header, Access access, llp::UlpduPlan* plan);
  bool Scatter(llp::UlpduPlan* plan);

  bool EndReadResponse();
  bool EndSend();
  bool EndReadRequest();
  bool EndTerminate();
  bool EndImmediate();
  bool EndAtomicRequest();
  bool EndAtomicResponse();
  bool EndDelivery();
  // Whether the message that ends is the RTR, which is not one of the peer's numbered requests.
  bool IsRtr();

  // Checks the RDMAP control byte. Returns nullptr after the stream failed.
  const OpcodeInfo* CheckOpcode(uint8_t control, bool tagged, uint32_t queue);
  // Ends the stream because of an error in the current segment. Returns false.
  bool Fail(ddp::Error error);
  bool Fail(Error error);

  Host& host_;
  ReadQueues& reads_;
  Termination& termination_;
  DeliveryAccount& account_;
  Outbound& outbound_;
  const bool scatter_reads_;

  bool awaiting_rtr_;
  bool swallow_rtr_ = false;  // the Send being received is the RTR
  const llp::Rtr expected_rtr_;

  // The current segment.
  bool in_segment_ = false;
  bool last_ = false;
  bool unplaceable_ = false;   // the memory for its Read is no longer mapped
  bool dropped_ = false;       // it is a request that the peer will send again
  bool has_immediate_ = false; // for a Send
  const OpcodeInfo* info_ = nullptr;
  bool acknowledge_ = false;  // for the segment: see ControlByte
  uint32_t payload_length_ = 0;
  ddp::STag placing_;  // tagged, with payload
  uint32_t word_ = 0;  // RsvdULP[8:39] of a Send: the STag to invalidate, or immediate data
  OffendingSegment segment_;

  // Messages whose last segment has not arrived.
  bool tagged_open_ = false;
  const OpcodeInfo* open_send_ = nullptr;
  bool unplaced_send_ = false;   // unreliable: a Send that found no receive
  uint32_t write_length_ = 0;    // of the Write that is or was the last message
  bool behind_write_ = false;    // the last request message was a Write
  ddp::IovecCursor read_cursor_; // scatter_reads: of the oldest outstanding Read
  ReceiveTarget receive_;
  ddp::IovecCursor receive_cursor_;
  std::array<ddp::UntaggedQueue, kExtendedQueueCount> queues_;
  std::array<uint8_t, AtomicRequestHeader::kLength> read_request_{};  // Read or Atomic Request
  std::array<uint8_t, DeliveryMessage::kLength> small_{};              // immediate data, Atomic Response, Delivery
  std::array<uint8_t, TerminateMessage::kMaxLength> terminate_{};

  std::array<iovec, ddp::Segmenter::kMaxPieces> pieces_{};  // of the plan
};

}  // namespace weft::rdmap

#endif  // RDMAP_INBOUND_H_
