#ifndef BENCH_STATISTICS_H_
#define BENCH_STATISTICS_H_

#include <chrono>
#include <vector>

namespace weft::bench {

// The value below which `fraction` (0 to 1) of `values` lies, an element of it. Not of none.
double Quantile(std::vector<double> values, double fraction);

// With an even number of values, the mean of the two in the middle.
double Median(std::vector<double> values);

// Of two measurements made in turns: the median of the quotients of neighbours, which a machine that slows down or
// speeds up during the measurement does not change. As many of one as of the other.
double MedianRatio(const std::vector<double>& numerators, const std::vector<double>& denominators);

using Clock = std::chrono::steady_clock;

inline double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace weft::bench

#endif  // BENCH_STATISTICS_H_
