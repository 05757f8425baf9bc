#ifndef TRANSPORT_SCTP_KERNEL_LISTENER_H_
#define TRANSPORT_SCTP_KERNEL_LISTENER_H_

#include <memory>
#include <vector>

#include "transport/network.h"
#include "transport/sctp/kernel/association.h"
#include "transport/sctp/kernel/readiness.h"
#include "transport/sctp/sctp.h"

namespace weft::transport::sctp {

class KernelListener final : public Listener {
 public:
  // Takes over the descriptor, which is listening. Both references outlive the listener.
  KernelListener(Network& network, KernelAssociations& registry, int fd);
  ~KernelListener() override;

  void Watch(std::shared_ptr<ReadyHandler> handler) override;
  Result<std::unique_ptr<Association>, int> Accept() override;
  std::vector<SocketAddress> LocalAddresses() const override;

 private:
  Network& network_;
  KernelAssociations& registry_;
  const std::shared_ptr<Readiness> readiness_;
  const int fd_;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_KERNEL_LISTENER_H_
