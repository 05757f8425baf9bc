#ifndef TRANSPORT_SCTP_USRSCTP_ASSOCIATION_H_
#define TRANSPORT_SCTP_USRSCTP_ASSOCIATION_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/sctp/sctp.h"
#include "transport/sctp/usrsctp/stack.h"

namespace weft::transport::sctp {

// An association and its usrsctp socket. `stack` outlives it.
class UsrsctpAssociation final : public Association, public Watched {
 public:
  // Owns `socket`. Requires the stack's lock. `port`: our port in network byte order, which was added to the stack.
  UsrsctpAssociation(Stack& stack, struct socket* socket, uint16_t port);
  ~UsrsctpAssociation() override;

  void Watch(std::shared_ptr<ReadyHandler> handler) override;
  void SetReading(bool reading) override;
  IoResult Send(const OutgoingMessage& message) override;
  bool DamageNextPacket() override;
  void Flush() override;
  Received Receive(std::span<const iovec> into) override;
  Interest Poll() override;
  void Lend() override;
  void Recall() override;
  WatchId PacketWatch() const override;
  void Shutdown() override;
  void Abort(const std::string& reason) override;

  std::vector<SocketAddress> LocalAddresses() const override;
  std::vector<SocketAddress> PeerAddresses() const override;
  uint16_t PeerUdpPort() const override;
  std::vector<Path> Paths() const override;
  std::vector<Path> PathsLocked() const override;
  int SetPrimary(const SocketAddress& path) override;
  size_t FragmentationPoint() const override;
  bool HasUnacknowledged() const override;
  bool Advances() override;

  // Requires the stack's lock. Packets with these addresses from another UDP port are no longer accepted.
  void Know(const std::vector<SocketAddress>& peer_addresses, uint16_t udp_port);
  // Requires the lock. Runs `work` once the association is up.
  void WhenUp(std::function<void()> work) { when_up_ = std::move(work); }
  void LookAtPaths(Time now) override;
  // Requires the lock. Leaves the destructor nothing to do.
  void CloseLocked();

 private:
  // These require the lock.
  void Refresh();
  void Forget();
  std::optional<Received> OnNotification(std::span<const uint8_t> bytes);
  Received Up(Event::Kind kind);
  std::optional<uint32_t> IndicationOfLastInit() const;
  int WhyLost(int error) const;
  Received End(Received::Kind kind, int error);
  std::optional<sctp_status> Status() const;
  std::optional<sctp_paddrinfo> InfoOf(const SocketAddress& address) const;
  bool Usable() const { return socket_ != nullptr && stack_.InThisProcess(); }

  Stack& stack_;
  struct socket* socket_;
  const uint16_t port_;
  std::vector<PeerKey> known_;
  std::vector<SocketAddress> peer_addresses_;  // last known value
  uint16_t udp_port_ = 0;
  std::function<void()> when_up_;
  bool connected_once_ = false;
  bool in_message_ = false;    // part of a message was received
  bool explicit_end_ = false;  // the end of a message is passed to usrsctp explicitly
  std::optional<OutgoingMessage> in_parts_;
  size_t queued_bytes_ = 0;  // bytes that wait for more, or for Flush()
  bool shut_down_ = false;
  uint32_t acknowledged_ = 0;  // value at the last Advances()
  std::optional<Received> end_;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_ASSOCIATION_H_
