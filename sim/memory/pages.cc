#include "sim/memory/pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "base/dma_scope.h"
#include "base/uncancelled.h"

namespace weft::sim {
namespace {

#ifndef MADV_POPULATE_READ
constexpr int MADV_POPULATE_READ = 22;
#endif
#ifndef MADV_POPULATE_WRITE
constexpr int MADV_POPULATE_WRITE = 23;
#endif

// A byte read by the kernel on our behalf, which fails where we would crash. Negative: this sandbox does not allow it.
int CanBeRead(uint64_t address) {
  char byte;
  const iovec here{&byte, 1}, there{reinterpret_cast<void*>(address), 1};
  if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1) return 1;
  return errno == EFAULT ? 0 : -1;
}

// Looks at one byte of each page.
bool IsReadable(uint64_t first, uint64_t length, uint64_t page) {
  const DmaScope dma;
  uint64_t at = first;
  for (; at < first + length; at += page) {
    const int can = CanBeRead(at);
    if (can == 0) return false;
    if (can < 0) break;
  }
  if (at >= first + length) return true;
  const uncancelled::Scope scope;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  bool readable = true;
  for (; at < first + length && readable; at += page) {
    char byte;
    readable = write(ends[1], reinterpret_cast<const void*>(at), 1) == 1 && read(ends[0], &byte, 1) == 1;
  }
  close(ends[0]);
  close(ends[1]);
  return readable;
}

}  // namespace

int PopulatePages(uint64_t address, uint64_t length, bool write) {
  if (length == 0) return 0;
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (address + length < address || address + length + page - 1 < address) return EFAULT;
  const uint64_t first = address & ~(page - 1);
  const uint64_t bytes = ((address + length + page - 1) & ~(page - 1)) - first;
  if (madvise(reinterpret_cast<void*>(first), bytes, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0) return 0;
  if (errno == ENOMEM || errno == EFAULT || errno == EHWPOISON) return EFAULT;
  // EINVAL: a kernel before 5.14, a mapping that cannot be populated (device memory), or no permission.
  if (!IsReadable(first, bytes, page)) return EFAULT;
  return write && madvise(reinterpret_cast<void*>(first), bytes, MADV_POPULATE_READ) == 0 ? EFAULT : 0;
}

}  // namespace weft::sim
