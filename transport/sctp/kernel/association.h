#ifndef TRANSPORT_SCTP_KERNEL_ASSOCIATION_H_
#define TRANSPORT_SCTP_KERNEL_ASSOCIATION_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "transport/network.h"
#include "transport/sctp/kernel/readiness.h"
#include "transport/sctp/sctp.h"

namespace weft::transport::sctp {

class KernelAssociation;

// All existing associations, to query their paths. Thread safe.
struct KernelAssociations {
  std::mutex mutex;
  std::set<KernelAssociation*> all;
};

// An association on a socket of the kernel's SCTP.
class KernelAssociation final : public Association {
 public:
  // Takes over the descriptor, which is connected or connecting. Both references outlive the association.
  KernelAssociation(Network& network, KernelAssociations& registry, int fd);
  ~KernelAssociation() override;

  void Watch(std::shared_ptr<ReadyHandler> handler) override;
  void SetReading(bool reading) override;
  IoResult Send(const OutgoingMessage& message) override;
  void Flush() override {}
  bool DamageNextPacket() override { return false; }
  Received Receive(std::span<const iovec> into) override;
  Interest Poll() override;
  void Lend() override {}  // Poll() lends its socket, which receives no other association's packets
  void Recall() override {}
  WatchId PacketWatch() const override { return readiness_->watch(); }
  void Shutdown() override;
  void Abort(const std::string& reason) override;

  std::vector<SocketAddress> LocalAddresses() const override;
  std::vector<SocketAddress> PeerAddresses() const override;
  uint16_t PeerUdpPort() const override;
  std::vector<Path> Paths() const override;
  int SetPrimary(const SocketAddress& path) override;
  size_t FragmentationPoint() const override;
  bool HasUnacknowledged() const override;
  bool Advances() override;

 private:
  bool Usable() const;
  std::optional<Received> OnNotification(std::span<const uint8_t> bytes);
  Received Up(Event::Kind kind, uint16_t streams_in, uint16_t streams_out);
  Received End(Received::Kind kind, int error);
  IoResult SendWhole(const OutgoingMessage& message, std::span<const iovec> pieces);
  void Close(bool abort);

  KernelAssociations& registry_;
  const std::shared_ptr<Readiness> readiness_;
  const pid_t process_;
  const size_t longest_;  // longest message in bytes that the kernel accepts
  std::atomic<int> fd_;  // -1: closed
  bool up_ = false;
  bool in_message_ = false;  // part of a message was received
  bool shut_down_ = false;
  uint16_t streams_out_ = 0;
  // A message that is handed over in parts: the kernel accepts only whole messages.
  std::vector<uint8_t> parts_;
  bool in_parts_ = false;
  std::vector<std::pair<SocketAddress, uint32_t>> failures_;  // by path
  mutable std::mutex mutex_;                                  // guards failures_
  uint64_t acknowledgements_ = 0;                             // value at the last Advances()
  std::optional<Received> end_;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_KERNEL_ASSOCIATION_H_
