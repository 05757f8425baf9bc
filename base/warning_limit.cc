#include "base/warning_limit.h"

#include <algorithm>

namespace weft {
namespace {

constexpr size_t kMostOfLast = 300;

}  // namespace

std::optional<std::string> WarningLimit::Admit(Place place, std::string_view message, Time now) {
  const auto [found, is_new] = records_.try_emplace(place);
  Record& record = found->second;
  if (is_new) record.refilled = now;
  const auto more = std::max<int64_t>((now - record.refilled) / kThenEvery, 0);
  record.left = static_cast<int>(std::min<int64_t>(record.left + more, kBurst));
  record.refilled += more * kThenEvery;
  if (record.left == 0) {
    ++record.left_out;
    record.last = message.substr(0, kMostOfLast);
    return std::nullopt;
  }
  --record.left;
  std::string text(message);
  if (record.left_out > 0) text += " (" + std::to_string(record.left_out) + " similar messages were dropped before it)";
  record.left_out = 0;
  return text;
}

std::vector<std::string> WarningLimit::TakeLeftOut() {
  std::vector<std::string> texts;
  for (auto& [place, record] : records_) {
    if (record.left_out == 0) continue;
    texts.push_back(std::to_string(record.left_out) +
                    " similar messages were dropped; the last one: " + record.last);
    record.left_out = 0;
  }
  return texts;
}

}  // namespace weft
