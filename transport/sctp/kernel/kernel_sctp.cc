#include "transport/sctp/kernel/kernel_sctp.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <utility>

#include "transport/local_address.h"
#include "transport/sctp/arguments.h"
#include "transport/sctp/kernel/listener.h"
#include "transport/sctp/kernel/options.h"

namespace weft::transport::sctp {

int KernelSctp::Probe() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_SCTP);
  if (fd < 0) return errno;
  close(fd);
  return 0;
}

Result<std::unique_ptr<Association>, int> KernelSctp::Connect(const Peer& peer, uint16_t local_port, const Settings& settings) {
  if (int error = Check(settings)) return error;
  if (int error = Check(peer)) return error;
  if (peer.udp_port != 0 && udp_port() == 0) return EPROTONOSUPPORT;
  std::vector<SocketAddress> locals = settings.local_addresses;
  if (locals.empty()) {
    auto source = SourceAddressFor({}, peer.addresses[0]);
    if (!source) return source.error();
    source->set_port(0);
    locals = {*source};
  }
  if (int error = CheckAddresses(locals)) return error;
  int fd = -1;
  if (int error = OpenSocket(FamilyFor(locals, peer.addresses), settings, peer.udp_port, &fd)) return error;
  int error = Bind(fd, locals, local_port);
  if (error == 0) error = ConnectTo(fd, peer.addresses);
  if (error != 0) {
    close(fd);
    return error;
  }
  return std::unique_ptr<Association>(std::make_unique<KernelAssociation>(network_, associations_, fd));
}

Result<std::unique_ptr<Listener>, int> KernelSctp::Listen(const SocketAddress& local, int backlog, const Settings& settings) {
  if (int error = Check(settings)) return error;
  std::vector<SocketAddress> locals = settings.local_addresses;
  if (locals.empty()) locals = {local};
  if (int error = CheckAddresses(locals)) return error;
  int fd = -1;
  if (int error = OpenSocket(FamilyFor(locals, {}), settings, 0, &fd)) return error;
  int error = Bind(fd, locals, local.port());
  if (error == 0 && listen(fd, std::max(backlog, 1)) != 0) error = errno;
  if (error != 0) {
    close(fd);
    return error;
  }
  return std::unique_ptr<Listener>(std::make_unique<KernelListener>(network_, associations_, fd));
}

// Of the network namespace; 0 where there is none.
uint16_t KernelSctp::udp_port() const {
  unsigned port = 0;
  std::ifstream("/proc/sys/net/sctp/udp_port") >> port;
  return static_cast<uint16_t>(port);
}

std::vector<std::vector<Path>> KernelSctp::AllPaths() const {
  const std::lock_guard lock(associations_.mutex);
  std::vector<std::vector<Path>> all;
  for (const KernelAssociation* const one : associations_.all) {
    if (auto paths = one->Paths(); !paths.empty()) all.push_back(std::move(paths));
  }
  return all;
}

}  // namespace weft::transport::sctp
