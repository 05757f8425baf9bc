#include "pmi/launch/frame.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "pmi/wire/message.h"

namespace weft::pmi {
namespace {

void PutNumber(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift & 0xff));
}

uint32_t NumberAt(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

void PutText(std::string& out, const std::string& text) {
  PutNumber(out, static_cast<uint32_t>(text.size()));
  out += text;
}

void PutTexts(std::string& out, const std::vector<std::string>& texts) {
  PutNumber(out, static_cast<uint32_t>(texts.size()));
  for (const std::string& text : texts) PutText(out, text);
}

void PutValues(std::string& out, const KeyValues& values) {
  PutNumber(out, static_cast<uint32_t>(values.size()));
  for (const auto& [key, value] : values) {
    PutText(out, key);
    PutText(out, value);
  }
}

// Reads from front to back; after the first thing that does not fit every answer is empty and ok() false.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && bytes_.empty(); }

  uint32_t Number() {
    if (!Has(4)) return 0;
    const uint32_t value = NumberAt(bytes_, 0);
    bytes_.remove_prefix(4);
    return value;
  }
  std::string Text() {
    const uint32_t length = Number();
    if (!Has(length)) return {};
    std::string text(bytes_.substr(0, length));
    bytes_.remove_prefix(length);
    return text;
  }
  // A number of elements of at least `smallest` bytes each.
  uint32_t Count(size_t smallest) {
    const uint32_t count = Number();
    if (count > bytes_.size() / smallest) ok_ = false;
    return ok_ ? count : 0;
  }
  std::vector<std::string> Texts() {
    std::vector<std::string> texts(Count(4));
    for (std::string& text : texts) text = Text();
    return texts;
  }
  KeyValues Values() {
    KeyValues values(Count(8));
    for (auto& [key, value] : values) {
      key = Text();
      value = Text();
    }
    return values;
  }

 private:
  bool Has(size_t bytes) { return ok_ = ok_ && bytes <= bytes_.size(); }

  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace

std::string Frame::Serialize() const {
  WEFT_CHECK(payload.size() <= FrameReader::kLongestPayload);
  std::string out;
  out.reserve(FrameReader::kHeader + payload.size());
  PutNumber(out, static_cast<uint32_t>(payload.size()));
  out.push_back(static_cast<char>(type));
  PutNumber(out, static_cast<uint32_t>(job));
  PutNumber(out, static_cast<uint32_t>(number));
  return out += payload;
}

std::optional<Frame> FrameReader::Next() {
  if (failed_) return std::nullopt;
  const std::string_view rest = std::string_view(buffer_).substr(position_);
  if (rest.size() >= kHeader) {
    const size_t length = NumberAt(rest, 0);
    const uint8_t type = static_cast<uint8_t>(rest[4]);
    if (length > kLongestPayload || type < 1 || type > static_cast<uint8_t>(kLastFrameType)) {
      failed_ = true;
      return std::nullopt;
    }
    if (rest.size() - kHeader >= length) {
      position_ += kHeader + length;
      return Frame{static_cast<FrameType>(type), static_cast<int32_t>(NumberAt(rest, 9)),
                   std::string(rest.substr(kHeader, length)), static_cast<int32_t>(NumberAt(rest, 5))};
    }
  }
  buffer_.erase(0, position_);
  position_ = 0;
  return std::nullopt;
}

std::string SerializeValues(const KeyValues& values) {
  std::string out;
  PutValues(out, values);
  return out;
}

std::optional<KeyValues> ParseValues(std::string_view bytes) {
  Cursor cursor(bytes);
  KeyValues values = cursor.Values();
  if (!cursor.at_end()) return std::nullopt;
  return values;
}

std::string NumberAndText(int number, const std::string& text) { return std::to_string(number) + " " + text; }

std::pair<int, std::string> ParseNumberAndText(const std::string& payload) {
  const size_t blank = std::min(payload.find(' '), payload.size());
  return {ParseInt(payload.substr(0, blank)).value_or(1), payload.substr(std::min(blank + 1, payload.size()))};
}

ExitReport ExitReport::Parse(const std::string& payload) {
  const auto [status, state] = ParseNumberAndText(payload);
  const int number = ParseInt(state).value_or(0);
  return {status, number == 1 ? Server::State::kInitialised : number == 2 ? Server::State::kFinalised : Server::State::kSilent};
}

std::string StartOrder::Serialize() const {
  std::string out;
  PutNumber(out, static_cast<uint32_t>(job_size));
  PutNumber(out, static_cast<uint32_t>(universe_size));
  PutText(out, kvs_name);
  PutText(out, spawner);
  PutValues(out, values);
  PutText(out, host_address);
  PutNumber(out, static_cast<uint32_t>(programs.size()));
  for (const Program& program : programs) {
    PutTexts(out, program.arguments);
    PutTexts(out, program.environment);
    PutText(out, program.directory);
    PutText(out, program.search_path);
  }
  PutNumber(out, static_cast<uint32_t>(ranks.size()));
  for (const Rank& rank : ranks) {
    PutNumber(out, static_cast<uint32_t>(rank.rank));
    PutNumber(out, static_cast<uint32_t>(rank.program));
  }
  return out;
}

std::optional<StartOrder> StartOrder::Parse(std::string_view bytes) {
  Cursor cursor(bytes);
  StartOrder order;
  order.job_size = static_cast<int32_t>(cursor.Number());
  order.universe_size = static_cast<int32_t>(cursor.Number());
  order.kvs_name = cursor.Text();
  order.spawner = cursor.Text();
  order.values = cursor.Values();
  order.host_address = cursor.Text();
  order.programs.resize(cursor.Count(16));
  for (Program& program : order.programs) {
    program.arguments = cursor.Texts();
    program.environment = cursor.Texts();
    program.directory = cursor.Text();
    program.search_path = cursor.Text();
    if (program.arguments.empty()) return std::nullopt;
  }
  order.ranks.resize(cursor.Count(8));
  for (Rank& rank : order.ranks) {
    rank.rank = static_cast<int32_t>(cursor.Number());
    rank.program = static_cast<int32_t>(cursor.Number());
    if (rank.rank < 0 || rank.rank >= order.job_size) return std::nullopt;
    if (rank.program < 0 || static_cast<size_t>(rank.program) >= order.programs.size()) return std::nullopt;
  }
  if (!cursor.at_end()) return std::nullopt;
  return order;
}

}  // namespace weft::pmi
