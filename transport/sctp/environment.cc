#include "transport/sctp/environment.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace weft::transport::sctp {
namespace {

void Take(Milliseconds& into, const std::optional<uint32_t>& user) {
  if (user) into = Milliseconds(*user);
}
template <typename T>
void Take(T& into, const std::optional<uint32_t>& user) {
  if (user) into = static_cast<T>(*user);
}

Multipath UserMultipath(SctpSettings::Cmt cmt) {
  switch (cmt) {
    case SctpSettings::Cmt::kOn:
      return Multipath::kConcurrent;
    case SctpSettings::Cmt::kPotentiallyFailed:
      return Multipath::kConcurrentPotentiallyFailed;
    case SctpSettings::Cmt::kOff:
      break;
  }
  return Multipath::kFailover;
}

}  // namespace

Settings WithUserSettings(Settings settings, const SctpSettings& user) {
  Take(settings.heartbeat_interval, user.heartbeat);
  Take(settings.rto_min, user.rto_min);
  Take(settings.rto_max, user.rto_max);
  Take(settings.rto_initial, user.rto_initial);
  // What one of them says moves those that say nothing.
  if (!user.rto_max) settings.rto_max = std::max({settings.rto_max, settings.rto_min, user.rto_initial ? settings.rto_initial : settings.rto_min});
  settings.rto_min = std::min(settings.rto_min, settings.rto_max);
  settings.rto_initial = std::clamp(settings.rto_initial, settings.rto_min, settings.rto_max);
  Take(settings.path_max_retransmissions, user.path_retries);
  Take(settings.association_max_retransmissions, user.association_retries);
  Take(settings.streams_out, user.streams);
  Take(settings.streams_in, user.streams);
  Take(settings.send_buffer, user.send_buffer);
  Take(settings.receive_buffer, user.receive_buffer);
  Take(settings.path_mtu, user.pmtu);
  if (user.cmt != SctpSettings::Cmt::kOff) settings.multipath = UserMultipath(user.cmt);
  return settings;
}

std::vector<SocketAddress> UserAddresses(const SctpSettings& user, const SocketAddress& local) {
  std::vector<SocketAddress> addresses;
  for (const std::string& text : user.addresses) {
    if (const auto address = SocketAddress::Parse(text, 0)) addresses.push_back(*address);
  }
  if (local.is_wildcard()) {
    if (local.family() == AF_INET) std::erase_if(addresses, [](const SocketAddress& a) { return a.family() != AF_INET; });
    return addresses;
  }
  const auto same = std::find_if(addresses.begin(), addresses.end(), [&](const SocketAddress& a) { return a.SameHost(local); });
  if (same == addresses.end()) {
    addresses = {local};
    addresses[0].set_port(0);
    return addresses;
  }
  std::rotate(addresses.begin(), same, same + 1);
  return addresses;
}

Carriage UserCarriage(const SctpSettings& user) {
  using By = SctpSettings::Carriage;
  return {.udp = true, .udp_port = user.udp_port, .native = user.carriage == By::kIp, .kernel = user.carriage == By::kKernel};
}

}  // namespace weft::transport::sctp
