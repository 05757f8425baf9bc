#include "bench/statistics.h"

#include <algorithm>
#include <cstddef>

namespace weft::bench {

double Quantile(std::vector<double> values, double fraction) {
  const size_t index = std::min(values.size() - 1, static_cast<size_t>(static_cast<double>(values.size()) * fraction));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(index), values.end());
  return values[index];
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double MedianRatio(const std::vector<double>& numerators, const std::vector<double>& denominators) {
  std::vector<double> ratios;
  for (size_t i = 0; i < numerators.size(); ++i) ratios.push_back(numerators[i] / denominators[i]);
  return Median(std::move(ratios));
}

}  // namespace weft::bench
