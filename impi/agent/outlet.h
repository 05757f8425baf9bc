#ifndef IMPI_AGENT_OUTLET_H_
#define IMPI_AGENT_OUTLET_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/byte_reader.h"
#include "impi/agent/inlet.h"

namespace weft::impi {

// What waits to be written to one connection, whole packets in order: protocol acknowledgements before all others, so that they do not wait behind the data
// that waits for them (IMPI 0.0, section 3.6). A packet that has been begun, or was shown by Gather, keeps its place.
class Outlet {
 public:
  static constexpr size_t kMostShown = 65536;  // bytes: more packets are not shown by Gather; data ahead of a new acknowledgement is not much more

  struct Entry {
    CarriedPacket packet;
    int32_t payer = 0;  // of the agent's: on whose account it stands
  };

  // The header is written.
  void Add(Entry entry);
  // What comes next, in order; at most `into.size()` spans. Returns how many. They are valid until Wrote, DropAll or the end.
  size_t Gather(std::span<ByteSpan> into);
  // So many bytes of those that Gather showed are written. Returns the packets that are complete.
  std::vector<Entry> Wrote(size_t bytes);
  // Returns all that has not been written whole.
  std::vector<Entry> DropAll();

  bool empty() const { return shown_.empty() && urgent_.empty() && others_.empty(); }

 private:
  std::deque<Entry> shown_, urgent_, others_;
  size_t written_ = 0;  // bytes, of the first one shown
};

}  // namespace weft::impi

#endif  // IMPI_AGENT_OUTLET_H_
