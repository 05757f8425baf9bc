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

// Limits how many warnings reach the log from each place in the code: kBurst at once, then one per second. Warnings
// that a stranger can cause by connecting must not fill a disk, and must not hide warnings from another place. Not
// thread safe.
class WarningLimit {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Place = std::pair<const char*, int>;  // file (a string that is never freed) and line

  static constexpr int kBurst = 10;
  static constexpr std::chrono::seconds kThenEvery{1};

  // Returns the text to write for `message`: the message, with the number of messages from `place` that were dropped
  // since the last one. nullopt: write nothing.
  std::optional<std::string> Admit(Place place, std::string_view message, Time now);
  // The dropped messages not yet reported, one for each place; for the end of the process.
  std::vector<std::string> TakeLeftOut();

 private:
  struct Record {
    int left = kBurst;  // messages that may be written at once
    Time refilled{};    // when `left` was last increased
    uint64_t left_out = 0;
    std::string last;  // the last message that was dropped
  };
  std::map<Place, Record> records_;
};

}  // namespace weft

#endif  // BASE_WARNING_LIMIT_H_
