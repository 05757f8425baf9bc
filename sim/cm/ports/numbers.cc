#include "sim/cm/ports/numbers.h"

#include <cerrno>
#include <utility>

#include "base/file_limit.h"
#include "base/log.h"
#include "sim/device/device.h"

namespace weft::sim {

Result<uint32_t, int> PortNumbers::Allocate() {
  {
    std::lock_guard lock(mutex_);
    for (auto& [number, port] : ports_) {
      if (port.used == kPerPort) continue;
      while (port.taken[port.next % kPerPort]) ++port.next;
      const uint32_t index = port.next++ % kPerPort;
      port.taken[index] = port.was_taken[index] = true;
      ++port.used;
      return uint32_t{number} << 8 | index;
    }
  }
  auto listeners = OpenPort();
  if (!listeners.ok()) {
    LogWarning("cannot create a queue pair: no port to listen on: " + DescribeShortage(listeners.error()));
    return listeners.error();
  }
  const uint16_t number = listeners->front()->local_address().port();
  std::lock_guard lock(mutex_);
  Port& port = ports_[number];
  port.listeners = std::move(*listeners);
  port.taken[0] = port.was_taken[0] = true;
  port.used = port.next = 1;
  return uint32_t{number} << 8;
}

void PortNumbers::Release(uint32_t number) {
  std::lock_guard lock(mutex_);
  const auto at = ports_.find(PortOf(number));
  if (at == ports_.end()) return;
  at->second.taken[number % kPerPort] = false;
  --at->second.used;
}

bool PortNumbers::IsTaken(uint32_t number) {
  std::lock_guard lock(mutex_);
  const auto at = ports_.find(PortOf(number));
  return at != ports_.end() && at->second.taken[number % kPerPort];
}

bool PortNumbers::WasEverTaken(uint32_t number) {
  std::lock_guard lock(mutex_);
  const auto at = ports_.find(PortOf(number));
  return at != ports_.end() && at->second.was_taken[number % kPerPort];
}

// A wildcard listener for both families, or for IPv4 where there is no IPv6; or one at each address of the devices that are named.
Result<PortNumbers::Listeners, int> PortNumbers::OpenPort() {
  int error = EADDRNOTAVAIL;
  if (settings_.devices.empty()) {
    for (const char* any : {"::", "0.0.0.0"}) {
      auto listening = listen_(*transport::SocketAddress::Parse(any, 0));
      if (listening.ok()) return Listeners{std::move(*listening)};
      error = listening.error();
    }
    return error;
  }
  constexpr int kMostTries = 64;
  for (int i = 0; i < kMostTries; ++i) {
    auto listeners = ListenAtDevices();
    if (listeners.ok()) return listeners;
    error = listeners.error();
    if (error != EADDRINUSE) break;
  }
  return error;
}

// The kernel chooses the port at the first address; at the others it must be free as well (EADDRINUSE).
Result<PortNumbers::Listeners, int> PortNumbers::ListenAtDevices() {
  Listeners listeners;
  int error = EADDRNOTAVAIL;
  for (const DeviceInfo& device : ListDevices()) {
    for (transport::SocketAddress address : device.addresses) {
      if (!listeners.empty()) address.set_port(listeners.front()->local_address().port());
      auto listening = listen_(address);
      if (listening.ok()) {
        listeners.push_back(std::move(*listening));
        continue;
      }
      error = listening.error();
      if (error == EADDRNOTAVAIL) continue;  // it went away, or is not usable yet
      for (const auto& open : listeners) open->Close();
      return error;
    }
  }
  if (listeners.empty()) return error;
  return listeners;
}

void PortNumbers::ListenAlsoAt(uint32_t number, transport::SocketAddress address) {
  if (settings_.devices.empty()) return;
  address.set_port(PortOf(number));
  {
    std::lock_guard lock(mutex_);
    const auto port = ports_.find(address.port());
    if (port == ports_.end()) return;
    for (const auto& listener : port->second.listeners) {
      if (listener->local_address().SameHost(address)) return;
    }
  }
  auto listening = listen_(address);
  if (!listening.ok()) return;  // another thread was first, or the port is somebody else's there
  std::lock_guard lock(mutex_);
  if (const auto port = ports_.find(address.port()); port != ports_.end()) port->second.listeners.push_back(std::move(*listening));
}

void PortNumbers::Close() {
  std::map<uint16_t, Port> ports;
  {
    std::lock_guard lock(mutex_);
    ports.swap(ports_);
  }
  for (auto& [number, port] : ports) {
    for (const auto& listener : port.listeners) listener->Close();
  }
}

}  // namespace weft::sim
