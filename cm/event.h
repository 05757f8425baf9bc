#ifndef CM_EVENT_H_
#define CM_EVENT_H_

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "sim/cm/api.h"

namespace weft::cm {

class Identifier;

// Events of rdma-core 60, which the headers used for this build may lack.
inline constexpr auto kAddressInfoResolved = static_cast<rdma_cm_event_type>(16);
inline constexpr auto kAddressInfoError = static_cast<rdma_cm_event_type>(17);
inline constexpr auto kUserEvent = static_cast<rdma_cm_event_type>(18);
inline constexpr auto kInternalEvent = static_cast<rdma_cm_event_type>(19);

// The type of the event. The enumeration of older headers cannot hold newer types, and loading one would be undefined.
inline int NumberOf(const rdma_cm_event& event) {
  int number;
  static_assert(sizeof number == sizeof event.event);
  memcpy(&number, &event.event, sizeof number);
  return number;
}

// The event that rdma_get_cm_event returns and rdma_ack_cm_event frees: the public structure and the data that it
// points to.
struct Event : rdma_cm_event {
  Event() : rdma_cm_event{} {}
  // Rejects a connection request that the program never saw.
  ~Event() {
    if (request) request->Close();
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // The identifier whose destruction waits for the acknowledgement: the listener of a connection request, otherwise
  // `id`.
  std::shared_ptr<Identifier> owner;
  std::shared_ptr<sim::Endpoint> request;  // a connection request not yet turned into an identifier
  std::vector<uint8_t> private_data;       // param.conn.private_data, or param.ud.private_data, points here
  uint64_t join = 0;                       // RDMA_CM_EVENT_MULTICAST_JOIN: the number of the join
};

}  // namespace weft::cm

#endif  // CM_EVENT_H_
