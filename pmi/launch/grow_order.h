#ifndef PMI_LAUNCH_GROW_ORDER_H_
#define PMI_LAUNCH_GROW_ORDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pmi/launch/port_range.h"
#include "pmi/launch/remote_shell.h"

namespace weft::pmi {

// How to start proxies on other hosts.
struct StartMeans {
  RemoteShell remote_shell;
  std::string interface;       // -iface: only its addresses are given to proxies; empty: all
  PortRange ports = {};        // where the starting process listens for proxies
  uint32_t most_branches = 16;  // the most branches of one process (proxy_tree.h)
  bool operator==(const StartMeans&) const = default;
};

// The payload of kGrow: the hosts that are to be below a proxy, and how to reach them.
struct GrowOrder {
  struct Host {
    int32_t number = 0;  // given by mpiexec
    std::string name;
    bool operator==(const Host&) const = default;
  };

  std::vector<Host> hosts;
  StartMeans means;

  std::string Serialize() const;
  // nullopt: not a result of Serialize().
  static std::optional<GrowOrder> Parse(std::string_view bytes);
  bool operator==(const GrowOrder&) const = default;
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_GROW_ORDER_H_
