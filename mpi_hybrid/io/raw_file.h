#ifndef MPI_HYBRID_IO_RAW_FILE_H_
#define MPI_HYBRID_IO_RAW_FILE_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <span>

namespace weft::mpi::io {

// The operations of the operating system on one open file that this layer uses. PosixFile is the real implementation;
// testing/fake_disk.h is one that fails on purpose. Calls may come from several threads; none needs the library's lock.
class RawFile {
 public:
  virtual ~RawFile() = default;
  RawFile() = default;
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;

  // Like preadv(2) and pwritev(2). Return the number of bytes moved, which may be smaller than requested (when reading,
  // 0 means end of file), or a negative errno. At most IOV_MAX pieces.
  virtual ssize_t ReadAt(std::span<const iovec> pieces, int64_t offset) = 0;
  virtual ssize_t WriteAt(std::span<const iovec> pieces, int64_t offset) = 0;

  // The other functions return 0 or a positive errno. Sizes and offsets are in bytes.
  virtual int Size(int64_t* bytes) = 0;
  virtual int Resize(int64_t bytes) = 0;
  // allocates storage for the first `bytes` bytes; the file grows to that size if it is shorter
  virtual int Reserve(int64_t bytes) = 0;
  virtual int Sync() = 0;
  // Closes the file. Afterwards only the destructor is called. The destructor closes the file as well but cannot report
  // an error. Some file systems report only at this point that there was no space for written data.
  virtual int Close() = 0;
  // Locks a range against other opens of the file, in this process and in others; waits for it. Ranges of one holder do
  // not exclude each other.
  virtual int Lock(int64_t offset, int64_t bytes, bool exclusive) = 0;
  virtual int Unlock(int64_t offset, int64_t bytes) = 0;
  // A hint: accesses will be in random order, or in the order of the file.
  virtual void Expect(bool random) = 0;
};

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_RAW_FILE_H_
