#ifndef PMI_WIRE_COUNTED_H_
#define PMI_WIRE_COUNTED_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "pmi/wire/message.h"

namespace weft::pmi {

// PMI version 2 on the wire, after its first line, which is in version 1:
//
//   | length : 6 decimal digits, blanks beside them | cmd=name;key=value;key=value; |
//
// A semicolon in a value is doubled. No other character is special, not even a line end or a zero byte. The length is
// padded with blanks on its left, as MPICH and the draft do, or on its right, as Slurm does. A message that ends in
// concat=ID continues in one that begins with cmd=concat;concatid=ID. hydra 4.0 and Slurm support neither doubled
// semicolons nor concat: they truncate a value at a semicolon, and cannot receive a message of more than 999,999 bytes.

// All bytes of the message on the wire.
std::string SerializeCounted(const Message& message);

// Assembles messages from a stream that may be cut anywhere. The first error is final.
class CountedReader {
 public:
  static constexpr size_t kLengthDigits = 6;
  static constexpr size_t kLongestPart = 999999;       // bytes of one part on the wire
  static constexpr size_t kLongestMessage = 4 << 20;   // of a message in several parts
  static constexpr size_t kMostUnfinished = 16;        // messages whose continuation has not arrived
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
