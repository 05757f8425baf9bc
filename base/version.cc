#include "base/version.h"

#include <cstddef>
#include <fstream>
#include <iterator>

#include "base/version_text.h"

namespace weft {
namespace {

constexpr std::size_t kMarkerSize = 16;
constexpr std::size_t kTextSize = 64;  // with its zeros

// A marker and the version, padded with zeros: tools/stamp finds the marker in the file and writes another version behind it. It stands once
// in each program and library. Volatile, or the compiler would copy the text into its users.
[[gnu::used, gnu::retain]] const volatile char kField[kMarkerSize + kTextSize] = "\x7fWEFT-VERSION-\x7f=" WEFT_VERSION_TEXT;
static_assert(sizeof "\x7fWEFT-VERSION-\x7f=" == kMarkerSize + 1);

std::string Field() {
  std::string field;
  for (const volatile char& c : kField) field += c;
  return field;
}

std::string TextOf(const std::string& field) { return field.substr(kMarkerSize, field.find('\0') - kMarkerSize); }

}  // namespace

std::string_view Version() {
  static const std::string* const version = new std::string(TextOf(Field()));  // also for what runs at exit
  return *version;
}

std::optional<std::string> VersionOf(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const std::size_t at = bytes.find(Field().substr(0, kMarkerSize));
  if (at == bytes.npos || bytes.size() - at < kMarkerSize + kTextSize) return std::nullopt;
  return TextOf(bytes.substr(at, kMarkerSize + kTextSize));
}

}  // namespace weft
