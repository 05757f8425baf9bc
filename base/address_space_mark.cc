#include "base/address_space_mark.h"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/check.h"
#include "base/page_size.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace weft {
namespace {

// Between the heap of a program and the memory that mmap(2) finds, with 47 bits of addresses (x86-64) or 48 (arm64): neither comes here.
constexpr uint64_t kLowest = uint64_t{0x2000} << 32, kBytes = uint64_t{1} << 45;
constexpr uint64_t kBelow = uint64_t{64} << 30;
constexpr int kTries = 8;

struct Mark {
  pid_t process;
  uint64_t address;
};

// The system call itself: a sanitizer's mmap() has ideas of its own about addresses.
uint64_t MapPage(uint64_t where, int flags) {
  const long at = syscall(SYS_mmap, where, PageSize(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  return at == -1 ? 0 : static_cast<uint64_t>(at);
}

// A page that chance finds in the `bytes` from `lowest` on; 0: none is free.
uint64_t MapAmong(uint64_t lowest, uint64_t bytes) {
  for (int i = 0; i < kTries; ++i) {
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random) break;
    const uint64_t where = lowest + random % (bytes / PageSize()) * PageSize();
    const uint64_t at = MapPage(where, MAP_FIXED_NOREPLACE);
    if (at == where) return at;
    if (at != 0) munmap(reinterpret_cast<void*>(at), PageSize());  // before Linux 4.17 the address is a wish
  }
  return 0;
}

// Where those addresses cannot be had, with fewer bits of them or under ThreadSanitizer, it is one below what mmap(2) finds: that itself is the same in
// children of one process.
uint64_t MapSomewhere() {
  if (const uint64_t at = MapAmong(kLowest, kBytes); at != 0) return at;
  const uint64_t found = MapPage(0, 0);
  if (found < 2 * kBelow) return found;
  const uint64_t at = MapAmong(found - kBelow, kBelow);
  if (at == 0) return found;
  munmap(reinterpret_cast<void*>(found), PageSize());
  return at;
}

}  // namespace

uint64_t AddressSpaceMark() {
  static std::atomic<const Mark*> current{nullptr};
  const pid_t self = getpid();
  const Mark* known = current.load(std::memory_order_acquire);
  if (known != nullptr && known->process == self) return known->address;
  const uint64_t address = MapSomewhere();
  if (address == 0) return 0;
  void* const page = reinterpret_cast<void*>(address);
  if (madvise(page, PageSize(), MADV_DONTFORK) != 0) {
    munmap(page, PageSize());
    return 0;
  }
  const auto* made = new Mark{self, address};
  if (current.compare_exchange_strong(known, made, std::memory_order_acq_rel)) return address;  // what a parent had stays its few bytes
  munmap(page, PageSize());
  delete made;
  return known->address;
}

ssize_t MarkedProcess::Copy(decltype(process_vm_readv)* call, std::span<const iovec> here, std::span<const iovec> there) const {
  uint64_t nothing = 0;
  static_assert(sizeof nothing == kMarkBytes);
  iovec ours[kMostPieces + 1], theirs[kMostPieces + 1];
  WEFT_CHECK(here.size() <= kMostPieces && there.size() <= kMostPieces);
  if (mark_ == 0) {
    errno = ESRCH;
    return -1;
  }
  ours[0] = {&nothing, sizeof nothing};
  theirs[0] = {reinterpret_cast<void*>(mark_), sizeof nothing};
  std::copy(here.begin(), here.end(), ours + 1);
  std::copy(there.begin(), there.end(), theirs + 1);
  ssize_t copied;
  do {
    copied = call(pid_, ours, here.size() + 1, theirs, there.size() + 1, 0);
  } while (copied < 0 && errno == EINTR);
  if (copied <= static_cast<ssize_t>(sizeof nothing)) {
    errno = copied < 0 ? ErrorOfCall(errno) : EFAULT;
    return -1;
  }
  return copied - static_cast<ssize_t>(sizeof nothing);
}

// The kernel found nothing at the first piece, the mark: it is not that process's memory. Or it does not take the addresses of this side, of which it
// looks at all before that.
int MarkedProcess::ErrorOfCall(int error) const {
  if (error != EFAULT) return error;
  uint64_t nothing;
  const iovec here{&nothing, sizeof nothing}, there{reinterpret_cast<void*>(mark_), sizeof nothing};
  return process_vm_readv(pid_, &here, 1, &there, 1, 0) == sizeof nothing ? EFAULT : ESRCH;
}

}  // namespace weft
