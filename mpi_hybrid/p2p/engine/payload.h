#ifndef MPI_HYBRID_P2P_ENGINE_PAYLOAD_H_
#define MPI_HYBRID_P2P_ENGINE_PAYLOAD_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/check.h"
#include "base/copy.h"
#include "mpi_hybrid/datatype/datatype.h"

namespace weft::mpi {

// The data of a message in the program's memory. Gathering writes consume it, or scattering reads fill it, from front
// to back. Owns neither the memory nor the type.
class Payload {
 public:
  Payload() = default;
  Payload(const void* bytes, size_t size) : at_(static_cast<uint8_t*>(const_cast<void*>(bytes))), left_(size) {}
  Payload(const void* buffer, MPI_Aint count, const Datatype& type) : left_(static_cast<size_t>(count * type.size)) {
    if (type.dense) {
      at_ = static_cast<uint8_t*>(const_cast<void*>(buffer));
    } else if (left_ != 0) {
      cursor_.emplace(buffer, count, type);
      LookAtGrain();
    }
  }

  // The cursor is large, and most data has none.
  Payload(const Payload& other) : at_(other.at_), left_(other.left_), fine_grained_(other.fine_grained_), very_fine_grained_(other.very_fine_grained_) {
    if (other.cursor_) cursor_.emplace(*other.cursor_);
  }
  Payload& operator=(const Payload& other) {
    at_ = other.at_;
    left_ = other.left_;
    fine_grained_ = other.fine_grained_;
    very_fine_grained_ = other.very_fine_grained_;
    if (other.cursor_) {
      cursor_.emplace(*other.cursor_);
    } else {
      cursor_.reset();
    }
    return *this;
  }

  size_t left() const { return left_; }
  // The data has so many small pieces that copying them costs less than a system call with a list of them.
  bool fine_grained() const { return fine_grained_; }
  // The same even if a copy of the pieces needs no system call: they are so short that visiting each one costs more.
  bool very_fine_grained() const { return very_fine_grained_; }
  // Stores the next pieces, of at most `limit` bytes in total, in `pieces`. Returns their number. Does not advance.
  size_t Peek(std::span<iovec> pieces, size_t limit) const;
  void Advance(size_t bytes);
  // Copies the next in.size() <= left() bytes into the memory (Fill), or out.size() bytes out of it (Take), and
  // advances.
  void Fill(std::span<const uint8_t> in) {
    if (cursor_) return FillPieces(in);
    WEFT_CHECK(in.size() <= left_);
    CopyShortBytes(at_, in.data(), in.size());
    left_ -= in.size();
    at_ += in.size();
  }
  void Take(std::span<uint8_t> out);

 private:
  void LookAtGrain();
  void FillPieces(std::span<const uint8_t> in);

  uint8_t* at_ = nullptr;             // contiguous data
  std::optional<TypeCursor> cursor_;  // other data
  size_t left_ = 0;
  bool fine_grained_ = false, very_fine_grained_ = false;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_ENGINE_PAYLOAD_H_
