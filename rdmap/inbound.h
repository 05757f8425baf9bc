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

// The receiving half of a stream: checks each segment (RFC 5041 section 7.1, RFC 5040 section 7.2), says where its
// payload goes, and completes messages. Nothing that the peer sends is trusted.
class Inbound {
 public:
  // `outbound` hears what the peer says of delivery.
  Inbound(llp::Rtr expected_rtr, bool scatter_reads, Host& host, ReadQueues& reads, Termination& termination,
          DeliveryAccount& account, Outbound& outbound);

  // As UlpduSink.
  bool Begin(size_t length, ByteSpan head, llp::UlpduPlan* plan);
  bool End();
  void OnUnplaceable();

  bool rtr_received() const { return !awaiting_rtr_; }
  // The segment between Begin and End goes into `stag`; the stream then ends.
  bool Forget(ddp::STag stag);
  // No message is partly received.
  bool idle() const;

  // Of a Write, a Send or a Read's answer the last segment has not come.
  bool message_open() const { return tagged_open_ || queues_[kSendQueue].message_open(); }

 private:
  // One segment of an untagged message that is no Send.
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
  // A receive for the message that begins. False: the stream failed, or (reliable) the segment is dropped: `plan` says so.
  bool TakeReceive(uint64_t needed, llp::UlpduPlan* plan);
  // The host knows whom the current segment is for. False: the stream failed, there is no such target.
  bool SelectTarget() { return !account_.targeted || account_.target_selected || SelectNewTarget(); }
  bool SelectNewTarget();
  // The current segment is a request that the peer will send again.
  bool Drop(llp::UlpduPlan* plan);
  // Payload of a tagged segment into the memory that the host names.
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
  // The message that ends is the RTR, which is nobody's request.
  bool IsRtr();

  // The RDMAP control byte; nullptr after the stream failed.
  const OpcodeInfo* CheckOpcode(uint8_t control, bool tagged, uint32_t queue);
  // End the stream for what is wrong with the current segment; false.
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
  bool unplaceable_ = false;   // its Read's memory is not there any more
  bool dropped_ = false;       // it is a request that the peer will send again
  bool has_immediate_ = false; // of a Send
  const OpcodeInfo* info_ = nullptr;
  bool acknowledge_ = false;  // of the segment: ControlByte
  uint32_t payload_length_ = 0;
  ddp::STag placing_;  // tagged, with payload
  uint32_t word_ = 0;  // RsvdULP[8:39] of a Send: the STag to invalidate, or immediate data
  OffendingSegment segment_;

  // Messages whose last segment has not come.
  bool tagged_open_ = false;
  const OpcodeInfo* open_send_ = nullptr;
  bool unplaced_send_ = false;   // unreliable: it found no receive
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
