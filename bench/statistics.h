#ifndef BENCH_STATISTICS_H_
#define BENCH_STATISTICS_H_

#include <chrono>
#include <vector>

namespace weft::bench {

// The element of `values` below which `fraction` (0 to 1) of them lies. `values` must not be empty.
double Quantile(std::vector<double> values, double fraction);

// With an even number of values, the mean of the two in the middle.
double Median(std::vector<double> values);

// For two measurements made in turns: the median of the quotients of neighbours. It does not change if the machine
// slows down or speeds up during the measurement. Both have the same number of values.
double MedianRatio(const std::vector<double>& numerators, const std::vector<double>& denominators);

using Clock = std::chrono::steady_clock;

inline double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace weft::bench

#endif  // BENCH_STATISTICS_H_
