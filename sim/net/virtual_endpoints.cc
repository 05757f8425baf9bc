#include "sim/net/virtual_endpoints.h"

namespace weft::sim {

bool VirtualListener::Takes(const void* host, const SocketAddress& address) const {
  if (host != host_ || address.port() != local_.port()) return false;
  if (!local_.is_wildcard()) return local_.SameHost(address);
  return local_.family() == address.family() || (local_.family() == AF_INET6 && !only_v6_);
}

bool VirtualListener::CollidesWith(const void* host, const SocketAddress& address, bool only_v6) const {
  if (host != host_ || address.port() != local_.port()) return false;
  if (!local_.is_wildcard() && !address.is_wildcard()) return local_.SameHost(address);
  auto covers_both = [](const SocketAddress& a, bool only) {
    return a.is_wildcard() && a.family() == AF_INET6 && !only;
  };
  return local_.family() == address.family() || covers_both(local_, only_v6_) || covers_both(address, only_v6);
}

bool VirtualListener::Offer(std::shared_ptr<VirtualConnection> connection) {
  // As Linux does it: one more than was asked for.
  if (waiting_.size() > static_cast<size_t>(std::max(backlog_, 0))) return false;
  waiting_.push_back(std::move(connection));
  return true;
}

}  // namespace weft::sim
