#ifndef SIM_NET_RANDOM_H_
#define SIM_NET_RANDOM_H_

#include <cstdint>
#include <random>

namespace weft::sim {

// Random numbers from a seed, equal with every library and machine (the standard's distributions are not).
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  uint64_t Next() { return engine_(); }
  // From `low` to `high`, inclusive.
  uint64_t Between(uint64_t low, uint64_t high) {
    uint64_t range = high - low + 1;
    return range == 0 ? Next() : low + Next() % range;
  }
  bool Chance(double probability) { return static_cast<double>(Next() >> 11) * 0x1p-53 < probability; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace weft::sim

#endif  // SIM_NET_RANDOM_H_
