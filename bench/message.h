#ifndef BENCH_MESSAGE_H_
#define BENCH_MESSAGE_H_

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

namespace weft::bench {

// A measurement is not possible. Handled by the worker (which tells the driver) or by the benchmark (which reports it).
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws Failure with `what` and the meaning of `error`, an errno.
[[noreturn]] void Fail(const std::string& what, int error);

// The messages between driver and workers: a verb and named values. On the wire, lines: "verb\nkey=value\n...".
class Message {
 public:
  explicit Message(std::string verb) : verb_(std::move(verb)) {}
  static Message Parse(std::string_view text);  // Failure: a line without '='
  std::string ToString() const;

  const std::string& verb() const { return verb_; }
  Message& Set(const std::string& key, std::string value);
  Message& Set(const std::string& key, int64_t value);
  Message& Set(const std::string& key, double value);

  // Failure: no such key, or not a number.
  const std::string& Text(const std::string& key) const;
  int64_t Integer(const std::string& key) const;
  double Real(const std::string& key) const;

 private:
  std::string verb_;
  std::map<std::string, std::string> values_;
};

}  // namespace weft::bench

#endif  // BENCH_MESSAGE_H_
