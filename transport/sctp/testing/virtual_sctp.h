#ifndef TRANSPORT_SCTP_TESTING_VIRTUAL_SCTP_H_
#define TRANSPORT_SCTP_TESTING_VIRTUAL_SCTP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/net/random.h"
#include "sim/net/virtual_network.h"
#include "transport/sctp/sctp.h"
#include "transport/sctp/usrsctp/host_sctp.h"

namespace weft::transport::sctp {

// Real SCTP between hosts in virtual time. usrsctp's packets are datagrams of a VirtualNetwork; its clock and timers
// are the network's; its random numbers come from the seed. The same seed gives the same packets. As there is one
// usrsctp in a process, only one VirtualSctp can exist at a time. Associations and listeners must be destroyed before
// it.
class VirtualSctp {
 public:
  explicit VirtualSctp(uint64_t seed)
      : network_(seed),
        random_(seed ^ 0x5c79),
        stack_(std::make_unique<Stack>([this](void* to, size_t count) { Fill(to, count); })) {}

  ~VirtualSctp();

  // Adds a host with these addresses. Addresses with the same first three numbers ("10.1.0.1" and "10.1.0.2") are on
  // one link, which connects them. The VirtualSctp owns the host.
  Sctp& AddHost(const std::vector<std::string>& addresses, uint32_t mtu = 1500, uint16_t udp_port = 9899);

  sim::VirtualNetwork& network() { return network_; }
  // The network as the host that was added last sees it.
  Network& host_network() { return *host_network_; }
  Stack& stack() { return *stack_; }

 private:
  void Fill(void* to, size_t count);

  sim::VirtualNetwork network_;
  sim::Random random_;
  std::unique_ptr<Stack> stack_;
  Network* host_network_ = nullptr;
  std::vector<std::unique_ptr<HostSctp>> hosts_;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_TESTING_VIRTUAL_SCTP_H_
