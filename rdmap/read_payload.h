#ifndef RDMAP_READ_PAYLOAD_H_
#define RDMAP_READ_PAYLOAD_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "rdmap/host.h"
#include "rdmap/read_queues.h"

namespace weft::rdmap {

// Where the payload of Read Responses lies, which may have been unmapped (base/program_memory.h). A thread of Weft's looks at the source of a long one
// before it goes out, since later it is too late for an error. It copies short ones, as many of those that wait as it can with one system call: a call
// for each of them costs more than all else that is done for it.
class ReadPayload {
 public:
  // Longer answers are sent from where they lie.
  static constexpr uint32_t kShort = 512;
  // Of a long answer, each time it is asked for. To look at all of the rest would cost a long Read the square of its length.
  static constexpr uint32_t kLookedAhead = 256 * 1024;

  // `reads`: the peer's, which both outlive this.
  ReadPayload(Host& host, FixedRing<InboundRead>& reads) : host_(host), reads_(reads) {}

  struct Source {
    uint8_t* bytes;
    bool ours;  // copied: valid until Forget()
  };
  // The last `left` bytes (not 0) of what the oldest Read asks for. Once for each Read between two calls of Forget(), in their order. `alone`: nothing can
  // be said of those behind it yet. kBounds: the source is not there.
  Result<Source, AccessError> Find(uint32_t left, bool alone);

  // Regions may go, and reads_ may change otherwise than by Reads that are added and, once they were asked for, taken away.
  void Forget() { copied_ = used_ = 0; }

 private:
  static constexpr size_t kMost = 32, kBytes = 2048;
  static_assert(kBytes >= kShort);

  Result<uint8_t*, AccessError> Resolve(const ReadRequestHeader& read, uint32_t left);
  // Short ones from the oldest on, as far as they are there.
  void Copy(uint8_t* oldest, uint32_t left, bool alone);

  Host& host_;
  FixedRing<InboundRead>& reads_;
  size_t copied_ = 0, used_ = 0;  // bytes
  std::array<uint8_t, kBytes> copies_{};
};

}  // namespace weft::rdmap

#endif  // RDMAP_READ_PAYLOAD_H_
