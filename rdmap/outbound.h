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

// The sending half of a stream: chooses the next message and segments it. Only one message at a time is being
// segmented; only a Terminate may interrupt another message. On a reliable stream the answers to Reads and atomics that
// arrived before the cause of the Terminate precede it, since those requests are not to blame.
class Outbound {
 public:
  Outbound(uint32_t ord, Host& host, ReadQueues& reads, Termination& termination, DeliveryAccount& account);

  // `only_terminate`: a responder in peer-to-peer mode may send nothing else before the RTR has arrived.
  bool Transmit(llp::UlpduWriter& out, bool only_terminate);
  void OnTransmitted(uint64_t position);
  bool HasWork(bool only_terminate) const;
  bool HasWorkBesideRequests(bool only_terminate) const;
  void SendRtr(llp::Rtr kind) { rtr_ = kind; }
  uint64_t terminate_end_position() const { return terminate_end_position_; }

  // Reliable streams (rdmap/delivery.h).
  void Acknowledge() { acknowledge_now_ = true; }  // in the next Transmit, even if there is nothing else
  void Greet() { greeting_ = true; }               // sends an acknowledgement although none is owed
  // The peer acknowledges our requests. Returns false if that cannot be true; the stream must end.
  bool OnAcknowledged(uint32_t sequence);
  bool OnAcknowledgedAlong(uint8_t count);  // together with a ULPDU
  // The answer to the Read or atomic with this number arrived: the peer has carried out all requests before it.
  void OnAnswered(uint32_t sequence);
  bool OnNotReady(const DeliveryMessage& message);
  void Resume();
  bool waiting_for_receiver() const { return stalled_; }
  uint32_t acknowledged() const { return acknowledged_; }
  // After the payload of the current request is in the peer's memory, no further message about it will come.
  bool ends_when_placed() const;
  bool awaited() const { return source_ == Source::kRequest && request_->acknowledge; }

  // If a Read Response reads `stag`, or a Read of ours places data there, the stream ends and the result is true.
  bool Forget(ddp::STag stag);
  // No message is partly sent or waits for Sent().
  bool idle() const { return !segmenter_.active() && rtr_ == llp::Rtr::kNone && oldest_unsent_ == nullptr; }

 private:
  enum class Source : uint8_t { kNone, kRtr, kResponse, kRequest, kImmediate, kTerminate };

  // Begins the next message. Returns false if no message may be sent now.
  bool StartMessage(llp::UlpduWriter& out);
  // Tries to carry out a Read by the wire alone. Returns whether it did.
  bool FetchByOurselves(Request& request, llp::UlpduWriter& out);
  void StartRtr();
  void StartResponse();
  void StartRequest(Request& request);
  void StartReadRequest(const ReadRequestHeader& header);
  void StartAtomicRequest(const Request& request);
  void StartImmediate();  // after the Write of request_
  void StartSend(const Request& request);
  bool Asks() const;  // whether the started message asks for an acknowledgement
  void StartTagged(Opcode opcode, ddp::STag stag, ddp::TaggedOffset offset, std::span<const iovec> payload,
                   uint32_t length, bool volatile_payload, bool immediate = false);
  void StartUntagged(Opcode opcode, uint32_t word, std::span<const iovec> payload, uint32_t length,
                     bool volatile_payload, bool immediate = false);
  void FinishMessage(const llp::UlpduWriter& out);
  void AcceptOurselves();
  bool TransmitTerminate(llp::UlpduWriter& out);
  // Sends what delivery requires. `along`: other messages are sent anyway.
  bool TransmitDelivery(llp::UlpduWriter& out, bool along);
  bool AppendDelivery(llp::UlpduWriter& out, const DeliveryMessage& message);
  // The number of requests to acknowledge, if this is the only thing to report and the wire carries it with the next
  // ULPDU; else 0.
  uint8_t AcknowledgedAlong(const llp::UlpduWriter& out) const;
  void MarkAcknowledged();
  bool owes_delivery() const {
    return account_.reliable() && (resume_ || account_.refused || greeting_ || (acknowledge_now_ && account_.owed() != 0));
  }

  // The host's next request, unless it has to wait for Reads (ORD, fence).
  Request* NextReady() const;
  // Points the segmenter to the source of the current response. Returns false if the source is gone; the stream has
  // failed.
  bool FindResponsePayload();
  bool RefuseRead(AccessError error);  // refuses the current one; returns false
  // Whether answers precede the Terminate.
  bool Answering() const;
  // Stops in the middle of our current request.
  void AbandonRequest();
  // The stream has failed at the inbound Read `index`, or there is nothing left to read.
  void DropAnswersFrom(uint32_t index);

  Host& host_;
  ReadQueues& reads_;
  Termination& termination_;
  DeliveryAccount& account_;
  const uint32_t ord_;

  llp::Rtr rtr_ = llp::Rtr::kNone;       // still to be sent
  Source source_ = Source::kNone;        // of the current message
  bool response_next_ = true;            // whose turn it is if both have something to send
  bool response_payload_known_ = false;  // in this call of Transmit
  ReadPayload read_payload_;             // the same
  unsigned fetched_ = 0;                 // Reads that the wire carried out alone in this call of Transmit
  Request* request_ = nullptr;           // the current one
  // FIFO through Request::next: Writes and Sends that are appended, but not yet Sent()
  Request* oldest_unsent_ = nullptr;
  Request* newest_unsent_ = nullptr;
  uint64_t transmitted_ = 0;             // last argument of OnTransmitted()
  uint64_t terminate_end_position_ = 0;
  uint32_t sent_sequence_ = 0;           // last message of a request that was started
  uint32_t acknowledged_ = 0;            // the peer has carried out all up to this one
  uint32_t heard_ = 0;                   // the peer has acknowledged all up to this one
  bool acknowledge_now_ = false;
  bool greeting_ = false;
  bool stalled_ = false;                 // the peer has no receive; waits for Resume()
  bool resume_ = false;                  // kResume is to be sent
  uint32_t target_ = 0;                  // last target that the peer was told
  bool target_owed_ = false;             // the peer must be told request_'s target before its first segment
  ddp::Segmenter segmenter_;
  std::array<ddp::Msn, kExtendedQueueCount> next_msn_{ddp::Msn(1), ddp::Msn(1), ddp::Msn(1), ddp::Msn(1), ddp::Msn(0)};
  iovec piece_{};                                                // payload of a response or of a control message
  static_assert(TerminateMessage::kMaxLength >= AtomicRequestHeader::kLength);
  std::array<uint8_t, TerminateMessage::kMaxLength> control_{};  // Read or Atomic Request, immediate data, Terminate
};

}  // namespace weft::rdmap

#endif  // RDMAP_OUTBOUND_H_
