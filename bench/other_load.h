#ifndef BENCH_OTHER_LOAD_H_
#define BENCH_OTHER_LOAD_H_

#include "bench/statistics.h"

namespace weft::bench {

// How much of the machine other programs use while this object lives. Ratios from a busy machine say little: a spinning
// program loses its CPU to others, and a sleeping one is preferred when it wakes.
class OtherLoad {
 public:
  OtherLoad();
  // Average number of CPUs that programs besides this one and its ended children kept busy; 0 or more.
  double Cpus() const;

 private:
  const Clock::time_point start_;
  const double busy_, own_;  // seconds, at the start
};

}  // namespace weft::bench

#endif  // BENCH_OTHER_LOAD_H_
