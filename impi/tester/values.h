#ifndef IMPI_TESTER_VALUES_H_
#define IMPI_TESTER_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/byte_reader.h"
#include "base/result.h"
#include "impi/wire/command.h"

namespace weft::impi::tester {

// Bytes as a script writes them, one word for each value. README.md lists the words.
//
//   5  -1  0x1000      32 bits, big-endian        u8:5  u64:5   so many bits
//   IMPI_C_NHOSTS      a label, 32 bits           f32:0.5  f64:0.5
//   hex:00ff  text:abc  zeros:N  pattern:SEED:N  ip:192.0.2.7 (16 bytes)
//   any:N  rest        in expectations: any N bytes; all that follows
class Values {
 public:
  static constexpr size_t kMost = 1 << 20;  // bytes, of all values of a step

  // Why not: a sentence that names the word and what is possible.
  static Result<Values, std::string> Parse(std::span<const std::string> words, bool expected);

  // How many bytes they are; nullopt: `rest` is among them.
  std::optional<size_t> size() const;
  // Not of expectations with any:N or rest.
  const Bytes& bytes() const { return bytes_; }
  // The place of the first byte that differs, which may be one behind the end of either.
  std::optional<size_t> FirstDifference(ByteSpan came) const;

 private:
  std::string Add(const std::string& word, bool expected);
  std::string AddUnsigned(uint64_t value, size_t bytes);

  Bytes bytes_;
  std::vector<bool> any_;  // by byte: not compared
  bool rest_ = false;
};

// Bytes `seed`, `seed` + 1 and so on, modulo 251, a prime, so that bytes at the wrong place differ. rank.c makes the
// same.
uint8_t PatternAt(uint64_t seed, uint64_t index);

// As a report shows bytes: hexadecimal, the first 64 of them in groups of four.
std::string Dump(ByteSpan bytes);

}  // namespace weft::impi::tester

#endif  // IMPI_TESTER_VALUES_H_
