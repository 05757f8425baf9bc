#include "impi/tester/values.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <string_view>

#include "base/byte_writer.h"
#include "base/hex.h"
#include "impi/tester/labels.h"
#include "impi/tester/numbers.h"
#include "impi/wire/packet.h"

namespace weft::impi::tester {
namespace {

constexpr size_t kShown = 64;  // bytes, of a dump

const char* const kForms =
    "; values are numbers of 32 bits (5, -1, 0x1000), labels (IMPI_C_NHOSTS), u8:N, u64:N, f32:X, f64:X, hex:00ff, "
    "text:WORD, zeros:COUNT, pattern:SEED:COUNT and ip:ADDRESS; in expectations also any:COUNT and rest";

template <typename Float>
std::optional<Float> ParseFloat(std::string_view text) {
  Float value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

uint8_t PatternAt(uint64_t seed, uint64_t index) { return static_cast<uint8_t>((seed % 251 + index % 251) % 251); }

Result<Values, std::string> Values::Parse(std::span<const std::string> words, bool expected) {
  Values values;
  for (const std::string& word : words) {
    if (values.rest_) return "'" + word + "' follows 'rest', which is all that comes; remove one of them";
    if (std::string why = values.Add(word, expected); !why.empty()) return why;
    if (values.bytes_.size() > kMost) {
      return "with '" + word + "' the values are longer than the " + std::to_string(kMost) + " bytes of a step";
    }
  }
  return values;
}

std::string Values::AddUnsigned(uint64_t value, size_t count) {
  for (size_t i = count; i-- > 0;) bytes_.push_back(static_cast<uint8_t>(value >> (8 * i)));
  any_.resize(bytes_.size());
  return {};
}

std::string Values::Add(const std::string& word, bool expected) {
  const std::string wrong = "'" + word + "' is not a value" + kForms;
  const size_t colon = word.find(':');
  if (colon == std::string::npos) {
    if (word == "rest") {
      if (!expected) return "'rest' stands for bytes that come; it cannot be sent";
      rest_ = true;
      return {};
    }
    if (const auto label = FindLabel(word)) return AddUnsigned(static_cast<uint32_t>(*label), 4);
    const auto number = ParseBits(word);
    const bool fits = number && (*number <= UINT32_MAX || static_cast<int64_t>(*number) >= INT32_MIN) &&
                      (word.starts_with('-') || *number <= UINT32_MAX);
    return fits ? AddUnsigned(*number, 4) : wrong;
  }
  const std::string kind = word.substr(0, colon), text = word.substr(colon + 1);
  if (kind == "u8" || kind == "u64") {
    const auto number = kind == "u8" ? ParseUpTo(text, UINT8_MAX) : ParseBits(text);
    return number ? AddUnsigned(*number, kind == "u8" ? 1 : 8) : wrong;
  }
  if (kind == "f32") {
    const auto number = ParseFloat<float>(text);
    return number ? AddUnsigned(std::bit_cast<uint32_t>(*number), 4) : wrong;
  }
  if (kind == "f64") {
    const auto number = ParseFloat<double>(text);
    return number ? AddUnsigned(std::bit_cast<uint64_t>(*number), 8) : wrong;
  }
  if (kind == "hex") {
    const size_t before = bytes_.size();
    if (text.size() % 2 != 0 || text.size() > 2 * kMost) return wrong;
    bytes_.resize(before + text.size() / 2);
    any_.resize(bytes_.size());
    return ParseHex(text, MutableByteSpan(bytes_).subspan(before)) ? "" : wrong;
  }
  if (kind == "text") {
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    any_.resize(bytes_.size());
    return {};
  }
  if (kind == "ip") {
    HostId host{};
    in_addr ipv4;
    if (inet_pton(AF_INET, text.c_str(), &ipv4) == 1) {
      host = HostIdOfIpv4(ipv4.s_addr);
    } else if (inet_pton(AF_INET6, text.c_str(), host.data()) != 1) {
      return wrong;
    }
    bytes_.insert(bytes_.end(), host.begin(), host.end());
    any_.resize(bytes_.size());
    return {};
  }
  uint64_t seed = 0;
  std::string count_text = text;
  if (kind == "pattern") {
    const size_t second = text.find(':');
    const auto number = second == std::string::npos ? std::nullopt : ParseUpTo(text.substr(0, second), UINT32_MAX);
    if (!number) return wrong;
    seed = *number;
    count_text = text.substr(second + 1);
  } else if (kind != "zeros" && kind != "any") {
    return wrong;
  }
  if (kind == "any" && !expected) return "'" + word + "' stands for bytes that come; it cannot be sent";
  const auto count = ParseUpTo(count_text, kMost);
  if (!count) return wrong;
  for (uint64_t i = 0; i < *count; ++i) bytes_.push_back(kind == "pattern" ? PatternAt(seed, i) : 0);
  any_.resize(bytes_.size(), kind == "any");
  return {};
}

std::optional<size_t> Values::size() const {
  if (rest_) return std::nullopt;
  return bytes_.size();
}

std::optional<size_t> Values::FirstDifference(ByteSpan came) const {
  for (size_t i = 0; i < bytes_.size(); ++i) {
    if (i == came.size() || (!any_[i] && came[i] != bytes_[i])) return i;
  }
  if (!rest_ && came.size() > bytes_.size()) return bytes_.size();
  return std::nullopt;
}

std::string Dump(ByteSpan bytes) {
  if (bytes.empty()) return "no bytes";
  std::string text = std::to_string(bytes.size()) + (bytes.size() == 1 ? " byte:" : " bytes:");
  const ByteSpan shown = bytes.first(std::min(bytes.size(), kShown));
  for (size_t at = 0; at < shown.size(); at += 4) {
    text += " " + HexOf(shown.subspan(at, std::min<size_t>(4, shown.size() - at)));
  }
  return shown.size() == bytes.size() ? text : text + " ...";
}

}  // namespace weft::impi::tester
