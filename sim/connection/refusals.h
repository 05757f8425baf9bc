#ifndef SIM_CONNECTION_REFUSALS_H_
#define SIM_CONNECTION_REFUSALS_H_

#include <array>
#include <chrono>
#include <cstdint>

#include "transport/network.h"

namespace weft::sim {

// Receiver not ready: the request that the peer refused last, and how often in a row.
class Refusals {
 public:
  // The request with that count was refused. `retry`: rnr_retry of ibv_modify_qp(3); 7: for ever.
  void Add(uint64_t count, uint8_t retry) {
    constexpr uint8_t kForEver = 7;
    times_ = count == refused_ ? times_ + 1 : 1;
    refused_ = count;
    exhausted_ = retry != kForEver && times_ > retry;
  }
  uint64_t refused() const { return refused_; }
  unsigned times() const { return times_; }
  bool exhausted() const { return exhausted_; }

  // The delay that min_rnr_timer of ibv_modify_qp(3) encodes: InfiniBand specification, volume 1, table 45.
  static transport::Duration Wait(uint8_t timer) {
    constexpr std::array<uint32_t, 32> kTensOfMicroseconds = {65536, 1,   2,   3,   4,   6,   8,    12,   16,   24,   32,
                                                              48,    64,  96,  128, 192, 256, 384,  512,  768,  1024, 1536,
                                                              2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
    return std::chrono::microseconds(10) * kTensOfMicroseconds[timer % kTensOfMicroseconds.size()];
  }

 private:
  uint64_t refused_ = UINT64_MAX;
  unsigned times_ = 0;
  bool exhausted_ = false;
};

}  // namespace weft::sim

#endif  // SIM_CONNECTION_REFUSALS_H_
