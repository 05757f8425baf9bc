#ifndef RDMAP_OUTBOUND_H_
#define RDMAP_OUTBOUND_H_

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "ddp/segmenter.h"
#include "ddp/types.h"
#include "llp/stream.h"
#include "llp/ulpdu.h"
#include "rdmap/delivery.h"
#include "rdmap/host.h"
#include "rdmap/opcode.h"
#include "rdmap/read_payload.h"
#include "rdmap/read_queues.h"
#include "rdmap/terminate.h"
#include "rdmap/termination.h"

namespace weft::rdmap {

// The sending half of a stream: chooses what goes next and segments it. One message at a time is cut into segments; a
// Terminate alone breaks into another message. On a reliable stream it follows the answers to the Reads and atomics that came before
// what it is about, as their requests are not to blame.
class Outbound {
 public:
  Outbound(uint32_t ord, Host& host, ReadQueues& reads, Termination& termination, DeliveryAccount& account);

  // `only_terminate`: the responder in peer-to-peer mode has nothing else to say before the RTR came.
  bool Transmit(llp::UlpduWriter& out, bool only_terminate);
  void OnTransmitted(uint64_t position);
  bool HasWork(bool only_terminate) const;
  bool HasWorkBesideRequests(bool only_terminate) const;
  void SendRtr(llp::Rtr kind) { rtr_ = kind; }
  uint64_t terminate_end_position() const { return terminate_end_position_; }

  // Reliable streams (rdmap/delivery.h).
  void Acknowledge() { acknowledge_now_ = true; }  // with the next Transmit, whatever else there is
  void Greet() { greeting_ = true; }               // an acknowledgement although none is owed
  // What the peer says of our requests. False: it cannot be true, and the stream is to end.
  bool OnAcknowledged(uint32_t sequence);
  bool OnAcknowledgedAlong(uint8_t count);  // beside a ULPDU
  // The answer to a Read or an atomic came, whose number that is: the peer has carried out what was before it.
  void OnAnswered(uint32_t sequence);
  bool OnNotReady(const DeliveryMessage& message);
  void Resume();
  bool waiting_for_receiver() const { return stalled_; }
  uint32_t acknowledged() const { return acknowledged_; }
  // Once the payload of the request under way is in the peer's memory, nothing is to be heard of it any more.
  bool ends_when_placed() const;
  bool awaited() const { return source_ == Source::kRequest && request_->acknowledge; }

  // A Read Response to send reads `stag`, or a Read of ours sinks into it; the stream then ends.
  bool Forget(ddp::STag stag);
  // No message is partly sent or waits for Sent().
  bool idle() const { return !segmenter_.active() && rtr_ == llp::Rtr::kNone && oldest_unsent_ == nullptr; }

 private:
  enum class Source : uint8_t { kNone, kRtr, kResponse, kRequest, kImmediate, kTerminate };

  // Begins the next message; false: there is none that may go.
  bool StartMessage(llp::UlpduWriter& out);
  // A Read that the wire can do alone, and did.
  bool FetchByOurselves(Request& request, llp::UlpduWriter& out);
  void StartRtr();
  void StartResponse();
  void StartRequest(Request& request);
  void StartReadRequest(const ReadRequestHeader& header);
  void StartAtomicRequest(const Request& request);
  void StartImmediate();  // behind request_'s Write
  void StartSend(const Request& request);
  bool Asks() const;  // for an acknowledgement of the message that is started
  void StartTagged(Opcode opcode, ddp::STag stag, ddp::TaggedOffset offset, std::span<const iovec> payload,
                   uint32_t length, bool volatile_payload, bool immediate = false);
  void StartUntagged(Opcode opcode, uint32_t word, std::span<const iovec> payload, uint32_t length,
                     bool volatile_payload, bool immediate = false);
  void FinishMessage(const llp::UlpduWriter& out);
  void AcceptOurselves();
  bool TransmitTerminate(llp::UlpduWriter& out);
  // What is to be said of delivery; `along`: other things go out anyway.
  bool TransmitDelivery(llp::UlpduWriter& out, bool along);
  bool AppendDelivery(llp::UlpduWriter& out, const DeliveryMessage& message);
  // Requests that are to be acknowledged, where that is all there is to say and the wire carries it beside the next ULPDU; else 0.
  uint8_t AcknowledgedAlong(const llp::UlpduWriter& out) const;
  void MarkAcknowledged();
  bool owes_delivery() const {
    return account_.reliable() && (resume_ || account_.refused || greeting_ || (acknowledge_now_ && account_.owed() != 0));
  }

  // The host's next request unless it has to wait for Reads (ORD, fence).
  Request* NextReady() const;
  // Points the segmenter at the source of the response under way; false: it is gone, and so is the stream.
  bool FindResponsePayload();
  bool RefuseRead(AccessError error);  // the one under way; false
  // There are answers that go in front of the Terminate.
  bool Answering() const;
  // What we asked for ends in the middle.
  void AbandonRequest();
  // The stream has failed at the inbound Read `index`, or there is nothing left to read.
  void DropAnswersFrom(uint32_t index);

  Host& host_;
  ReadQueues& reads_;
  Termination& termination_;
  DeliveryAccount& account_;
  const uint32_t ord_;

  llp::Rtr rtr_ = llp::Rtr::kNone;       // still to be sent
  Source source_ = Source::kNone;        // of the message under way
  bool response_next_ = true;            // whose turn it is when both have something
  bool response_payload_known_ = false;  // in this call of Transmit
  ReadPayload read_payload_;             // the same
  unsigned fetched_ = 0;                 // Reads that the wire did alone, in this call of Transmit
  Request* request_ = nullptr;           // under way
  Request* oldest_unsent_ = nullptr;     // FIFO through Request::next: appended, not yet Sent(); Writes and Sends
  Request* newest_unsent_ = nullptr;
  uint64_t transmitted_ = 0;             // as OnTransmitted() was told
  uint64_t terminate_end_position_ = 0;
  uint32_t sent_sequence_ = 0;           // of the last message of a request that was started
  uint32_t acknowledged_ = 0;            // up to here the peer has them
  uint32_t heard_ = 0;                   // and says so
  bool acknowledge_now_ = false;
  bool greeting_ = false;
  bool stalled_ = false;                 // the peer has no receive; until Resume()
  bool resume_ = false;                  // kResume is to be sent
  uint32_t target_ = 0;                  // that the peer was told of last
  bool target_owed_ = false;             // request_'s is to be told before its first segment
  ddp::Segmenter segmenter_;
  std::array<ddp::Msn, kExtendedQueueCount> next_msn_{ddp::Msn(1), ddp::Msn(1), ddp::Msn(1), ddp::Msn(1), ddp::Msn(0)};
  iovec piece_{};                                                // payload of a response or of a control message
  static_assert(TerminateMessage::kMaxLength >= AtomicRequestHeader::kLength);
  std::array<uint8_t, TerminateMessage::kMaxLength> control_{};  // Read or Atomic Request, immediate data, Terminate
};

}  // namespace weft::rdmap

#endif  // RDMAP_OUTBOUND_H_
