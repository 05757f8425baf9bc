#include "pmi/wire/message.h"

#include <algorithm>
#include <charconv>

namespace weft::pmi {
namespace {

bool IsControl(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }

}  // namespace

std::optional<int> ParseInt(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string NumberList(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

std::optional<std::vector<int>> ParseNumberList(std::string_view text, size_t most) {
  std::vector<int> numbers;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const auto number = ParseInt(text.substr(0, comma));
    if (!number || *number < 0 || numbers.size() == most || comma + 1 == text.size()) return std::nullopt;
    numbers.push_back(*number);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return numbers;
}

std::string Printable(std::string_view bytes, size_t longest) {
  std::string out(bytes.substr(0, longest));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  if (bytes.size() > longest) out += "...";
  return out;
}

std::string EscapeBlanks(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    const std::string_view next = text.substr(at + 1, 2);
    if (text[at] == ' ') {
      out += "%20";
    } else if (text[at] == '%' && (next == "20" || next == "25")) {
      out += "%25";
    } else {
      out += text[at];
    }
  }
  return out;
}

std::string UnescapeBlanks(std::string_view escaped) {
  std::string out;
  for (size_t at = 0; at < escaped.size(); ++at) {
    const std::string_view three = escaped.substr(at, 3);
    if (three == "%20" || three == "%25") {
      out += three == "%20" ? ' ' : '%';
      at += 2;
    } else {
      out += escaped[at];
    }
  }
  return out;
}

const std::string* Message::Find(std::string_view name) const {
  for (const auto& [field, value] : fields) {
    if (field == name) return &value;
  }
  return nullptr;
}

std::optional<int> Message::FindInt(std::string_view name) const {
  const std::string* value = Find(name);
  return value == nullptr ? std::nullopt : ParseInt(*value);
}

Message& Message::Add(std::string name, std::string value) {
  fields.emplace_back(std::move(name), std::move(value));
  return *this;
}

std::string Message::Serialize() const {
  const char between = multi_line ? '\n' : ' ';
  std::string out = (multi_line ? "mcmd=" : "cmd=") + command;
  for (const auto& [name, value] : fields) out += between + name + '=' + value;
  if (multi_line) out += "\nendcmd";
  return out + '\n';
}

std::optional<Message> MessageReader::Fail(std::string why) {
  error_ = std::move(why);
  buffer_.clear();
  position_ = 0;
  partial_.reset();
  return std::nullopt;
}

std::string MessageReader::TakeRest() {
  std::string rest = buffer_.substr(position_);
  buffer_.clear();
  position_ = 0;
  return rest;
}

std::optional<Message> MessageReader::Next() {
  while (error_.empty()) {
    const size_t end = buffer_.find('\n', position_);
    const size_t length = std::min(end, buffer_.size()) - position_;
    if (length > kLongestLine) return Fail("a line of more than " + std::to_string(kLongestLine) + " bytes");
    if (end == std::string::npos) {
      buffer_.erase(0, position_);
      position_ = 0;
      return std::nullopt;
    }
    const std::string line = buffer_.substr(position_, length);
    position_ = end + 1;
    if (auto message = TakeLine(line)) return message;
  }
  return std::nullopt;
}

// A message that `line` completes.
std::optional<Message> MessageReader::TakeLine(std::string_view line) {
  if (std::any_of(line.begin(), line.end(), IsControl)) return Fail("a control character in '" + Printable(line) + "'");
  if (!partial_) return ParseLine(line);
  if (line == "endcmd") {
    Message complete = std::move(*partial_);
    partial_.reset();
    return complete;
  }
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos || equals == 0) return Fail("no NAME=VALUE in '" + Printable(line) + "'");
  if (partial_->fields.size() == kMostFields) {
    return Fail("mcmd=" + Printable(partial_->command) + " with more than " + std::to_string(kMostFields) + " fields");
  }
  partial_->Add(std::string(line.substr(0, equals)), std::string(line.substr(equals + 1)));
  return std::nullopt;
}

std::optional<Message> MessageReader::ParseLine(std::string_view line) {
  Message message;
  bool first = true;
  for (size_t at = 0; at < line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size());
    const std::string_view word = line.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    const size_t equals = word.find('=');
    if (first) {
      const std::string_view name = word.substr(0, equals);
      if (equals == std::string_view::npos || (name != "cmd" && name != "mcmd")) {
        return Fail("a message that does not begin with cmd= but is '" + Printable(line) + "'");
      }
      message.command = word.substr(equals + 1);
      message.multi_line = name == "mcmd";
      first = false;
    } else if (equals != std::string_view::npos && equals != 0) {
      message.Add(std::string(word.substr(0, equals)), std::string(word.substr(equals + 1)));
    } else if (!message.fields.empty()) {
      message.fields.back().second.append(" ").append(word);
    } else {
      return Fail("no NAME=VALUE in '" + Printable(line) + "'");
    }
  }
  if (first) return std::nullopt;  // an empty line separates nothing
  if (!message.multi_line) return message;
  partial_ = std::move(message);
  return std::nullopt;
}

}  // namespace weft::pmi
