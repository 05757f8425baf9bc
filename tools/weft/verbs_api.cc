#include "tools/weft/verbs_api.h"

#include <arpa/inet.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>

#include "transport/interfaces.h"

// verbs.h makes these names macros or inline functions that would bind to a library at link time.
#undef ibv_query_port

namespace weft::tool {
namespace {

struct Verbs {
  ibv_device** (*get_device_list)(int*);
  void (*free_device_list)(ibv_device**);
  const char* (*get_device_name)(ibv_device*);
  ibv_context* (*open_device)(ibv_device*);
  int (*close_device)(ibv_context*);
  int (*query_port)(ibv_context*, uint8_t, ibv_port_attr*);
  int (*query_gid)(ibv_context*, uint8_t, int, ibv_gid*);
};

bool Load(const Library& library, Verbs* verbs, std::string* error) {
  const bool all =
      library.Find("ibv_get_device_list", &verbs->get_device_list) &&
      library.Find("ibv_free_device_list", &verbs->free_device_list) &&
      library.Find("ibv_get_device_name", &verbs->get_device_name) &&
      library.Find("ibv_open_device", &verbs->open_device) && library.Find("ibv_close_device", &verbs->close_device) &&
      library.Find("ibv_query_port", &verbs->query_port) && library.Find("ibv_query_gid", &verbs->query_gid);
  if (!all) *error = library.Path() + " lacks a basic verb: it is not a complete libibverbs";
  return all;
}

const char* StateName(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return "DOWN";
    case IBV_PORT_INIT:
      return "INIT";
    case IBV_PORT_ARMED:
      return "ARMED";
    case IBV_PORT_ACTIVE:
      return "ACTIVE";
    default:
      return "UNKNOWN";
  }
}

// An IPv4-mapped GID as its IPv4 address, another as IPv6; empty for the empty table entry.
std::string GidName(const ibv_gid& gid) {
  static constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  static constexpr uint8_t kZero[16] = {};
  char text[INET6_ADDRSTRLEN] = "";
  if (std::memcmp(gid.raw, kZero, sizeof kZero) == 0) return "";
  if (std::memcmp(gid.raw, kMapped, sizeof kMapped) == 0) {
    inet_ntop(AF_INET, gid.raw + 12, text, sizeof text);
  } else {
    inet_ntop(AF_INET6, gid.raw, text, sizeof text);
  }
  return text;
}

bool Describe(const Verbs& verbs, ibv_device* device, DeviceView* view, std::string* error) {
  view->name = verbs.get_device_name(device);
  view->transport = device->transport_type == IBV_TRANSPORT_IWARP ? "iWARP" : "InfiniBand";
  ibv_context* context = verbs.open_device(device);
  if (context == nullptr) {
    *error = "ibv_open_device(" + view->name + "): " + std::strerror(errno);
    return false;
  }
  ibv_port_attr port{};
  if (int rc = verbs.query_port(context, 1, &port); rc != 0) {
    *error = "ibv_query_port(" + view->name + "): " + std::strerror(rc > 0 ? rc : errno);
  } else {
    if (port.link_layer == IBV_LINK_LAYER_ETHERNET && view->transport != "iWARP") view->transport = "RoCE";
    view->state = StateName(port.state);
    view->mtu_bytes = port.active_mtu == 0 ? 0 : 128 << port.active_mtu;
    for (int i = 0; i < port.gid_tbl_len; ++i) {
      ibv_gid gid{};
      if (verbs.query_gid(context, 1, i, &gid) != 0) continue;
      if (std::string name = GidName(gid); !name.empty()) view->gids.push_back(name);
    }
  }
  verbs.close_device(context);
  return error->empty();
}

}  // namespace

std::vector<DeviceView> ListDevices(const Library& libibverbs, std::string* error) {
  std::vector<DeviceView> views;
  Verbs verbs{};
  if (!Load(libibverbs, &verbs, error)) return views;
  int count = 0;
  ibv_device** list = verbs.get_device_list(&count);
  if (list == nullptr) {
    *error = std::string("ibv_get_device_list: ") + std::strerror(errno);
    return views;
  }
  for (int i = 0; i < count; ++i) {
    DeviceView view;
    if (Describe(verbs, list[i], &view, error)) views.push_back(view);
  }
  verbs.free_device_list(list);
  return views;
}

std::string WhyNoDevice() {
  std::set<std::string> names;
  for (const transport::InterfaceAddress& one : transport::ListAddresses()) {
    if (one.up) names.insert(one.label);
  }
  std::string up;
  for (const std::string& name : names) up += (up.empty() ? "" : ", ") + name;
  if (up.empty()) return "no network interface is up and has an address: ip link set lo up";
  const char* wanted = std::getenv("WEFT_DEVICES");
  if (wanted == nullptr || *wanted == '\0') return "interfaces with an address are " + up + ": see what Weft logged";
  return std::string("WEFT_DEVICES=") + wanted + " names none of the interfaces that are up and have an address: " + up;
}

}  // namespace weft::tool
