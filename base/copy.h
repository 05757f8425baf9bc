#ifndef BASE_COPY_H_
#define BASE_COPY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weft {

// Like memcpy, also where that is slow. Many C libraries copy more than 2 KiB with `rep movsb`. On AMD Zen 3 and 4 this
// takes 20 times as long if the destination begins 1 to 31 bytes behind the source, counted within a page (glibc bug
// 30994, fixed in 2.39). A copy from page-aligned memory, such as shared memory, into a large malloc buffer is always
// such a case. Pieces of up to 2 KiB are not affected.
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

namespace internal {

// Copies up to 16 bytes. Reads all of them before it writes the first.
inline void MoveUpTo16(void* to, const void* from, size_t bytes) {
  auto* const at = static_cast<uint8_t*>(to);
  const auto* const source = static_cast<const uint8_t*>(from);
  // The first and the last piece of one size; they may overlap.
  const auto copy_ends = [&]<typename Piece>(Piece) {
    Piece first, last;
    std::memcpy(&first, source, sizeof(Piece));
    std::memcpy(&last, source + bytes - sizeof(Piece), sizeof(Piece));
    std::memcpy(at, &first, sizeof(Piece));
    std::memcpy(at + bytes - sizeof(Piece), &last, sizeof(Piece));
  };
  if (bytes >= 8) {
    copy_ends(uint64_t{});
  } else if (bytes >= 4) {
    copy_ends(uint32_t{});
  } else if (bytes >= 2) {
    copy_ends(uint16_t{});
  } else if (bytes == 1) {
    *at = *source;
  }
}

}  // namespace internal

// Like CopyBytes, but without a function call for up to 16 bytes. If there are no bytes, either pointer may be null.
inline void CopyShortBytes(void* to, const void* from, size_t bytes) {
  if (bytes > 16) return CopyBytes(to, from, bytes);
  internal::MoveUpTo16(to, from, bytes);
}

// Like CopyBytes, for memory whose last bytes another thread or process may poll. The last word is the longest aligned
// one of up to 8 bytes that ends at the end of the range. It is stored as a whole and with release. A reader that loads
// it with acquire also sees the bytes in front of it, and those of earlier copies.
inline void CopyEndLast(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  auto* const at = static_cast<uint8_t*>(to);
  const auto* const source = static_cast<const uint8_t*>(from);
  const uintptr_t end = reinterpret_cast<uintptr_t>(at + bytes);
  const auto finish = [&]<typename Word>(Word word) {
    const size_t before = bytes - sizeof word;
    std::memcpy(&word, source + before, sizeof word);
    CopyBytes(at, source, before);
    std::atomic_ref(*reinterpret_cast<Word*>(at + before)).store(word, std::memory_order_release);
  };
  if (bytes >= 8 && end % 8 == 0) return finish(uint64_t{});
  if (bytes >= 4 && end % 4 == 0) return finish(uint32_t{});
  if (bytes >= 2 && end % 2 == 0) return finish(uint16_t{});
  finish(uint8_t{});
}

// Like memmove: the ranges may overlap. Avoids the slow case of CopyBytes.
inline void MoveBytes(void* to, const void* from, size_t bytes) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(to), source = reinterpret_cast<uintptr_t>(from);
  if ((at > source ? at - source : source - at) >= bytes) {
    CopyBytes(to, from, bytes);
  } else {
    std::memmove(to, from, bytes);
  }
}

// Like MoveBytes, but without a function call for up to 16 bytes.
inline void MoveShortBytes(void* to, const void* from, size_t bytes) {
  if (bytes > 16) return MoveBytes(to, from, bytes);
  internal::MoveUpTo16(to, from, bytes);
}

}  // namespace weft

#endif  // BASE_COPY_H_
