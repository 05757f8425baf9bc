#ifndef PMI_LAUNCH_PAYLOAD_H_
#define PMI_LAUNCH_PAYLOAD_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pmi/wire/meaning.h"

namespace weft::pmi {

// Encoding of frames and their payloads: big-endian words of 32 bits, and texts preceded by their length.

inline void PutNumber(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift & 0xff));
}

inline uint32_t NumberAt(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

inline void PutText(std::string& out, const std::string& text) {
  PutNumber(out, static_cast<uint32_t>(text.size()));
  out += text;
}

inline void PutTexts(std::string& out, const std::vector<std::string>& texts) {
  PutNumber(out, static_cast<uint32_t>(texts.size()));
  for (const std::string& text : texts) PutText(out, text);
}

inline void PutValues(std::string& out, const KeyValues& values) {
  PutNumber(out, static_cast<uint32_t>(values.size()));
  for (const auto& [key, value] : values) {
    PutText(out, key);
    PutText(out, value);
  }
}

// Reads from front to back. After the first error every result is empty and ok() is false.
class PayloadCursor {
 public:
  explicit PayloadCursor(std::string_view bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && bytes_.empty(); }

  uint32_t Number() {
    if (!Has(4)) return 0;
    const uint32_t value = NumberAt(bytes_, 0);
    bytes_.remove_prefix(4);
    return value;
  }
  std::string Text() {
    const uint32_t length = Number();
    if (!Has(length)) return {};
    std::string text(bytes_.substr(0, length));
    bytes_.remove_prefix(length);
    return text;
  }
  // Reads a number of elements, each of which has at least `smallest` bytes.
  uint32_t Count(size_t smallest) {
    const uint32_t count = Number();
    if (count > bytes_.size() / smallest) ok_ = false;
    return ok_ ? count : 0;
  }
  std::vector<std::string> Texts() {
    std::vector<std::string> texts(Count(4));
    for (std::string& text : texts) text = Text();
    return texts;
  }
  KeyValues Values() {
    KeyValues values(Count(8));
    for (auto& [key, value] : values) {
      key = Text();
      value = Text();
    }
    return values;
  }

 private:
  bool Has(size_t bytes) { return ok_ = ok_ && bytes <= bytes_.size(); }

  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_PAYLOAD_H_
