#include "pmi/wire/counted.h"

#include <algorithm>
#include <utility>

namespace weft::pmi {
namespace {

bool IsWord(std::string_view text) {
  return !text.empty() && text.size() <= CountedReader::kLongestKey && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

std::string Field(std::string_view name, std::string_view value) {
  std::string out(name);
  out += '=';
  for (const char c : value) {
    if (c == ';') out += ';';
    out += c;
  }
  return out += ';';
}

std::string Counted(const std::string& part) {
  const std::string length = std::to_string(part.size());
  return std::string(CountedReader::kLengthDigits - length.size(), ' ') + length + part;
}

}  // namespace

std::string SerializeCounted(const Message& message) {
  static constexpr char kConcatId[] = "1";  // the parts stand in a row, so one is enough
  const std::string on = Field("concat", kConcatId);
  std::string out;
  std::string part = Field("cmd", message.command);
  for (const auto& [name, value] : message.fields) {
    const std::string field = Field(name, value);
    if (part.size() + field.size() + on.size() > CountedReader::kLongestPart) {
      out += Counted(part + on);
      part = Field("cmd", "concat") + Field("concatid", kConcatId);
    }
    part += field;
  }
  return out + Counted(part);
}

std::optional<Message> CountedReader::Fail(std::string why) {
  error_ = std::move(why);
  buffer_.clear();
  position_ = 0;
  unfinished_.clear();
  return std::nullopt;
}

std::string CountedReader::TakeRest() {
  std::string rest = buffer_.substr(position_);
  buffer_.clear();
  position_ = 0;
  return rest;
}

std::optional<Message> CountedReader::Next() {
  while (error_.empty()) {
    const std::string_view rest = std::string_view(buffer_).substr(position_);
    if (rest.size() >= kLengthDigits) {
      const std::optional<size_t> length = ReadLength(rest.substr(0, kLengthDigits));
      if (!length) return std::nullopt;
      if (rest.size() - kLengthDigits >= *length) {
        const std::string part(rest.substr(kLengthDigits, *length));
        position_ += kLengthDigits + *length;
        if (auto message = TakePart(part)) return message;
        continue;
      }
    }
    buffer_.erase(0, position_);
    position_ = 0;
    return std::nullopt;
  }
  return std::nullopt;
}

// Blanks, digits, blanks.
std::optional<size_t> CountedReader::ReadLength(std::string_view field) {
  const size_t begin = std::min(field.find_first_not_of(' '), field.size());
  const size_t end = field.find_last_not_of(' ') + 1;
  const auto digits = field.substr(begin, begin < end ? end - begin : 0);
  const bool good = !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!good) {
    Fail("'" + Printable(field) + "' instead of the length of a message");
    return std::nullopt;
  }
  return static_cast<size_t>(*ParseInt(digits));
}

bool CountedReader::ParsePart(std::string_view part, Message* message) {
  for (size_t at = 0; at < part.size();) {
    const size_t equals = part.find('=', at);
    const std::string_view name = part.substr(at, std::min(equals, part.size()) - at);
    if (equals == std::string_view::npos || !IsWord(name)) {
      Fail("no key=value; in '" + Printable(part.substr(at)) + "'");
      return false;
    }
    std::string value;
    for (at = equals + 1; at < part.size(); ++at) {
      if (part[at] == ';' && (at + 1 == part.size() || part[at + 1] != ';')) break;
      at += part[at] == ';';
      value += part[at];
    }
    if (at >= part.size()) {
      Fail("no semicolon behind the value of " + std::string(name) + " in '" + Printable(part) + "'");
      return false;
    }
    ++at;
    if (message->command.empty()) {
      if (name != "cmd" || !IsWord(value)) {
        Fail("a message that does not begin with cmd=NAME; but is '" + Printable(part) + "'");
        return false;
      }
      message->command = std::move(value);
    } else if (message->fields.size() == kMostFields) {
      Fail("cmd=" + message->command + " with more than " + std::to_string(kMostFields) + " fields");
      return false;
    } else {
      message->fields.emplace_back(name, std::move(value));
    }
  }
  if (!message->command.empty()) return true;
  Fail("a message of 0 bytes");
  return false;
}

std::optional<Message> CountedReader::TakePart(std::string_view part) {
  Message message;
  if (!ParsePart(part, &message)) return std::nullopt;
  if (message.command != "concat") return Complete(std::move(message), part.size());
  if (message.fields.empty() || message.fields[0].first != "concatid") {
    return Fail("cmd=concat without the id of the message that it continues: '" + Printable(part) + "'");
  }
  const auto found = unfinished_.find(message.fields[0].second);
  if (found == unfinished_.end()) {
    return Fail("cmd=concat with concatid=" + Printable(message.fields[0].second) + ", which nothing before it announced");
  }
  Unfinished whole = std::move(found->second);
  unfinished_.erase(found);
  if (whole.message.fields.size() + message.fields.size() > kMostFields) {
    return Fail("cmd=" + whole.message.command + " with more than " + std::to_string(kMostFields) + " fields");
  }
  std::move(message.fields.begin() + 1, message.fields.end(), std::back_inserter(whole.message.fields));
  return Complete(std::move(whole.message), whole.bytes + part.size());
}

// Gives the message out, unless it says that more of it comes.
std::optional<Message> CountedReader::Complete(Message message, size_t bytes) {
  if (bytes > kLongestMessage) {
    return Fail("cmd=" + message.command + " of more than " + std::to_string(kLongestMessage) + " bytes");
  }
  if (message.fields.empty() || message.fields.back().first != "concat") return message;
  const std::string id = message.fields.back().second;
  message.fields.pop_back();
  if (unfinished_.size() == kMostUnfinished || unfinished_.contains(id)) {
    return Fail(unfinished_.contains(id) ? "concat=" + Printable(id) + " twice without its continuation"
                                         : "more than " + std::to_string(kMostUnfinished) + " unfinished messages");
  }
  unfinished_.emplace(id, Unfinished{std::move(message), bytes});
  return std::nullopt;
}

}  // namespace weft::pmi
