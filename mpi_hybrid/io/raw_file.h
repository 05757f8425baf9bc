#ifndef MPI_HYBRID_IO_RAW_FILE_H_
#define MPI_HYBRID_IO_RAW_FILE_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <span>

namespace weft::mpi::io {

// What this layer asks of the operating system about one open file. PosixFile is the real one, testing/fake_disk.h one that fails on
// purpose. Calls may come from several threads; none needs the library's lock.
class RawFile {
 public:
  virtual ~RawFile() = default;
  RawFile() = default;
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;

  // As preadv(2) and pwritev(2): the number of bytes moved, which may be smaller than asked for (reading 0: end of file), or a negative
  // errno. At most IOV_MAX pieces.
  virtual ssize_t ReadAt(std::span<const iovec> pieces, int64_t offset) = 0;
  virtual ssize_t WriteAt(std::span<const iovec> pieces, int64_t offset) = 0;

  // The others return 0 or a positive errno. Sizes and offsets are bytes.
  virtual int Size(int64_t* bytes) = 0;
  virtual int Resize(int64_t bytes) = 0;
  virtual int Reserve(int64_t bytes) = 0;  // storage for the first `bytes`; the file grows to that if it is shorter
  virtual int Sync() = 0;
  // Ends it: nothing else is called but the destructor, which does the same and tells nobody what went wrong. Some file systems say only here that what
  // was written found no room.
  virtual int Close() = 0;
  // A lock of a range that other opens of the file respect, in this process and others; waits. One holder's ranges do not
  // exclude one another.
  virtual int Lock(int64_t offset, int64_t bytes, bool exclusive) = 0;
  virtual int Unlock(int64_t offset, int64_t bytes) = 0;
  // Accesses will be in no order, or in that of the file; only a hint.
  virtual void Expect(bool random) = 0;
};

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_RAW_FILE_H_
