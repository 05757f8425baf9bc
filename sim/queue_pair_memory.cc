#include "sim/queue_pair.h"
#include "sim/rnic.h"

// Work requests of a queue pair that change memory windows.
namespace weft::sim {

// In the order of the queue, but without waiting for what was posted before, unless the program asks for a fence: requests under way
// were checked when they began.
bool QueuePair::BindWindow(uint64_t count) {
  SendEntry& entry = sends_.entry(count);
  if (entry.request.fence && sends_.retired() != count) return false;
  if (!rnic_.memory().BindWindow(*options_.pd, window_owner_, sends_.bind(count))) {
    entry.status = IBV_WC_MW_BIND_ERR;
    return false;
  }
  entry.status = IBV_WC_SUCCESS;
  entry.done = true;
  return true;
}

}  // namespace weft::sim
