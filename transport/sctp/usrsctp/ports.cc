#include "transport/sctp/usrsctp/ports.h"

#include <algorithm>
#include <utility>

namespace weft::transport::sctp {

void Ports::Add(uint16_t port, const std::vector<SocketAddress>& addresses, std::shared_ptr<void> held) {
  Port& entry = ports_[port];
  if (held != nullptr) entry.held = std::move(held);
  if (entry.sockets++ == 0) {
    entry.addresses = addresses;  // in place of those that left
  } else if (entry.addresses.empty() || addresses.empty()) {
    entry.addresses.clear();
  } else {
    entry.addresses.insert(entry.addresses.end(), addresses.begin(), addresses.end());
  }
}

void Ports::Forget(uint16_t port) {
  const auto found = ports_.find(port);
  if (found == ports_.end()) return;
  --found->second.sockets;
  DropIfUnused(found);
}

void Ports::Leave(uint16_t port, std::vector<PeerKey> awaited, Time now) {
  const auto found = ports_.find(port);
  if (found == ports_.end()) return;
  --found->second.sockets;
  ++found->second.leavers;
  if (leavers_.size() == kMostLeavers) DropOldestLeaver();
  leavers_.push_back({.port = port, .awaited = std::move(awaited), .until = now + kLeaveLasts});
}

void Ports::Expire(Time now) {
  while (!leavers_.empty() && leavers_.front().until <= now) DropOldestLeaver();
}

void Ports::DropOldestLeaver() {
  const auto found = ports_.find(leavers_.front().port);
  leavers_.pop_front();
  if (found == ports_.end()) return;
  --found->second.leavers;
  DropIfUnused(found);
}

void Ports::DropIfUnused(Table::iterator port) {
  if (port->second.sockets == 0 && port->second.leavers == 0) ports_.erase(port);
}

const std::vector<SocketAddress>* Ports::AddressesOf(uint16_t port) const {
  const auto found = ports_.find(port);
  return found == ports_.end() ? nullptr : &found->second.addresses;
}

void Ports::NoteLastWord(const PeerKey& peer) {
  for (Leaver& leaver : leavers_) {
    if (std::find(leaver.awaited.begin(), leaver.awaited.end(), peer) != leaver.awaited.end()) leaver.awaited.clear();
  }
}

bool Ports::awaits_last_word() const {
  return std::any_of(leavers_.begin(), leavers_.end(), [](const Leaver& leaver) { return !leaver.awaited.empty(); });
}

}  // namespace weft::transport::sctp
