// rdma_set_option, ECE.
#include <cerrno>
#include <cstring>

#include "cm/export.h"
#include "cm/identifier.h"

namespace weft::cm {
namespace {

std::optional<int> Integer(const void* value, size_t length) {
  int integer;
  if (value == nullptr || length != sizeof integer) return std::nullopt;
  memcpy(&integer, value, sizeof integer);
  return integer;
}

}  // namespace

int Identifier::SetOption(int level, int name, const void* value, size_t length) {
  const State now = state();
  if (level == RDMA_OPTION_IB) {
    if (name != RDMA_OPTION_IB_PATH) return ENOSYS;
    // A path that the program brings along is as good as one that was resolved; iWARP has none.
    if (value == nullptr || length == 0 || length % sizeof(ibv_path_data) != 0) return EINVAL;
    if (device_ == nullptr || device_->is_iwarp()) return EINVAL;
    return ResolveRoute();
  }
  if (level != RDMA_OPTION_ID) return ENOSYS;
  switch (name) {
    case RDMA_OPTION_ID_TOS:
      return value != nullptr && length == sizeof(uint8_t) ? 0 : EINVAL;
    case RDMA_OPTION_ID_REUSEADDR: {
      const auto on = Integer(value, length);
      if (!on) return EINVAL;
      if (now != State::kIdle && (*on == 0 || now == State::kListening)) return EINVAL;
      reuse_address_ = *on != 0;
      return 0;
    }
    case RDMA_OPTION_ID_AFONLY: {
      const auto on = Integer(value, length);
      if (!on || (now != State::kIdle && now != State::kBound)) return EINVAL;
      only_v6_ = *on != 0;
      return 0;
    }
    case RDMA_OPTION_ID_ACK_TIMEOUT: {
      if (value == nullptr || length != sizeof(uint8_t)) return EINVAL;
      const uint8_t timeout = *static_cast<const uint8_t*>(value);
      if (timeout > 31) return EINVAL;  // 5 bits
      ack_timeout_ = timeout;
      return 0;
    }
    default:
      return ENOSYS;
  }
}

}  // namespace weft::cm

using weft::cm::Identifier;
using weft::cm::Return;

WEFT_CM_EXPORT int rdma_set_option(rdma_cm_id* id, int level, int optname, void* optval, size_t optlen) {
  if (id == nullptr) return Return(EINVAL);
  return Return(Identifier::From(id)->SetOption(level, optname, optval, optlen));
}

// There are no vendor options to agree on: none are received, and those to send are not needed.
WEFT_CM_EXPORT int rdma_get_remote_ece(rdma_cm_id* id, ibv_ece* ece) {
  if (id == nullptr || id->qp != nullptr || ece == nullptr) return Return(EINVAL);
  *ece = {};
  return 0;
}

WEFT_CM_EXPORT int rdma_set_local_ece(rdma_cm_id* id, ibv_ece* ece) {
  if (id == nullptr || id->qp != nullptr || ece == nullptr) return Return(EINVAL);
  return 0;
}

// rdma-core 60: an event of the program's own, to wake a thread that waits at the channel. Only RDMA_CM_EVENT_USER.
WEFT_CM_EXPORT int rdma_write_cm_event(rdma_cm_id* id, rdma_cm_event_type event, int status, uint64_t arg) {
  if (id == nullptr || event != weft::cm::kUserEvent) return Return(EINVAL);
  Identifier::From(id)->Post(event, status, arg);
  return 0;
}
