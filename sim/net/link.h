#ifndef SIM_NET_LINK_H_
#define SIM_NET_LINK_H_

#include <cstdint>
#include <limits>
#include <optional>

#include "sim/net/random.h"
#include "transport/network.h"

namespace weft::sim {

using transport::Duration;
using transport::Time;

// How a link treats one direction of each connection opened over it. The default is a good network.
struct LinkFaults {
  static constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();
  static constexpr uint64_t kNowhere = std::numeric_limits<uint64_t>::max();

  Duration delay = std::chrono::microseconds(5);  // one way
  Duration jitter{0};                             // up to this much more for each segment; the order is kept

  // A write is sent in segments of random size between these limits, each with its own jitter.
  size_t shortest_segment = kUnlimited;
  size_t longest_segment = kUnlimited;
  // A read or write moves at most this many bytes; with `random_io`, a random number up to this.
  size_t most_per_call = kUnlimited;
  bool random_io = false;
  // Maximum number of bytes written but not yet read by the other end; beyond that, writes would block.
  size_t buffer = 256 * 1024;
  // ByteStream::SegmentSize().
  size_t segment_size = 1460;

  // Nothing arrives in this period, counted from the start of the connection; it arrives at the end of the period.
  Duration stall_at{0};
  Duration stall_for{0};

  // The connection ends after this many bytes of this direction have arrived, or at this time after its start.
  enum class Cut : uint8_t {
    kReset,      // both ends are told
    kBlackhole,  // nothing arrives in either direction any more, and no end is told
  };
  Cut cut = Cut::kReset;
  uint64_t cut_after_bytes = kNowhere;
  std::optional<Duration> cut_after;
  // A writer whose bytes are lost fails with ETIMEDOUT after this time; 0: never (with real TCP it takes very long).
  Duration give_up_after{0};

  // One bit of the byte at this position is inverted, and one bit of segments with this probability.
  uint64_t corrupt_byte = kNowhere;
  double corrupt_probability = 0;

  // Datagrams are lost or duplicated with these probabilities; `jitter` reorders them.
  double lose_datagram = 0;
  double repeat_datagram = 0;

  // The fate of a connection attempt in this direction.
  enum class Connect : uint8_t { kWorks, kRefused, kTimesOut };
  Connect connect = Connect::kWorks;
  Duration connect_timeout = std::chrono::seconds(127);

  // A link with random sizes, delays and buffers from the seed. Anything that TCP allows may happen, but no byte is
  // lost.
  static LinkFaults Rough(Random& random) {
    LinkFaults link;
    link.delay = Duration(random.Between(0, 200'000));
    link.jitter = Duration(random.Chance(0.5) ? random.Between(0, 2'000'000) : 0);
    constexpr size_t kSizes[] = {1, 2, 3, 7, 64, 536, 1460, 9000, 65'536, kUnlimited};
    size_t low = random.Between(0, std::size(kSizes) - 1), high = random.Between(low, std::size(kSizes) - 1);
    link.shortest_segment = kSizes[low];
    link.longest_segment = kSizes[high];
    link.most_per_call = kSizes[random.Between(2, std::size(kSizes) - 1)];
    link.random_io = random.Chance(0.5);
    constexpr size_t kBuffers[] = {1, 100, 4096, 65'536, 1 << 20};
    link.buffer = kBuffers[random.Between(0, std::size(kBuffers) - 1)];
    link.segment_size = kSizes[random.Between(5, 8)];
    if (random.Chance(0.2)) {
      link.stall_at = Duration(random.Between(0, 5'000'000));
      link.stall_for = Duration(random.Between(0, 50'000'000));
    }
    return link;
  }
};

}  // namespace weft::sim

#endif  // SIM_NET_LINK_H_
