#ifndef BASE_WARNING_LIMIT_H_
#define BASE_WARNING_LIMIT_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

// How many warnings reach the log from each place in the code: kBurst at once, and from then on one each second. What a
// stranger can cause by connecting must not fill a disk, nor hide what another place has to say. Not thread safe.
class WarningLimit {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Place = std::pair<const char*, int>;  // file, which lives for ever, and line

  static constexpr int kBurst = 10;
  static constexpr std::chrono::seconds kThenEvery{1};

  // What to write of `message`: it, with the number of those from `place` that were left out since the last; nullopt:
  // nothing.
  std::optional<std::string> Admit(Place place, std::string_view message, Time now);
  // What nobody has said yet, a message for each place; for the end of the process.
  std::vector<std::string> TakeLeftOut();

 private:
  struct Record {
    int left = kBurst;  // that may be written at once
    Time refilled{};    // when `left` was last counted up
    uint64_t left_out = 0;
    std::string last;  // that was left out
  };
  std::map<Place, Record> records_;
};

}  // namespace weft

#endif  // BASE_WARNING_LIMIT_H_
