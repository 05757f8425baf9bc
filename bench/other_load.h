#ifndef BENCH_OTHER_LOAD_H_
#define BENCH_OTHER_LOAD_H_

#include "bench/statistics.h"

namespace weft::bench {

// How much of the machine other programs use while this lives. Ratios of a busy machine say little: what spins loses
// its CPU to others, what sleeps is preferred when it wakes.
class OtherLoad {
 public:
  OtherLoad();
  // CPUs that programs besides this one and its ended children kept busy on average, 0 and up.
  double Cpus() const;

 private:
  const Clock::time_point start_;
  const double busy_, own_;  // seconds, then
};

}  // namespace weft::bench

#endif  // BENCH_OTHER_LOAD_H_
