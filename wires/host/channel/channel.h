#ifndef WIRES_HOST_CHANNEL_CHANNEL_H_
#define WIRES_HOST_CHANNEL_CHANNEL_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "llp/channel.h"
#include "transport/network.h"
#include "wires/host/channel/lent_memory.h"
#include "wires/host/channel/polling_places.h"
#include "wires/host/channel/references.h"
#include "wires/host/channel/watchman.h"
#include "wires/host/grants/granter.h"
#include "wires/host/grants/placer.h"
#include "wires/host/meeting/meeting_point.h"
#include "wires/host/meeting/peer_memory.h"
#include "wires/host/ring/consumer.h"
#include "wires/host/ring/producer.h"

namespace weft::host {

struct ChannelOptions {
  bool initiator = false;
  bool reach = true;  // access to the peer's memory and, as far as we decide it, the peer's to ours
  // Whether faults concern this connection that act on the bytes of a connection. May be empty.
  std::function<bool()> needs_tcp;
};

// A stream of ULPDUs through memory that both processes share. The TCP connection over which they found each other
// carries nothing any more. It is the sign of life; when it ends, the stream ends. The initiator joins before it sends
// anything. The responder may not send before that (RFC 5044 section 7.1.3); it sees which way the first ULPDU comes,
// and uses the same.
//
// A short payload is copied into the ring. A long one is read by the receiver from the sender's memory if the kernel
// allows it, which was tested before; otherwise it goes through the ring in pieces. A ULPDU that only places its
// payload in a buffer that the peer has opened is placed there by the sender itself. The peer opens a buffer when it
// has received a first ULPDU for it, and later finds out that the others have arrived. Either direction can move back
// to TCP for good, between two ULPDUs: for faults that need a byte stream.
class Channel final : public llp::Channel, private llp::UlpduWriter {
 public:
  // `tcp`: a channel over the connection that is not started. It carries everything if the initiator does not join.
  Channel(transport::Network& network, std::unique_ptr<llp::Channel> tcp, std::unique_ptr<Met> met, ChannelOptions options);
  ~Channel() override;

  void Start(llp::UlpduSink& sink, std::weak_ptr<llp::ChannelUser> user) override;

  bool ReadyToSend() override;
  bool may_send() const override { return out_ == Way::kRing || tcp_->may_send(); }
  llp::UlpduWriter& writer() override { return *this; }
  llp::Flushed Flush() override;
  uint64_t consumed() const override;
  bool empty() const override { return references_.empty() && tcp_->empty(); }
  bool failed() const override { return error_ != 0 || payload_gone_ || (end_ && end_->kind == llp::Received::Kind::kFailed) || tcp_->failed(); }
  void TakeOver(const void* begin, size_t length, Copy copy) override;
  bool payload_gone() const override { return payload_gone_ || tcp_->payload_gone(); }
  std::shared_ptr<llp::LentMemory> lent() override { return lent_; }

  llp::Received Receive(unsigned most) override;
  // The ring places them whole.
  bool in_ulpdu() const override { return fetching_ || (in_ != Way::kRing && tcp_->in_ulpdu()); }
  void Shut() override;
  void DivertPlacement() override {
    if (fetching_) fetching_->plan.discard = true;
    tcp_->DivertPlacement();
  }
  bool ProbeIsDue() override { return in_ != Way::kRing && tcp_->ProbeIsDue(); }

  transport::WatchId Watch(std::shared_ptr<transport::ReadyHandler> handler) override;
  void UpdateInterest() override { tcp_->UpdateInterest(); }
  bool Lend() override;
  void EndLend() override;
  bool idle() const override {
    return in_ == Way::kRing && consumer_.empty() && consumer_.unpublished() == 0 && watchman_->lent() && out_ == Way::kRing && quiet() &&
           !owes_bell_ && error_ == 0 && !end_ && !bell_news_->is_there() && !tcp_news_->is_there();
  }
  bool quiet() const override { return !starved_ && !payload_gone_ && references_.empty() && (out_ == Way::kRing || tcp_->quiet()); }

  void EndOutput() override {
    output_ended_ = true;
    tcp_->EndOutput();
  }
  void Close(const std::function<void(llp::UlpduWriter&)>& last) override;
  void Abort() override;
  std::atomic<uint32_t>* CarriedOutHere() override {
    return options_.initiator ? &control().carried_out_by_initiator : &control().carried_out_by_responder;
  }
  std::optional<uint32_t> CarriedOutByPeer() override {
    return (options_.initiator ? control().carried_out_by_responder : control().carried_out_by_initiator).load(std::memory_order_acquire);
  }
  void OnExit() override;

  transport::SocketAddress PeerAddress() const override { return tcp_->PeerAddress(); }
  void Annotate(const std::string& comment) override { tcp_->Annotate(comment); }
  std::string Describe() const override;
  const char* wire() const override { return out_ == Way::kRing ? "host" : tcp_->wire(); }
  void ApplyFaults() override;

 private:
  enum class Way : uint8_t {
    kUndecided,  // responder: the way by which the first ULPDU comes
    kRing,
    kTcp,
  };

  // llp::UlpduWriter
  size_t max_ulpdu() const override;
  bool HasRoom(size_t payload_length, size_t payload_pieces) const override;
  void Append(ByteSpan header, std::span<const iovec> payload, bool volatile_payload) override {
    AppendAcknowledging(header, payload, volatile_payload, 0);
  }
  bool CarriesAcknowledgements() const override { return out_ == Way::kRing; }
  void AppendAcknowledging(ByteSpan header, std::span<const iovec> payload, bool volatile_payload, uint8_t acknowledged) override;
  bool placed() const override { return placed_; }
  bool Fetch(uint32_t tag, uint64_t offset, std::span<const iovec> to, size_t length, bool alone) override;
  uint64_t appended() const override { return appended_ + tcp_->writer().appended(); }

  bool AllIsTaken();
  bool PlaceByOurselves(ByteSpan header, std::span<const iovec> payload, size_t length);
  bool OwesBell();
  void Delivered(ByteSpan header, const llp::UlpduPlan& plan);
  bool DeliverPlaced(const Consumer::Record& record, llp::Received* received);

  bool GoesByReference(size_t payload_length) const { return peer_reads_ && payload_length >= kLeastReference; }
  ControlPage& control() { return met_->memory->control(); }
  void Join();
  void SettleOnTcp();
  void LearnWhetherWeRead();
  llp::Received Decide(unsigned most);
  llp::Received ReceiveFromRing(unsigned most);
  void TellOfPassed();
  void CallAgain();
  bool DeliverUlpdu(const Consumer::Record& record, llp::Received* received);
  bool Deliver(const Consumer::Record& record, llp::Received* received);
  bool DeliverReference(const Consumer::Record& record, llp::Received* received);
  void Publish();
  uint64_t RingConsumed() const { return references_.empty() ? appended_ : references_.oldest().position_before; }
  bool DropPassed();
  void MoveToTcp();
  bool AskForCopy(const Consumer::Record& record, const llp::UlpduPlan& plan, llp::Received* received);
  bool TakeCopy(llp::Received* received);
  bool Revoked(llp::Received* received);
  void CopyRefused();
  void HearBell();
  void RingBell();
  void Unwatch();
  void Leave();

  // Length in bytes of the FPDU that MPA would make of the ULPDU, without markers (RFC 5044 section 4), so that
  // counters do not depend on the wire.
  static size_t FpduLength(size_t ulpdu) { return (2 + ulpdu + 3) / 4 * 4 + 4; }

  // Longer Reads would delay the poster; the peer references their data, which is read when there is nothing else to
  // do.
  static constexpr size_t kMostFetched = 64 * 1024;
  // Shorter payloads are copied, which is faster than a call of the kernel.
  static constexpr size_t kLeastReference = 8 * 1024;
  // A reference cannot be read, and the peer was asked for a copy. Its ULPDU is between Begin() and End().
  struct Fetching {
    Consumer::Record record;
    llp::UlpduPlan plan;
  };

  transport::Network& network_;
  const std::unique_ptr<llp::Channel> tcp_;
  std::shared_ptr<Met> met_;
  const ChannelOptions options_;
  PeerMemory peer_memory_;
  Placer placer_;
  const std::shared_ptr<LentMemory> lent_;
  References& references_;  // these two belong to it
  Granter& granter_;
  mutable Producer producer_;
  Consumer consumer_;
  llp::UlpduSink* sink_ = nullptr;  // set by Start()
  std::weak_ptr<llp::ChannelUser> user_;

  Way out_, in_;
  std::optional<llp::Received> end_;  // the end of the TCP connection; the ring may have more
  bool owes_bell_ = false;            // consumed lines are published, but the peer was not woken
  // an errno: the peer violated the rules of the ring, or its memory could not be read
  int error_ = 0;
  bool we_read_ = false;              // we read the peer's memory, or did when the peer was told so
  bool wants_tcp_ = false;            // because of faults
  bool moved_ = false;                // we send over TCP
  bool output_ended_ = false;         // of TCP
  bool closing_ = false;

  // To the peer. Positions count the bytes that MPA would have sent.
  mutable bool peer_reads_ = false;
  mutable bool starved_ = false;  // there was no room
  uint64_t appended_ = 0, reported_ = 0;
  bool placed_ = false;           // the last ULPDU was placed
  uint64_t to_place_ = 0;         // everything before this line is already in the peer's memory
  uint64_t to_tell_ = 0;          // the peer must be told about lines up to this one
  uint64_t rung_ = 0;             // the peer was woken for lines up to this one
  bool payload_gone_ = false;     // some payload to be sent is no longer mapped

  std::optional<Fetching> fetching_;

  std::shared_ptr<Watchman> watchman_;
  PollingPlaces places_;
  transport::WatchId bell_watch_ = 0;
  std::shared_ptr<News> bell_news_, tcp_news_;
};

}  // namespace weft::host

#endif  // WIRES_HOST_CHANNEL_CHANNEL_H_
