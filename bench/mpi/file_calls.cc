#undef _FORTIFY_SOURCE  // which defines pread itself

#include "file_calls.h"

#include <dlfcn.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

namespace mpi_bench {
namespace {

std::atomic<long> g_nanoseconds;

// The C library's function of that name, timed.
template <typename... Arguments>
ssize_t Timed(const char* name, Arguments... arguments) {
  const auto call = reinterpret_cast<ssize_t (*)(Arguments...)>(dlsym(RTLD_NEXT, name));
  const auto start = std::chrono::steady_clock::now();
  const ssize_t result = call(arguments...);
  g_nanoseconds += std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace

double SecondsInFileCalls() { return static_cast<double>(g_nanoseconds) / 1e9; }

}  // namespace mpi_bench

#define IN_FRONT extern "C" __attribute__((visibility("default")))

IN_FRONT ssize_t pread(int fd, void* data, size_t bytes, off_t offset) { return mpi_bench::Timed("pread", fd, data, bytes, offset); }
IN_FRONT ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) { return mpi_bench::Timed("pwrite", fd, data, bytes, offset); }
IN_FRONT ssize_t preadv(int fd, const iovec* pieces, int count, off_t offset) { return mpi_bench::Timed("preadv", fd, pieces, count, offset); }
IN_FRONT ssize_t pwritev(int fd, const iovec* pieces, int count, off_t offset) { return mpi_bench::Timed("pwritev", fd, pieces, count, offset); }
