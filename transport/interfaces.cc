#include "transport/interfaces.h"

#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>

namespace weft::transport {
namespace {

// IPv4 addresses can carry a label in place of the interface's name ("eth0:1").
std::string NameOf(const ifaddrs& entry) {
  std::string name = entry.ifa_name;
  return name.substr(0, name.find(':'));
}

void AddLink(const sockaddr_ll& link, NetworkInterface& interface) {
  interface.index = static_cast<uint32_t>(link.sll_ifindex);
  if (link.sll_halen == interface.mac.size()) std::copy_n(link.sll_addr, interface.mac.size(), interface.mac.begin());
}

// nullopt: none, or of another family than IP.
std::optional<SocketAddress> AddressOf(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  return SocketAddress::From(address, address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
}

int Rank(const SocketAddress& address) {
  if (address.family() == AF_INET) return 0;
  return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr) ? 2 : 1;
}

uint32_t MtuOf(int socket, const std::string& name) {
  ifreq request{};
  std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
  return ioctl(socket, SIOCGIFMTU, &request) == 0 ? static_cast<uint32_t>(request.ifr_mtu) : 0;
}

uint32_t SpeedOf(const NetworkInterface& interface) {
  std::string folder = "/sys/class/net/" + interface.name;
  // /sys can show another namespace's interfaces under the same names.
  uint32_t index = 0;
  if (!(std::ifstream(folder + "/ifindex") >> index) || index != interface.index) return 0;
  int64_t speed = 0;
  std::ifstream(folder + "/speed") >> speed;  // -1, or an error on reading, where there is no such thing
  return speed > 0 && speed < UINT32_MAX ? static_cast<uint32_t>(speed) : 0;
}

void Complete(int socket, NetworkInterface& interface) {
  if (interface.index == 0) interface.index = if_nametoindex(interface.name.c_str());
  interface.mtu = MtuOf(socket, interface.name);
  interface.speed_mbps = SpeedOf(interface);
  std::stable_sort(interface.addresses.begin(), interface.addresses.end(),
                   [](const SocketAddress& a, const SocketAddress& b) { return Rank(a) < Rank(b); });
}

std::map<std::string, NetworkInterface> Gather(const ifaddrs* entries) {
  std::map<std::string, NetworkInterface> by_name;
  for (const ifaddrs* entry = entries; entry != nullptr; entry = entry->ifa_next) {
    NetworkInterface& interface = by_name[NameOf(*entry)];
    interface.name = NameOf(*entry);
    interface.up = (entry->ifa_flags & IFF_UP) != 0;
    interface.running = interface.up && (entry->ifa_flags & IFF_RUNNING) != 0;
    interface.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    if (const auto address = AddressOf(entry->ifa_addr))
      interface.addresses.push_back(*address);
    else if (entry->ifa_addr != nullptr && entry->ifa_addr->sa_family == AF_PACKET)
      AddLink(*reinterpret_cast<const sockaddr_ll*>(entry->ifa_addr), interface);
  }
  return by_name;
}

using Entries = std::unique_ptr<ifaddrs, void (*)(ifaddrs*)>;
Entries ReadEntries() {
  ifaddrs* entries = nullptr;
  return Entries(getifaddrs(&entries) == 0 ? entries : nullptr, freeifaddrs);
}

}  // namespace

std::vector<InterfaceAddress> ListAddresses() {
  std::vector<InterfaceAddress> addresses;
  const Entries entries = ReadEntries();
  for (const ifaddrs* entry = entries.get(); entry != nullptr; entry = entry->ifa_next) {
    const auto address = AddressOf(entry->ifa_addr);
    if (!address) continue;
    const auto has = [entry](unsigned flag) { return (entry->ifa_flags & flag) != 0; };
    addresses.push_back({entry->ifa_name, has(IFF_UP), has(IFF_RUNNING), has(IFF_LOOPBACK), *address});
  }
  return addresses;
}

std::vector<NetworkInterface> ListInterfaces() {
  std::map<std::string, NetworkInterface> by_name = Gather(ReadEntries().get());

  int socket_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket_fd < 0) socket_fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  std::vector<NetworkInterface> usable;
  for (auto& [name, interface] : by_name) {
    if (interface.addresses.empty()) continue;
    Complete(socket_fd, interface);
    usable.push_back(std::move(interface));
  }
  if (socket_fd >= 0) close(socket_fd);
  std::sort(usable.begin(), usable.end(),
            [](const NetworkInterface& a, const NetworkInterface& b) { return a.index < b.index; });
  return usable;
}

}  // namespace weft::transport
