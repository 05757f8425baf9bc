#ifndef IMPI_WIRE_COMMAND_H_
#define IMPI_WIRE_COMMAND_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_reader.h"

// What a client and the server of an IMPI job say to each other (IMPI 0.0, section 2.3):
//
//   | command : 32 | length of the payload : 32, signed | payload |      big-endian
namespace weft::impi {

using Bytes = std::vector<uint8_t>;

// Of four ASCII letters. Others than these are skipped by who receives them.
enum class CommandCode : uint32_t {
  kAuth = 0x41555448,
  kImpi = 0x494D5049,
  kColl = 0x434F4C4C,
  kDone = 0x444F4E45,
  kFini = 0x46494E49,
};
// "AUTH", or "0x12345678".
std::string NameOf(CommandCode code);

// Of COLL. Clients send them in ascending order; those of a client before those of a host, these before those of a process.
enum class Label : int32_t {
  kNone = 0,  // reserved
  kVersion = 0x1000,
  kHosts = 0x1100,      // how many the client has
  kProcesses = 0x1200,  // how many the client has
  kDataLength = 0x1300,
  kTagUpperBound = 0x1400,
  kCrossoverSize = 0x1500,
  kMaxLinear = 0x1600,
  kHostAddress = 0x2000,
  kHostPort = 0x2100,
  kHostProcesses = 0x2200,
  kHostAckMark = 0x2300,
  kHostHighWater = 0x2400,
  kProcessAddress = 0x3000,
  kProcessNumber = 0x3100,
};
// "IMPI_C_VERSION", or "label 0x1001".
std::string NameOf(Label label);

struct Command {
  CommandCode code;
  Bytes payload;

  static constexpr size_t kHeader = 8;  // bytes

  Bytes Serialize() const;
  // The payload is one integer of 32 bits: IMPI, and AUTH of version 0.0.
  static Command OfNumber(CommandCode code, uint32_t number);
  bool operator==(const Command&) const = default;
};

// The authentication methods of version 0.0, as numbers; a client offers them as bits of a mask, 1 << number.
enum class AuthMethod : uint8_t { kNone = 0, kKey = 1 };
inline constexpr int kMostMethods = 32;

// The server's answer to AUTH, without a header: which method it chose, and how many bytes of that method follow.
struct AuthChoice {
  static constexpr size_t kSize = 8;  // bytes
  int32_t which = 0, length = 0;

  Bytes Serialize() const;
  static AuthChoice Parse(ByteSpan bytes);  // of kSize bytes
  bool operator==(const AuthChoice&) const = default;
};

// The client's next words with kKey, without a header.
inline constexpr size_t kKeySize = 8;  // bytes
Bytes SerializeKey(uint64_t key);
uint64_t ParseKey(ByteSpan bytes);  // of kKeySize bytes

// What COLL carries. From a client: label and values. From the server: label, a mask with bit i for the client with rank i that sent values, and those
// of all of them in ascending order of their ranks.
struct Collected {
  Label label;
  uint32_t clients = 0;  // mask
  Bytes values;

  Command ToServer() const;
  Command ToClient() const;
  // nullopt: too short.
  static std::optional<Collected> FromClient(const Command& command);
  static std::optional<Collected> FromServer(const Command& command);
  bool operator==(const Collected&) const = default;
};

// Takes commands, and the words between them that have no header, from a stream that may be cut anywhere. It keeps at most one command that has not come
// whole, and no more memory than came. A length that is negative or above the limit ends it.
class CommandReader {
 public:
  explicit CommandReader(size_t longest_payload) : longest_(longest_payload) {}

  void Append(ByteSpan bytes) { buffer_.insert(buffer_.end(), bytes.begin(), bytes.end()); }
  // Empty: more bytes are needed, or failed().
  std::optional<Command> NextCommand();
  // Exactly `count` bytes; empty: more are needed.
  std::optional<Bytes> NextWords(size_t count);

  void set_longest_payload(size_t bytes) { longest_ = bytes; }
  // The length that was refused, if one was; then nothing more is taken.
  std::optional<int32_t> refused_length() const { return refused_length_; }
  size_t waiting() const { return buffer_.size() - at_; }  // bytes

 private:
  ByteSpan Waiting() const { return ByteSpan(buffer_).subspan(at_); }
  void Take(size_t count);

  size_t longest_;  // bytes
  Bytes buffer_;
  size_t at_ = 0;  // what was taken from its front
  std::optional<int32_t> refused_length_;
};

}  // namespace weft::impi

#endif  // IMPI_WIRE_COMMAND_H_
