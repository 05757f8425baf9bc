#ifndef TOOLS_WEFT_VERBS_API_H_
#define TOOLS_WEFT_VERBS_API_H_

#include <infiniband/verbs.h>

#include <string>
#include <vector>

#include "tools/weft/libraries.h"

namespace weft::tool {

// One port of one device, as a verbs program sees it.
struct DeviceView {
  std::string name;
  std::string transport;          // "iWARP", "RoCE" or "InfiniBand"
  std::string state;              // "ACTIVE", "DOWN" ...
  int mtu_bytes = 0;              // active MTU as verbs report it: a power of two
  std::vector<std::string> gids;  // printed as addresses
};

// Lists the devices that ibv_get_device_list of `libibverbs` returns; opens each and queries its port 1. On failure,
// `error` names the call and its errno; devices that could be read are returned all the same.
std::vector<DeviceView> ListDevices(const Library& libibverbs, std::string* error);

// Why there may be no device, and what to do: a sentence that names WEFT_DEVICES and the existing interfaces.
std::string WhyNoDevice();

}  // namespace weft::tool

#endif  // TOOLS_WEFT_VERBS_API_H_
