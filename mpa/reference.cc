#include "mpa/reference.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"

namespace weft::mpa {
namespace {

constexpr uint8_t kGuard = 0xa5;
constexpr size_t kGuardLength = 8;
constexpr uint8_t kUntouched = 0xcc;

// A byte at a time.
uint32_t PlainCrc(const Bytes& bytes, size_t from, size_t to) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t byte = 0; byte < 256; ++byte) {
      made[byte] = byte;
      for (int bit = 0; bit < 8; ++bit)
        made[byte] = (made[byte] & 1) ? (made[byte] >> 1) ^ 0x82f63b78 : made[byte] >> 1;
    }
    return made;
  }();
  uint32_t state = 0xffffffff;
  for (size_t i = from; i < to; ++i) state = state >> 8 ^ table[(state ^ bytes[i]) & 0xff];
  return ~state;
}

}  // namespace

void ReferenceEncode(Bytes& stream, ByteSpan ulpdu, bool crc, bool markers) {
  const size_t covered_from = stream.size();
  size_t start = 0;
  bool started = false;
  auto marker_if_due = [&] {
    if (!markers || stream.size() % 512 != 0) return;
    const size_t pointer = started ? stream.size() - start : 0;
    for (size_t byte : {size_t{0}, size_t{0}, pointer >> 8, pointer}) stream.push_back(static_cast<uint8_t>(byte));
  };
  auto put = [&](size_t byte) {
    marker_if_due();
    stream.push_back(static_cast<uint8_t>(byte));
  };
  marker_if_due();
  start = stream.size();
  started = true;
  put(ulpdu.size() >> 8);
  put(ulpdu.size() & 0xff);
  for (uint8_t byte : ulpdu) put(byte);
  for (size_t i = 2 + ulpdu.size(); i % 4 != 0; ++i) put(0);
  marker_if_due();
  const uint32_t value = crc ? PlainCrc(stream, covered_from, stream.size()) : 0;
  for (int i = 0; i < 4; ++i) put(value >> (8 * i) & 0xff);
}

ReferenceDecoded ReferenceDecode(ByteSpan stream_span, const FpduReceiver::Options& options) {
  const Bytes stream(stream_span.begin(), stream_span.end());
  ReferenceDecoded decoded;
  size_t at = 0;
  for (;;) {
    const size_t covered_from = at;
    if (at == stream.size()) return decoded;
    decoded.at_boundary = false;
    std::vector<size_t> marker_positions;
    bool short_of_bytes = false;
    // The next byte that is not a marker's.
    auto next = [&]() -> size_t {
      if (options.markers && at % 512 == 0) {
        if (stream.size() - at < 4) short_of_bytes = true;
        marker_positions.push_back(at);
        at += 4;
      }
      if (at >= stream.size()) short_of_bytes = true;
      return short_of_bytes ? 0 : stream[at++];
    };
    const size_t high = next();
    if (short_of_bytes) return decoded;
    const size_t start = at - 1;
    const size_t low = next();
    if (short_of_bytes) return decoded;
    const size_t length = high << 8 | low;
    if (length == 0 || length > options.max_ulpdu) {
      decoded.error = FpduError::kBadLength;
      return decoded;
    }
    Bytes ulpdu;
    for (size_t i = 0; i < length && !short_of_bytes; ++i) ulpdu.push_back(static_cast<uint8_t>(next()));
    for (size_t i = 2 + length; i % 4 != 0 && !short_of_bytes; ++i) next();
    uint32_t crc = 0;
    size_t crc_at = 0;
    for (int i = 0; i < 4 && !short_of_bytes; ++i) {
      crc |= static_cast<uint32_t>(next()) << (8 * i);
      if (i == 0) crc_at = at - 1;
    }
    if (short_of_bytes) return decoded;
    if (options.crc && PlainCrc(stream, covered_from, crc_at) != crc) {
      decoded.error = FpduError::kBadCrc;
      return decoded;
    }
    for (size_t marker : marker_positions) {
      const size_t pointer = (stream[marker + 2] << 8 | stream[marker + 3]) & ~3;
      const size_t right = marker < start ? 0 : (marker - start) & 0xffff;
      if (pointer != right) {
        decoded.error = FpduError::kBadMarker;
        return decoded;
      }
    }
    decoded.ulpdus.push_back(std::move(ulpdu));
    decoded.at_boundary = true;
  }
}

bool RecordingSink::Begin(size_t length, ByteSpan head, llp::UlpduPlan* plan) {
  WEFT_CHECK(!between_);
  WEFT_CHECK(head.size() >= std::min(length, llp::HeadLength(head)) && head.size() <= std::min(length, llp::kUlpduHeadLength));
  if (calls_++ == refuse_at_) return false;
  between_ = true;
  length_ = length;
  // The first byte decides, so that every way is taken and a test can repeat it.
  const size_t choice = head[0];
  header_.assign(head.begin(),
                 head.begin() + static_cast<long>(std::min(length, choice % (llp::HeadLength(head) + 1))));
  size_t left = length - header_.size();
  memory_.clear();
  pieces_.clear();
  for (size_t i = 0; left != 0; ++i) {
    const size_t size = i + 1 >= max_pieces_ ? left : std::min(left, (choice * 37 + i * 101) % 700);  // zero as well
    memory_.emplace_back(size + 2 * kGuardLength, kGuard);
    std::fill_n(memory_.back().begin() + kGuardLength, size, kUntouched);
    left -= size;
  }
  for (Bytes& memory : memory_) pieces_.push_back({memory.data() + kGuardLength, memory.size() - 2 * kGuardLength});
  plan->header_length = header_.size();
  plan->payload = pieces_;
  return true;
}

bool RecordingSink::End() {
  WEFT_CHECK(between_);
  if (calls_++ == refuse_at_) return false;
  between_ = false;
  for (const Bytes& memory : memory_) {
    for (size_t i = 0; i < kGuardLength; ++i) {
      WEFT_CHECK(memory[i] == kGuard && memory[memory.size() - 1 - i] == kGuard);
    }
  }
  Bytes ulpdu = header_;
  const Bytes payload = placed();
  ulpdu.insert(ulpdu.end(), payload.begin(), payload.end());
  WEFT_CHECK(ulpdu.size() == length_);
  ulpdus_.push_back(std::move(ulpdu));
  return true;
}

Bytes RecordingSink::placed() const {
  Bytes all;
  for (const Bytes& memory : memory_) all.insert(all.end(), memory.begin() + kGuardLength, memory.end() - kGuardLength);
  return all;
}

bool Feed(FpduReceiver& receiver, ByteSpan bytes, size_t step) {
  bool more = true;
  while (!bytes.empty() && more) {
    const std::span<const iovec> into = receiver.PrepareRead();
    WEFT_CHECK(!into.empty() && into.size() <= FpduReceiver::kMaxPieces);
    size_t left = step == 0 ? bytes.size() : std::min(step, bytes.size());
    size_t count = 0;
    for (const iovec& piece : into) {
      WEFT_CHECK(piece.iov_len != 0);
      const size_t part = std::min(left, piece.iov_len);
      std::memcpy(piece.iov_base, bytes.data() + count, part);
      count += part;
      left -= part;
    }
    more = receiver.Commit(count);
    bytes = bytes.subspan(count);
  }
  return more;
}

}  // namespace weft::mpa
