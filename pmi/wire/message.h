#ifndef PMI_WIRE_MESSAGE_H_
#define PMI_WIRE_MESSAGE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::pmi {

// PMI version 1 on the wire, as MPICH's simple_pmi client and hydra use it: text in one of two forms.
//
//   cmd=get kvsname=kvs_17 key=addr-3\n        one line; values end at a blank
//   mcmd=spawn\nnprocs=2\n...endcmd\n          a line for each field; values end with the line
//
// In the one-line form, a word without '=' belongs to the value before it (some launchers put sentences into msg=).
struct Message {
  std::string command;                                           // of cmd= or mcmd=
  bool multi_line = false;                                       // mcmd=
  std::vector<std::pair<std::string, std::string>> fields = {};  // in the order of the wire, including repeated names

  // The first field of that name, or null.
  const std::string* Find(std::string_view name) const;
  // nullopt: it is not there, or not a decimal number that fits.
  std::optional<int> FindInt(std::string_view name) const;

  Message& Add(std::string name, std::string value);
  Message& Add(std::string name, int value) { return Add(std::move(name), std::to_string(value)); }
  // The bytes on the wire, including the line end.
  std::string Serialize() const;
};

// Limits that the server announces (get_maxes), in bytes including the terminating zero that C clients need. They are
// MPICH's.
inline constexpr int kKvsNameMax = 256;
inline constexpr int kKeyMax = 64;
inline constexpr int kValueMax = 1024;

// Assembles messages from a stream that may be cut anywhere. The first error is final: later data cannot be trusted.
class MessageReader {
 public:
  static constexpr size_t kLongestLine = 16 * 1024;  // bytes
  static constexpr size_t kMostFields = 4096;        // in a multi-line message

  void Append(std::string_view bytes) { buffer_.append(bytes); }
  // nullopt: more bytes are needed, or error() describes the error.
  std::optional<Message> Next();
  const std::string& error() const { return error_; }  // a sentence without a full stop; empty: none
  bool empty() const { return position_ == buffer_.size() && !partial_; }  // no message is incomplete
  // The bytes behind the last message, for another reader.
  std::string TakeRest();
  std::string_view rest() const { return std::string_view(buffer_).substr(position_); }

 private:
  std::optional<Message> Fail(std::string why);
  std::optional<Message> TakeLine(std::string_view line);
  std::optional<Message> ParseLine(std::string_view line);

  std::string buffer_;
  size_t position_ = 0;             // of the data not yet consumed
  std::optional<Message> partial_;  // an mcmd= whose endcmd has not arrived
  std::string error_;
};

// A decimal int that takes the whole text, or nullopt.
std::optional<int> ParseInt(std::string_view text);

// Converts to and from "0,5,7". nullopt: the text is not a list of at most `most` numbers, all of them not negative.
std::string NumberList(const std::vector<int>& numbers);
std::optional<std::vector<int>> ParseNumberList(std::string_view text, size_t most);

// At most `longest` bytes, with unprintable ones replaced, for error messages.
std::string Printable(std::string_view bytes, size_t longest = 80);

// A sentence as one value of a one-line message, and back: a blank becomes %20, and a percent sign that would be
// misread becomes %25.
std::string EscapeBlanks(std::string_view text);
std::string UnescapeBlanks(std::string_view escaped);

}  // namespace weft::pmi

#endif  // PMI_WIRE_MESSAGE_H_
