#include "pmi/launch/proxy_tree.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weft::pmi {

std::vector<std::vector<GrowOrder::Host>> Shares(const std::vector<GrowOrder::Host>& hosts, size_t parts) {
  std::vector<std::vector<GrowOrder::Host>> shares(std::min(parts, hosts.size()));
  auto next = hosts.begin();
  for (size_t i = 0; i < shares.size(); ++i) {
    const auto length = static_cast<std::ptrdiff_t>(hosts.size() / shares.size() + (i < hosts.size() % shares.size() ? 1 : 0));
    shares[i].assign(next, next + length);
    next += length;
  }
  return shares;
}

bool ProxyTree::Branch::leads_to(int32_t host) const { return std::find(hosts.begin(), hosts.end(), host) != hosts.end(); }

void ProxyTree::Branch::Send(Frame frame, int32_t host) {
  if (!open) return;
  const bool for_the_first = host == own_host() || (host == Frame::kEverywhere && hosts.size() == 1);
  frame.host = for_the_first ? Frame::kHere : host;
  link.connection->Send(frame);
}

ProxyTree::Branch* ProxyTree::To(int32_t host) const {
  const auto found = std::find_if(branches_.begin(), branches_.end(), [&](const auto& branch) { return branch->leads_to(host); });
  return found == branches_.end() ? nullptr : found->get();
}

void ProxyTree::Add(std::vector<std::unique_ptr<Branch>> branches) {
  branches_.insert(branches_.end(), std::make_move_iterator(branches.begin()), std::make_move_iterator(branches.end()));
}

}  // namespace weft::pmi
