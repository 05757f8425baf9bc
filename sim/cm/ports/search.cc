#include "sim/cm/ports/search.h"

#include "transport/local_address.h"

namespace weft::sim {
namespace {

Service ServiceOfPeer(Service ours) {
  switch (ours) {
    case Service::kXrcSend:
      return Service::kXrcReceive;
    case Service::kXrcReceive:
      return Service::kXrcSend;
    default:
      return ours;
  }
}

}  // namespace

bool IsOwn(const transport::SocketAddress& address) {
  if (address.is_loopback()) return true;
  const auto source = transport::SourceAddressFor({}, address);  // an own address is reached from itself
  return source.ok() && source->SameHost(address);
}

bool Search::opens() const {
  // Numbers of different hosts may be equal; then their addresses decide.
  return number != choice.number ? number < choice.number : choice.local.ToString() < choice.address.ToString();
}

bool Search::Fits(const Wish& wish, const transport::SocketAddress& from) const {
  return choice.number == wish.from && ServiceOfPeer(choice.service) == wish.service &&
         (choice.own_host ? IsOwn(from) : choice.address.SameHost(from));
}

bool Search::Proves(const Wish& wish) const {
  return wish.send_number == choice.receive_number || (send_number && wish.receive_number == *send_number);
}

}  // namespace weft::sim
