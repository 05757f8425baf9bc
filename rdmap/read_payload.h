#ifndef RDMAP_READ_PAYLOAD_H_
#define RDMAP_READ_PAYLOAD_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "rdmap/host.h"
#include "rdmap/read_queues.h"

namespace weft::rdmap {

// Finds the payload of Read Responses, which the program may have unmapped (base/program_memory.h). A thread of Weft
// checks the source of a long response before it is sent, since an error cannot be reported later. It copies the
// sources of short responses. One system call serves as many of the waiting ones as possible: one for each would cost
// more than all the other work for it.
class ReadPayload {
 public:
  // Longer responses are sent directly from their source.
  static constexpr uint32_t kShort = 512;
  // Bytes of a long response that are checked each time. Checking the whole rest would take quadratic time.
  static constexpr uint32_t kLookedAhead = 256 * 1024;

  // `reads`: the Reads of the peer. Both references outlive this object.
  ReadPayload(Host& host, FixedRing<InboundRead>& reads) : host_(host), reads_(reads) {}

  struct Source {
    uint8_t* bytes;
    bool ours;  // copied: valid until Forget()
  };
  // Returns the last `left` bytes (not 0) of the source of the oldest Read. To be called once for each Read between two
  // calls of Forget(), in order. `alone`: nothing is known yet about the Reads behind it. kBounds: the source is not
  // mapped.
  Result<Source, AccessError> Find(uint32_t left, bool alone);

  // To be called before regions may go, and before reads_ changes in another way than by adding Reads at the end or
  // removing Reads after Find().
  void Forget() { copied_ = used_ = looked_ = 0; }

 private:
  static constexpr size_t kMost = 32, kBytes = 2048;
  static_assert(kBytes >= kShort);

  Result<uint8_t*, AccessError> Resolve(const ReadRequestHeader& read, uint32_t left);
  // Copies short sources, from the oldest on, as far as they are mapped.
  void Copy(uint8_t* oldest, uint32_t left, bool alone);
  // Checks long sources, from the oldest on. Returns how many are mapped.
  uint16_t Look(uint8_t* oldest, uint32_t left, bool alone);

  Host& host_;
  FixedRing<InboundRead>& reads_;
  uint16_t copied_ = 0, used_ = 0;  // bytes
  uint16_t looked_ = 0;             // so many Reads, from the oldest on, are long and were checked
  std::array<uint8_t, kBytes> copies_{};
};

}  // namespace weft::rdmap

#endif  // RDMAP_READ_PAYLOAD_H_
