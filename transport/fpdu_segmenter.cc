#include "transport/fpdu_segmenter.h"

#include <algorithm>
#include <string_view>

namespace weft::transport {
namespace {

// RFC 5044 section 7.1: a key of 16 bytes, flags, revision, length of the private data.
constexpr size_t kStartUpHeader = 20;
constexpr size_t kFlagsAt = 16;
constexpr uint8_t kMarkersFlag = 0x80;
constexpr std::string_view kRequestKey = "MPA ID Req Frame";
constexpr std::string_view kReplyKey = "MPA ID Rep Frame";

// RFC 5044 section 4.3: a marker at every 512th byte, the first before the first FPDU.
constexpr size_t kMarkerBytes = 4;
constexpr size_t kMarkerInterval = 512;
constexpr size_t kLengthField = 2;
constexpr size_t kCrcBytes = 4;

bool BeginsWithKey(ByteSpan bytes) {
  std::string_view start(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kRequestKey.size()));
  return kRequestKey.starts_with(start) || kReplyKey.starts_with(start);
}

}  // namespace

void FpduSegmenter::Add(Direction direction, ByteSpan bytes, const Emit& emit) {
  Side& side = sides_[direction];
  const Side& other = sides_[1 - direction];
  side.held.insert(side.held.end(), bytes.begin(), bytes.end());
  size_t done = 0;
  while (done < side.held.size()) {
    ByteSpan rest = ByteSpan(side.held).subspan(done);
    size_t length = NextLength(side, other, rest);
    if (length == kUnknown || length > rest.size()) break;
    emit(rest.first(length));
    done += length;
    if (side.phase == Phase::kStartUp) {
      side.phase = Phase::kFpdus;
    } else {
      side.position += length;
    }
  }
  side.held.erase(side.held.begin(), side.held.begin() + static_cast<ptrdiff_t>(done));
}

void FpduSegmenter::Flush(Direction direction, const Emit& emit) {
  Side& side = sides_[direction];
  if (!side.held.empty()) emit(side.held);
  side.held.clear();
}

size_t FpduSegmenter::NextLength(Side& side, const Side& other, ByteSpan bytes) {
  if (side.phase == Phase::kStartUp && !BeginsWithKey(bytes)) side.phase = Phase::kNotMpa;
  switch (side.phase) {
    case Phase::kStartUp:
      return StartUpLength(side, bytes);
    case Phase::kFpdus:
      return FpduLength(side.position, other.wants_markers, bytes);
    case Phase::kNotMpa:
      break;
  }
  return bytes.size();
}

size_t FpduSegmenter::StartUpLength(Side& side, ByteSpan bytes) {
  if (bytes.size() < kStartUpHeader) return kUnknown;
  side.wants_markers = (bytes[kFlagsAt] & kMarkersFlag) != 0;
  return kStartUpHeader + ByteReader(bytes.subspan(kStartUpHeader - 2)).U16();
}

size_t FpduSegmenter::FpduLength(uint64_t position, bool markers, ByteSpan bytes) {
  size_t length_at = markers && position % kMarkerInterval == 0 ? kMarkerBytes : 0;
  if (bytes.size() < length_at + kLengthField) return kUnknown;
  size_t content = kLengthField + ByteReader(bytes.subspan(length_at)).U16();
  content += (4 - content % 4) % 4 + kCrcBytes;
  if (!markers) return content;
  uint64_t end = position;
  while (content > 0) {
    if (end % kMarkerInterval == 0) end += kMarkerBytes;
    size_t until_marker = std::min<size_t>(content, kMarkerInterval - end % kMarkerInterval);
    end += until_marker;
    content -= until_marker;
  }
  return static_cast<size_t>(end - position);
}

}  // namespace weft::transport
