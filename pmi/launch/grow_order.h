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

// How proxies on other hosts are started.
struct StartMeans {
  RemoteShell remote_shell;
  std::string interface;       // -iface: only its addresses are given to proxies; empty: all
  PortRange ports = {};        // where who starts them listens for them
  uint32_t most_branches = 16;  // that one process connects with (proxy_tree.h)
  bool operator==(const StartMeans&) const = default;
};

// The payload of kGrow: hosts that are to be below a proxy, and how it reaches them.
struct GrowOrder {
  struct Host {
    int32_t number = 0;  // mpiexec's
    std::string name;
    bool operator==(const Host&) const = default;
  };

  std::vector<Host> hosts;
  StartMeans means;

  std::string Serialize() const;
  // Nothing: not what Serialize() makes.
  static std::optional<GrowOrder> Parse(std::string_view bytes);
  bool operator==(const GrowOrder&) const = default;
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_GROW_ORDER_H_
