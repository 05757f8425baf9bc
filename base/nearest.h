#ifndef BASE_NEAREST_H_
#define BASE_NEAREST_H_

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace weft {

// The number of letters to insert, delete or replace to turn one word into the other (Levenshtein distance).
inline size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({substitute, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

// The name that the user probably meant by `word`: at most a third of its letters may be wrong, but two always may.
inline std::optional<std::string_view> NearestName(std::string_view word, std::span<const std::string_view> names) {
  std::optional<std::string_view> best;
  size_t least = std::max<size_t>(word.size() / 3, 2) + 1;
  for (const std::string_view name : names) {
    const size_t distance = EditDistance(word, name);
    if (distance >= least || distance >= name.size()) continue;
    least = distance;
    best = name;
  }
  return best;
}

}  // namespace weft

#endif  // BASE_NEAREST_H_
