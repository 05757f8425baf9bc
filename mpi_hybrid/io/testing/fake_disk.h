#ifndef MPI_HYBRID_IO_TESTING_FAKE_DISK_H_
#define MPI_HYBRID_IO_TESTING_FAKE_DISK_H_

#include <errno.h>
#include <string.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "mpi_hybrid/io/raw_file.h"

namespace weft::mpi::io {

// A file in memory that fails as disks do: calls are interrupted, move less than requested, or find no space. Seeded.
class FakeDisk final : public RawFile {
 public:
  struct Faults {
    unsigned seed = 1;
    double interrupted = 0, shortened = 0;  // probability, 0 to 1
    int64_t room = INT64_MAX;               // writing a byte at this offset fails with ENOSPC
    int64_t bad_block = INT64_MAX;          // reading a byte at this offset fails with EIO
  };

  FakeDisk() = default;
  explicit FakeDisk(const Faults& faults) : faults_(faults), random_(faults.seed) {}

  ssize_t ReadAt(std::span<const iovec> pieces, int64_t offset) override {
    return Move(pieces, offset, [&](const iovec& piece, int64_t at) -> ssize_t {
      const auto there = std::clamp<int64_t>(static_cast<int64_t>(bytes.size()) - at, 0, static_cast<int64_t>(piece.iov_len));
      if (at + there > faults_.bad_block) return -EIO;
      memcpy(piece.iov_base, bytes.data() + at, static_cast<size_t>(there));
      return there;
    });
  }
  ssize_t WriteAt(std::span<const iovec> pieces, int64_t offset) override {
    return Move(pieces, offset, [&](const iovec& piece, int64_t at) -> ssize_t {
      const auto fits = std::clamp<int64_t>(faults_.room - at, 0, static_cast<int64_t>(piece.iov_len));
      if (fits <= 0) return -ENOSPC;
      if (static_cast<int64_t>(bytes.size()) < at + fits) bytes.resize(static_cast<size_t>(at + fits));
      memcpy(bytes.data() + at, piece.iov_base, static_cast<size_t>(fits));
      return fits;
    });
  }
  int Size(int64_t* size) override {
    *size = static_cast<int64_t>(bytes.size());
    return 0;
  }
  int Resize(int64_t size) override {
    bytes.resize(static_cast<size_t>(size));
    return 0;
  }
  int Reserve(int64_t) override { return 0; }
  int Sync() override { return 0; }
  int Close() override { return 0; }
  int Lock(int64_t, int64_t, bool) override {
    ++locks;
    return 0;
  }
  int Unlock(int64_t, int64_t) override {
    --locks;
    return 0;
  }
  void Expect(bool) override {}

  std::vector<uint8_t> bytes;
  int calls = 0;  // calls that moved data
  int locks = 0;  // held

 private:
  bool Happens(double how_often) { return how_often > 0 && std::uniform_real_distribution<>(0, 1)(random_) < how_often; }

  template <typename One>
  ssize_t Move(std::span<const iovec> pieces, int64_t offset, One one) {
    if (Happens(faults_.interrupted)) return -EINTR;
    ++calls;
    ssize_t moved = 0;
    for (iovec piece : pieces) {
      const size_t wanted = piece.iov_len;
      if (wanted > 1 && Happens(faults_.shortened)) piece.iov_len = std::uniform_int_distribution<size_t>(1, wanted - 1)(random_);
      const ssize_t part = one(piece, offset + moved);
      if (part < 0) return moved > 0 ? moved : part;
      moved += part;
      if (static_cast<size_t>(part) < wanted) break;
    }
    return moved;
  }

  const Faults faults_;
  std::mt19937 random_;
};

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_TESTING_FAKE_DISK_H_
