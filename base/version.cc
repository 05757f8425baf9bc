#include "base/version.h"

#include <algorithm>
#include <cstddef>
#include <fstream>

#include "base/version_text.h"

namespace weft {
namespace {

constexpr std::size_t kMarkerSize = 16;
constexpr std::size_t kTextSize = 64;  // with its zeros
constexpr std::size_t kFieldSize = kMarkerSize + kTextSize;
constexpr std::size_t kBlockSize = 1 << 20;  // of a file that is searched

// A marker and the version, padded with zeros: tools/stamp finds the marker in the file and writes another version behind it. It stands once
// in each program and library. Volatile, or the compiler would copy the text into its users.
[[gnu::used, gnu::retain]] const volatile char kField[kFieldSize] = "\x7fWEFT-VERSION-\x7f=" WEFT_VERSION_TEXT;
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
  const std::string marker = Field().substr(0, kMarkerSize);
  for (std::string window;;) {  // what may be the beginning of the field, and the next block
    const std::size_t kept = window.size();
    window.resize(kept + kBlockSize);
    in.read(window.data() + kept, kBlockSize);
    window.resize(kept + static_cast<std::size_t>(in.gcount()));
    if (window.size() == kept) return std::nullopt;
    const std::size_t at = window.find(marker);
    if (at != window.npos && window.size() - at >= kFieldSize) return TextOf(window.substr(at, kFieldSize));
    window.erase(0, at != window.npos ? at : window.size() - std::min(window.size(), kMarkerSize - 1));
  }
}

}  // namespace weft
