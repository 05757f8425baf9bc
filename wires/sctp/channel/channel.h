#ifndef WIRES_SCTP_CHANNEL_CHANNEL_H_
#define WIRES_SCTP_CHANNEL_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "llp/channel.h"
#include "transport/network.h"
#include "wires/sctp/association/association.h"
#include "wires/sctp/channel/session_faults.h"

namespace weft::sctp {

// One DDP stream session as a channel, after it was accepted. Other channels share its association;
// wires/sctp/README.md has the rule of locks. The owner serialises with an engine's lock. The sink is called only from
// this channel's Receive().
class Channel final : public llp::Channel, private llp::UlpduWriter {
 public:
  // The queue pair, for fault selectors.
  struct Owner {
    uint32_t queue_pair = 0;
    std::string device;
  };
  Channel(std::unique_ptr<Seat> seat, transport::SocketAddress peer, Owner owner)
      : seat_(std::move(seat)), peer_(std::move(peer)), owner_(std::move(owner)) {}

  void Start(llp::UlpduSink& sink, std::weak_ptr<llp::ChannelUser> user) override;

  bool ReadyToSend() override { return true; }
  bool may_send() const override { return true; }
  llp::UlpduWriter& writer() override { return *this; }
  llp::Flushed Flush() override;
  uint64_t consumed() const override;
  bool empty() const override;
  bool failed() const override;
  void TakeOver(const void* begin, size_t length, Copy copy) override;
  bool payload_gone() const override;

  llp::Received Receive(unsigned most) override;
  llp::Received TryReceive(unsigned most) override;
  bool in_ulpdu() const override { return false; }  // messages arrive whole
  void DivertPlacement() override {}

  // The watch of the socket for all packets of the process; the association calls the users concerned.
  transport::WatchId Watch(std::shared_ptr<transport::ReadyHandler>) override;
  void UpdateInterest() override {}
  bool Lend() override;
  bool quiet() const override { return !blocked_; }

  void EndOutput() override;
  void Close(const std::function<void(llp::UlpduWriter&)>& last) override;
  void Abort() override;
  void OnExit() override { EndOutput(); }

  transport::SocketAddress PeerAddress() const override { return peer_; }
  void Annotate(const std::string&) override {}
  std::string Describe() const override;
  const char* wire() const override { return "sctp"; }
  void ApplyFaults() override;

 private:
  // llp::UlpduWriter. These take the lock themselves, or are called from within Receive() or Close().
  size_t max_ulpdu() const override;
  bool HasRoom(size_t payload_length, size_t payload_pieces) const override;
  void Append(ByteSpan header, std::span<const iovec> payload, bool volatile_payload) override;
  uint64_t appended() const override;

  // Requires the association's lock, which this session's Lock holds.
  llp::Received ReceiveLocked(unsigned most);
  // For faults. Requires the association's lock.
  void Limit();
  void EndByFault();
  void KeepSilent();

  std::unique_lock<std::mutex> Hold() const;
  ddp::sctp::Session& session() const { return seat_->session(); }

  std::unique_ptr<Seat> seat_;  // null: closed
  std::weak_ptr<llp::ChannelUser> user_;
  std::unique_ptr<SessionFaults> faults_;  // null: there are none
  const transport::SocketAddress peer_;
  const Owner owner_;
  bool inside_ = false;       // this thread has the association's lock
  bool blocked_ = false;      // part of the appended data is not sent
  bool turned_away_ = false;  // TryReceive() did not get the lock; until Lend()
  uint64_t reported_ = 0;     // part of consumed() that Flush() has reported
};

}  // namespace weft::sctp

#endif  // WIRES_SCTP_CHANNEL_CHANNEL_H_
