#ifndef WIRES_MPA_CHANNEL_CHANNEL_H_
#define WIRES_MPA_CHANNEL_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/buffer_pool.h"
#include "base/processors.h"
#include "faults/stream.h"
#include "llp/channel.h"
#include "mpa/fpdu_receiver.h"
#include "mpa/fpdu_sender.h"
#include "transport/network.h"

namespace weft::mpa {

struct ChannelOptions {
  bool initiator = false;     // it sends the first FPDU (RFC 5044 section 7.1.3)
  unsigned revision = 1;      // for a trace
  bool crc = true;
  bool send_markers = false, receive_markers = false;
  size_t max_ulpdu = 0;       // largest ULPDU that we may send
  // Responder: the MPA Reply, which is sent before any FPDU.
  std::vector<uint8_t> prologue;
  // Initiator: the peer may not see our first message without a probe (see ProbeIsDue).
  bool probe = false;
  // The queue pair, for fault selectors.
  uint32_t queue_pair = 0;
  std::string device;
  bool start_up_write = false;  // the first write is a ready-to-receive message, which faults ignore
};

// MPA over a byte stream (RFC 5044): FPDUs in both directions, after the start-up. Owns the stream; `network` and
// `pool` outlive it.
class Channel final : public llp::Channel {
 public:
  Channel(transport::Network& network, BufferPool& pool, std::unique_ptr<transport::ByteStream> stream, ChannelOptions options);
  ~Channel() override;

  void Start(llp::UlpduSink& sink, std::weak_ptr<llp::ChannelUser> user) override;

  bool ReadyToSend() override;
  bool may_send() const override { return may_send_ && !output_ended_; }
  llp::UlpduWriter& writer() override { return sender_; }
  llp::Flushed Flush() override;
  uint64_t consumed() const override { return sender_.consumed(); }
  bool empty() const override { return prologue_.empty() && sender_.empty(); }
  bool failed() const override { return failed_ || sender_.payload_gone(); }
  void TakeOver(const void* begin, size_t length, Copy copy) override { sender_.TakeOver(begin, length, copy); }
  bool payload_gone() const override { return payload_gone_ || sender_.payload_gone(); }

  llp::Received Receive(unsigned most) override;
  bool in_ulpdu() const override { return !receiver_->at_boundary(); }
  void DivertPlacement() override { receiver_->DivertPlacement(); }
  bool ProbeIsDue() override;

  transport::WatchId Watch(std::shared_ptr<transport::ReadyHandler> handler) override;
  void UpdateInterest() override;
  bool Lend() override {
    network_.Lend(watch_);
    return OnlyOneProcessor();  // the peer may be on this host
  }
  bool quiet() const override { return !blocked_ && !interest_.write && faulty_ == nullptr; }

  void EndOutput() override;
  void Close(const std::function<void(llp::UlpduWriter&)>& last) override;
  void Abort() override;

  transport::SocketAddress PeerAddress() const override { return stream_->PeerAddress(); }
  void Annotate(const std::string& comment) override { stream_->Annotate(comment); }
  std::string Describe() const override;
  const char* wire() const override { return "tcp"; }
  void ApplyFaults() override { Wrap(/*start_up_write=*/false); }

 private:
  void Unwatch();
  void Wrap(bool start_up_write);
  void ProbeLater();

  transport::Network& network_;
  BufferPool& pool_;
  const ChannelOptions options_;
  std::unique_ptr<transport::ByteStream> stream_;
  faults::FaultyStream* faulty_ = nullptr;  // stream_, if faults concern it
  FpduSender sender_;
  std::optional<FpduReceiver> receiver_;    // created by Start()
  std::weak_ptr<llp::ChannelUser> user_;
  std::vector<uint8_t> prologue_;           // the part that is not sent yet
  transport::WatchId watch_ = 0;
  transport::Interest interest_;
  transport::TimerId probe_timer_ = 0;
  transport::Time probe_at_{};
  unsigned probes_left_ = 0;
  bool may_send_;            // the peer need not send first
  bool output_ended_ = false;
  bool blocked_ = false;     // the stream accepted less than there was
  bool failed_ = false;
  bool payload_gone_ = false;  // the kernel found it unmapped
  bool read_ended_ = false;  // there is nothing more to read
};

}  // namespace weft::mpa

#endif  // WIRES_MPA_CHANNEL_CHANNEL_H_
