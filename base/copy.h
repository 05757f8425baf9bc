#ifndef BASE_COPY_H_
#define BASE_COPY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weft {

// As memcpy, also where that is slow: many C libraries copy more than 2 KiB by `rep movsb`, which on AMD's Zen 3 and 4 takes 20 times as
// long when the destination begins 1 to 31 bytes behind the source, counted within a page (bug 30994 of glibc, mended in 2.39). From
// memory that begins with a page, as shared memory does, into a large buffer of malloc it always does. Shorter pieces are not copied
// that way.
inline void CopyBytes(void* to, const void* from, size_t bytes) {
  constexpr size_t kPiece = 2048, kPage = 4096, kBehind = 31;
  const size_t behind = (reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from)) % kPage;
  if (bytes <= kPiece || behind - 1 >= kBehind) {
    std::memcpy(to, from, bytes);
    return;
  }
  auto* at = static_cast<uint8_t*>(to);
  const auto* source = static_cast<const uint8_t*>(from);
  for (; bytes > kPiece; bytes -= kPiece, at += kPiece, source += kPiece) std::memcpy(at, source, kPiece);
  std::memcpy(at, source, bytes);
}

// The same as memmove: the two may overlap.
inline void MoveBytes(void* to, const void* from, size_t bytes) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(to), source = reinterpret_cast<uintptr_t>(from);
  if ((at > source ? at - source : source - at) >= bytes) {
    CopyBytes(to, from, bytes);
  } else {
    std::memmove(to, from, bytes);
  }
}

}  // namespace weft

#endif  // BASE_COPY_H_
