#include "pmi/launch/frame.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "pmi/launch/payload.h"
#include "pmi/wire/message.h"

namespace weft::pmi {

std::string Frame::Serialize() const {
  WEFT_CHECK(payload.size() <= FrameReader::kLongestPayload);
  std::string out;
  out.reserve(FrameReader::kHeader + payload.size());
  PutNumber(out, static_cast<uint32_t>(payload.size()));
  out.push_back(static_cast<char>(type));
  PutNumber(out, static_cast<uint32_t>(job));
  PutNumber(out, static_cast<uint32_t>(number));
  PutNumber(out, static_cast<uint32_t>(host));
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
                   std::string(rest.substr(kHeader, length)), static_cast<int32_t>(NumberAt(rest, 5)),
                   static_cast<int32_t>(NumberAt(rest, 13))};
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
  PayloadCursor cursor(bytes);
  KeyValues values = cursor.Values();
  if (!cursor.at_end()) return std::nullopt;
  return values;
}

size_t SizeOfValues(const KeyValues& values) {
  size_t size = 4;
  for (const auto& [key, value] : values) size += 8 + key.size() + value.size();
  return size;
}

std::string TooMuchPut(size_t bytes) {
  return std::to_string(bytes) + " bytes into the key-value space before one barrier; the limit is " + std::to_string(FrameReader::kLongestPayload);
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
  PutText(out, bind_to);
  PutText(out, map_by);
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
  PayloadCursor cursor(bytes);
  StartOrder order;
  order.job_size = static_cast<int32_t>(cursor.Number());
  order.universe_size = static_cast<int32_t>(cursor.Number());
  order.kvs_name = cursor.Text();
  order.spawner = cursor.Text();
  order.values = cursor.Values();
  order.host_address = cursor.Text();
  order.bind_to = cursor.Text();
  order.map_by = cursor.Text();
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

std::string Profile::Serialize() const {
  std::string text = std::to_string(neighbours);
  for (const uint64_t number : {sent, sent_bytes, received, received_bytes}) text += " " + std::to_string(number);
  return text;
}

std::optional<Profile> Profile::Parse(const std::string& payload) {
  Profile profile;
  std::istringstream words(payload);
  words >> profile.neighbours >> profile.sent >> profile.sent_bytes >> profile.received >> profile.received_bytes;
  std::string more;
  if (words.fail() || words >> more) return std::nullopt;
  return profile;
}

}  // namespace weft::pmi
