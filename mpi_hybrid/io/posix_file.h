#ifndef MPI_HYBRID_IO_POSIX_FILE_H_
#define MPI_HYBRID_IO_POSIX_FILE_H_

#include <memory>
#include <string>

#include "mpi_hybrid/io/raw_file.h"

namespace weft::mpi::io {

// A file of the operating system. Owns the descriptor.
class PosixFile final : public RawFile {
 public:
  // `flags` and `mode` as for open(2); O_CLOEXEC is added. Returns 0 or an errno.
  static int Open(const std::string& path, int flags, unsigned mode, std::unique_ptr<RawFile>* file);
  ~PosixFile() override;

  ssize_t ReadAt(std::span<const iovec> pieces, int64_t offset) override;
  ssize_t WriteAt(std::span<const iovec> pieces, int64_t offset) override;
  int Size(int64_t* bytes) override;
  int Resize(int64_t bytes) override;
  int Reserve(int64_t bytes) override;
  int Sync() override;
  int Close() override;
  int Lock(int64_t offset, int64_t bytes, bool exclusive) override;
  int Unlock(int64_t offset, int64_t bytes) override;
  void Expect(bool random) override;

  // Whether reads go through an intermediate buffer where the kernel's copy would be slow: true on processors that need
  // it. Tests set it.
  static bool reads_aside;

 private:
  explicit PosixFile(int fd) : fd_(fd) {}
  int SetLock(int64_t offset, int64_t bytes, short type);

  int fd_;  // -1: closed
};

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_POSIX_FILE_H_
