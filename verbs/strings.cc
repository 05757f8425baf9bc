#include <infiniband/verbs.h>

#include <array>
#include <cstddef>

#include "verbs/export.h"

// Names of enumerators. Programs and their test suites print and compare these, so they are those of the distribution.
namespace {

template <size_t kCount>
const char* NameOf(const std::array<const char*, kCount>& names, int value) {
  const bool known = value >= 0 && static_cast<size_t>(value) < kCount && names[static_cast<size_t>(value)] != nullptr;
  return known ? names[static_cast<size_t>(value)] : "unknown";
}

}  // namespace

WEFT_VERBS_API const char* ibv_node_type_str(ibv_node_type type) {
  static constexpr std::array<const char*, 8> kNames = {nullptr,
                                                        "InfiniBand channel adapter",
                                                        "InfiniBand switch",
                                                        "InfiniBand router",
                                                        "iWARP NIC",
                                                        "usNIC",
                                                        "usNIC UDP",
                                                        "unspecified"};
  return NameOf(kNames, type);
}

WEFT_VERBS_API const char* ibv_port_state_str(ibv_port_state state) {
  static constexpr std::array<const char*, 6> kNames = {"no state change (NOP)", "down", "init", "armed", "active",
                                                        "active defer"};
  return NameOf(kNames, state);
}

WEFT_VERBS_API const char* ibv_event_type_str(ibv_event_type event) {
  static constexpr std::array<const char*, 20> kNames = {"CQ error",
                                                         "local work queue catastrophic error",
                                                         "invalid request local work queue error",
                                                         "local access violation work queue error",
                                                         "communication established",
                                                         "send queue drained",
                                                         "path migrated",
                                                         "path migration request error",
                                                         "local catastrophic error",
                                                         "port active",
                                                         "port error",
                                                         "LID change",
                                                         "P_Key change",
                                                         "SM change",
                                                         "SRQ catastrophic error",
                                                         "SRQ limit reached",
                                                         "last WQE reached",
                                                         "client reregistration",
                                                         "GID table change",
                                                         "WQ fatal"};
  return NameOf(kNames, event);
}

WEFT_VERBS_API const char* ibv_wc_status_str(ibv_wc_status status) {
  static constexpr std::array<const char*, 24> kNames = {"success",
                                                         "local length error",
                                                         "local QP operation error",
                                                         "local EE context operation error",
                                                         "local protection error",
                                                         "Work Request Flushed Error",
                                                         "memory management operation error",
                                                         "bad response error",
                                                         "local access error",
                                                         "remote invalid request error",
                                                         "remote access error",
                                                         "remote operation error",
                                                         "transport retry counter exceeded",
                                                         "RNR retry counter exceeded",
                                                         "local RDD violation error",
                                                         "remote invalid RD request",
                                                         "aborted error",
                                                         "invalid EE context number",
                                                         "invalid EE context state",
                                                         "fatal error",
                                                         "response timeout error",
                                                         "general error",
                                                         "TM error",
                                                         "TM software rendezvous"};
  return NameOf(kNames, status);
}

// rdma-core 49 and later have it in verbs.h, and the symbol at the private node.
WEFT_VERBS_API const char* weft_wr_opcode_str(int opcode) {
  static constexpr std::array<const char*, 16> kNames = {"rdma-write",
                                                         "rdma-write-with-imm",
                                                         "send",
                                                         "send-with-imm",
                                                         "rdma-read",
                                                         "atomic-cmp-and-swp",
                                                         "atomic-fetch-and-add",
                                                         "local-inv",
                                                         "bind-mw",
                                                         "send-with-inv",
                                                         "tso",
                                                         "driver1",
                                                         nullptr,
                                                         nullptr,
                                                         "flush",
                                                         "atomic-write"};
  return NameOf(kNames, opcode);
}
WEFT_PRIVATE_SYMBOL_SINCE_34(weft_wr_opcode_str, ibv_wr_opcode_str);
