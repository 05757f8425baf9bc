#ifndef SIM_DATAGRAM_PORTS_H_
#define SIM_DATAGRAM_PORTS_H_

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "sim/datagram/group.h"
#include "sim/datagram/port.h"
#include "transport/network.h"

namespace weft::sim {

// The UDP ports of an RNIC's datagram queue pairs, opened as needed, and the groups that it has joined. Thread safe.
class DatagramPorts {
 public:
  explicit DatagramPorts(transport::Network& network) : network_(network), groups_(network) {}

  struct Place {
    std::shared_ptr<DatagramPort> port;
    uint32_t number = 0;
  };
  // Makes a queue pair, by `make(place)`, with a number for which `usable` is true. It gets the datagrams for that
  // number from now on. Errors: those of the system (EMFILE ...); ENOMEM: no number is left.
  template <typename Usable, typename Make>
  Result<std::invoke_result_t<Make, const Place&>, int> Add(Usable usable, Make make) {
    const auto unused = [&](uint32_t candidate) { return candidate != kGroupQueuePair && usable(candidate); };
    std::lock_guard lock(mutex_);
    Place place;
    for (const auto& open : ports_) {
      place = {open, open->FreeNumber(unused)};
      if (place.number != 0) break;
    }
    if (place.number == 0) {
      auto opened = DatagramPort::Open(network_);
      if (!opened.ok()) return opened.error();
      place = {*opened, (*opened)->FreeNumber(unused)};
      if (place.number == 0) return ENOMEM;
      ports_.push_back(std::move(*opened));
    }
    auto queue_pair = make(place);
    place.port->Add(place.number, queue_pair.get());
    return queue_pair;
  }
  // The queue pair gets nothing from the port after this call. A port without queue pairs is closed.
  void Release(const std::shared_ptr<DatagramPort>& port, uint32_t number) {
    std::lock_guard lock(mutex_);
    port->Remove(number);
    if (!port->empty()) return;
    port->Close();
    std::erase(ports_, port);
  }

  DatagramGroups& groups() { return groups_; }

 private:
  transport::Network& network_;
  DatagramGroups groups_;
  std::mutex mutex_;  // guards ports_
  std::vector<std::shared_ptr<DatagramPort>> ports_;
};

}  // namespace weft::sim

#endif  // SIM_DATAGRAM_PORTS_H_
