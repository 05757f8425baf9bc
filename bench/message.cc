#include "bench/message.h"

#include <cstdlib>
#include <cstring>

namespace weft::bench {

void Fail(const std::string& what, int error) { throw Failure(what + ": " + std::strerror(error)); }

Message Message::Parse(std::string_view text) {
  const auto next_line = [&text] {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
  };
  Message message{std::string(next_line())};
  while (!text.empty()) {
    const std::string_view line = next_line();
    const size_t equals = line.find('=');
    if (equals == line.npos) throw Failure("message line without '=': " + std::string(line));
    message.values_[std::string(line.substr(0, equals))] = line.substr(equals + 1);
  }
  return message;
}

std::string Message::ToString() const {
  std::string text = verb_;
  for (const auto& [key, value] : values_) text += "\n" + key + "=" + value;
  return text;
}

Message& Message::Set(const std::string& key, std::string value) {
  for (char& c : value) {
    if (c == '\n') c = ' ';
  }
  values_[key] = std::move(value);
  return *this;
}

Message& Message::Set(const std::string& key, int64_t value) { return Set(key, std::to_string(value)); }

Message& Message::Set(const std::string& key, double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return Set(key, std::string(text));
}

const std::string& Message::Text(const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) throw Failure("message " + verb_ + " has no " + key);
  return found->second;
}

int64_t Message::Integer(const std::string& key) const {
  const std::string& text = Text(key);
  char* end = nullptr;
  const int64_t value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != 0) throw Failure(key + " is not a whole number: " + text);
  return value;
}

double Message::Real(const std::string& key) const {
  const std::string& text = Text(key);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0) throw Failure(key + " is not a number: " + text);
  return value;
}

}  // namespace weft::bench
