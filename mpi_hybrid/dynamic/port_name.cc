#include "mpi_hybrid/dynamic/port_name.h"

#include <algorithm>
#include <charconv>

#include "base/hex.h"
#include "base/version.h"

namespace weft::mpi {
namespace {

constexpr std::string_view kScheme = "weft";

// Takes what stands before the next colon.
std::optional<std::string_view> TakeField(std::string_view* rest) {
  const size_t colon = rest->find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view field = rest->substr(0, colon);
  rest->remove_prefix(colon + 1);
  return field;
}

bool ToNumber(std::string_view digits, int32_t* number) {
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *number);
  return error == std::errc() && end == digits.data() + digits.size() && *number >= 0;
}

bool IsPrintable(char c) { return c > ' ' && c < 0x7f; }

}  // namespace

std::string PortName::ToString() const {
  std::string text = std::string(kScheme) + ":" + std::string(Version()) + ":" + HexOf(owner.job.bytes) + ":" + std::to_string(owner.rank) + ":" +
                     std::to_string(number) + ":" + secret.ToHex() + ":" + key + "=" + card;
  while (text.size() > kLongest && text.rfind(',') != std::string::npos) text.resize(text.rfind(','));
  return text;
}

std::optional<PortName> PortName::Parse(std::string_view text) {
  if (text.size() > kLongest || !std::all_of(text.begin(), text.end(), IsPrintable)) return std::nullopt;
  const auto scheme = TakeField(&text), version = TakeField(&text), job = TakeField(&text), rank = TakeField(&text), number = TakeField(&text),
             digits = TakeField(&text);
  if (!digits || scheme != kScheme || version != Version()) return std::nullopt;
  const auto secret = JobSecret::FromHex(*digits);
  const size_t equals = text.find('=');
  if (!secret || equals == std::string_view::npos || equals == 0) return std::nullopt;
  PortName name{.owner = {},
                .number = 0,
                .secret = *secret,
                .key = std::string(text.substr(0, equals)),
                .card = std::string(text.substr(equals + 1))};
  if (!ParseHex(*job, name.owner.job.bytes) || !ToNumber(*rank, &name.owner.rank) || !ToNumber(*number, &name.number) ||
      name.card.empty())
    return std::nullopt;
  return name;
}

std::string PortName::WhyRefused(std::string_view text) {
  const std::string_view whole = text;
  const auto scheme = TakeField(&text), version = TakeField(&text);
  if (!version || scheme != kScheme || version == Version()) return "'" + std::string(whole) + "' is not the name of a port";
  JobId job;
  return "the port is of " + (ParseHex(*version, job.bytes) ? "an older Weft" : "Weft " + std::string(*version)) + ", and this process has Weft " +
         std::string(Version()) + "; processes that connect need the same version";
}

}  // namespace weft::mpi
