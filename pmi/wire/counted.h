#ifndef PMI_WIRE_COUNTED_H_
#define PMI_WIRE_COUNTED_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "pmi/wire/message.h"

namespace weft::pmi {

// PMI version 2 on the wire, after its first line, which is of version 1:
//
//   | length : 6 decimal digits, blanks beside them | cmd=name;key=value;key=value; |
//
// A semicolon in a value is doubled; nothing else is special, not a line end and not a zero. Blanks stand left of the length as
// MPICH and the draft have it, or right of it as Slurm has it. A message that ends in concat=ID goes on in one that begins with
// cmd=concat;concatid=ID. What hydra 4.0 and Slurm read knows neither doubled semicolons nor concat: a value with a semicolon
// arrives there cut off, and a message of more than 999,999 bytes not at all.

// All bytes of the wire.
std::string SerializeCounted(const Message& message);

// Puts messages together from a stream that may be cut anywhere. The first error is final.
class CountedReader {
 public:
  static constexpr size_t kLengthDigits = 6;
  static constexpr size_t kLongestPart = 999999;       // bytes of one message on the wire
  static constexpr size_t kLongestMessage = 4 << 20;   // of one in several parts
  static constexpr size_t kMostUnfinished = 16;        // messages whose continuation has not come
  static constexpr size_t kLongestKey = 64;
  static constexpr size_t kMostFields = 65536;

  void Append(std::string_view bytes) { buffer_.append(bytes); }
  std::optional<Message> Next();
  const std::string& error() const { return error_; }
  std::string TakeRest();

 private:
  struct Unfinished {
    Message message;
    size_t bytes = 0;
  };

  std::optional<Message> Fail(std::string why);
  std::optional<size_t> ReadLength(std::string_view digits);
  std::optional<Message> TakePart(std::string_view part);
  bool ParsePart(std::string_view part, Message* message);
  std::optional<Message> Complete(Message message, size_t bytes);

  std::string buffer_;
  size_t position_ = 0;
  std::map<std::string, Unfinished> unfinished_;  // by concat id
  std::string error_;
};

}  // namespace weft::pmi

#endif  // PMI_WIRE_COUNTED_H_
