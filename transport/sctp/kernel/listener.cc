#include "transport/sctp/kernel/listener.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <utility>

#include "base/high_descriptor.h"
#include "transport/sctp/kernel/options.h"

namespace weft::transport::sctp {
namespace {

// Without a descriptor what waits goes on waiting, and its socket goes on being ready: it is looked at again then.
constexpr std::chrono::milliseconds kRest{100};

bool IsShortage(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

}  // namespace

KernelListener::KernelListener(Network& network, KernelAssociations& registry, int fd)
    : network_(network), registry_(registry), readiness_(std::make_shared<Readiness>(network)), fd_(fd) {}

KernelListener::~KernelListener() {
  readiness_->End();
  close(fd_);
}

void KernelListener::Watch(std::shared_ptr<ReadyHandler> handler) { Readiness::Begin(readiness_, fd_, std::move(handler)); }

Result<std::unique_ptr<Association>, int> KernelListener::Accept() {
  while (true) {
    const int fd = AcceptOnListener(fd_);
    if (fd >= 0) return std::unique_ptr<Association>(std::make_unique<KernelAssociation>(network_, registry_, fd));
    if (errno == EWOULDBLOCK) return EAGAIN;
    // One that is gone before it was accepted is nobody's.
    if (errno == EINTR || errno == ECONNABORTED) continue;
    const int error = errno;
    if (IsShortage(error)) {
      readiness_->SetReading(false);
      network_.RunAt(network_.Now() + kRest, [readiness = std::weak_ptr(readiness_)] {
        if (const auto alive = readiness.lock()) alive->SetReading(true);
      });
    }
    return error;
  }
}

std::vector<SocketAddress> KernelListener::LocalAddresses() const { return LocalAddressesOf(fd_); }

}  // namespace weft::transport::sctp
