#ifndef PMI_WIRE_MESSAGE_H_
#define PMI_WIRE_MESSAGE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::pmi {

// PMI version 1 on the wire, as MPICH's simple_pmi client and hydra speak it: text, in one of two forms.
//
//   cmd=get kvsname=kvs_17 key=addr-3\n        one line; values end at a blank
//   mcmd=spawn\nnprocs=2\n...endcmd\n          a line for each field; values end with the line
//
// A word without '=' in the one-line form belongs to the value before it (some launchers put sentences into msg=).
struct Message {
  std::string command;                                           // of cmd= or mcmd=
  bool multi_line = false;                                       // mcmd=
  std::vector<std::pair<std::string, std::string>> fields = {};  // in the order of the wire, repeated names included

  // The first field of that name, or null.
  const std::string* Find(std::string_view name) const;
  // Empty: not there, or not a decimal number that fits.
  std::optional<int> FindInt(std::string_view name) const;

  Message& Add(std::string name, std::string value);
  Message& Add(std::string name, int value) { return Add(std::move(name), std::to_string(value)); }
  // The bytes of the wire, line end included.
  std::string Serialize() const;
};

// Limits that the server announces (get_maxes), in bytes with the terminating zero that C clients need; MPICH's own.
inline constexpr int kKvsNameMax = 256;
inline constexpr int kKeyMax = 64;
inline constexpr int kValueMax = 1024;

// Puts messages together from a stream that may be cut anywhere. The first error is final: what follows cannot be trusted.
class MessageReader {
 public:
  static constexpr size_t kLongestLine = 16 * 1024;  // bytes
  static constexpr size_t kMostFields = 4096;        // of a multi-line message

  void Append(std::string_view bytes) { buffer_.append(bytes); }
  // Empty: more bytes are needed, or error() says what is wrong.
  std::optional<Message> Next();
  const std::string& error() const { return error_; }                      // a sentence without full stop; empty: none
  bool empty() const { return position_ == buffer_.size() && !partial_; }  // nothing half received
  // The bytes behind the last message, which another reader goes on with.
  std::string TakeRest();
  std::string_view rest() const { return std::string_view(buffer_).substr(position_); }

 private:
  std::optional<Message> Fail(std::string why);
  std::optional<Message> TakeLine(std::string_view line);
  std::optional<Message> ParseLine(std::string_view line);

  std::string buffer_;
  size_t position_ = 0;             // of what is not yet consumed
  std::optional<Message> partial_;  // an mcmd= whose endcmd has not come
  std::string error_;
};

// A decimal int in full, or nothing.
std::optional<int> ParseInt(std::string_view text);

// "0,5,7", and back; nothing where the text is no list of at most `most` numbers, none of them negative.
std::string NumberList(const std::vector<int>& numbers);
std::optional<std::vector<int>> ParseNumberList(std::string_view text, size_t most);

// At most `longest` bytes, and those that are not printable replaced, for error messages.
std::string Printable(std::string_view bytes, size_t longest = 80);

// A sentence as one value of a one-line message: a blank is %20, and a per cent sign that would be misread %25; and back.
std::string EscapeBlanks(std::string_view text);
std::string UnescapeBlanks(std::string_view escaped);

}  // namespace weft::pmi

#endif  // PMI_WIRE_MESSAGE_H_
