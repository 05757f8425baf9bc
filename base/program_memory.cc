#include "base/program_memory.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/uncancelled.h"

#ifndef MADV_POPULATE_READ
constexpr int MADV_POPULATE_READ = 22;  // Linux 5.14; before, madvise(2) fails
#endif

namespace weft {
namespace internal {
constinit thread_local bool g_thread_of_ours = false;
}  // namespace internal

namespace {

// Of Weft's own threads none forks, and a child of the program's has none of them.
pid_t OwnProcess() {
  static thread_local pid_t ours = 0;
  if (!ThreadOfOurs()) return getpid();
  if (ours == 0) ours = getpid();
  return ours;
}

enum class Moved : uint8_t { kAll, kNotThere, kForbidden };

Moved What(ssize_t moved, size_t bytes) {
  if (moved >= 0) return static_cast<size_t>(moved) == bytes ? Moved::kAll : Moved::kNotThere;
  return errno == EFAULT ? Moved::kNotThere : Moved::kForbidden;
}

// The program's bytes are what process_vm_readv(2) calls the local side, which the kernel copies to and from in place: that also works for memory of devices,
// of which it pins no pages. Ours are the remote side.
Moved Move(const iovec& program, const iovec& ours, bool write) {
  const ssize_t moved = write ? process_vm_readv(OwnProcess(), &program, 1, &ours, 1, 0) : process_vm_writev(OwnProcess(), &program, 1, &ours, 1, 0);
  return What(moved, program.iov_len);
}

// The same with many pieces on both sides.
bool MoveAll(std::span<const iovec> program, std::span<const iovec> ours, bool write) {
  size_t room = 0, bytes = 0;
  for (const iovec& piece : program) room += piece.iov_len;
  for (const iovec& piece : ours) bytes += piece.iov_len;
  bytes = std::min(bytes, room);
  {
    const DmaScope dma;
    const auto call = write ? process_vm_readv : process_vm_writev;
    const Moved moved = What(call(OwnProcess(), program.data(), program.size(), ours.data(), ours.size(), 0), bytes);
    if (moved != Moved::kForbidden) return moved == Moved::kAll;
  }
  size_t in_ours = 0;
  for (const iovec& piece : program) {
    for (size_t here = 0; here < piece.iov_len && !ours.empty();) {
      const size_t some = std::min(piece.iov_len - here, ours.front().iov_len - in_ours);
      auto *const theirs = static_cast<uint8_t*>(piece.iov_base) + here, *const own = static_cast<uint8_t*>(ours.front().iov_base) + in_ours;
      if (some != 0 && !(write ? WriteProgramMemory(theirs, own, some) : ReadProgramMemory(own, theirs, some))) return false;
      here += some;
      in_ours += some;
      if (in_ours == ours.front().iov_len) {
        ours = ours.subspan(1);
        in_ours = 0;
      }
    }
  }
  return true;
}

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC | O_NONBLOCK) != 0) ends_ = {-1, -1};
  }
  ~Pipe() {
    for (const int end : ends_) {
      if (end >= 0) close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  bool Move(void* to, const void* from, size_t bytes) const {
    auto* at = static_cast<uint8_t*>(to);
    const auto* source = static_cast<const uint8_t*>(from);
    while (bytes != 0) {
      const size_t some = std::min<size_t>(bytes, PIPE_BUF);
      if (write(ends_[1], source, some) != static_cast<ssize_t>(some) || read(ends_[0], at, some) != static_cast<ssize_t>(some)) return false;
      at += some;
      source += some;
      bytes -= some;
    }
    return true;
  }
  bool is_open() const { return ends_[0] >= 0; }

 private:
  std::array<int, 2> ends_{-1, -1};
};

bool MoveThroughPipe(void* to, const void* from, size_t bytes) {
  const uncancelled::Scope scope;
  const Pipe pipe;
  if (pipe.is_open()) return pipe.Move(to, from, bytes);
  std::memcpy(to, from, bytes);  // no descriptor is left: nothing else can be done
  return true;
}

// Of one page, at a third of what process_vm_writev(2) costs: the kernel reads the word before it compares it, and has nobody to wake or to move.
Moved LookAt(const void* byte) {
  auto* const word = reinterpret_cast<uint32_t*>(reinterpret_cast<uintptr_t>(byte) & ~uintptr_t{3});
  if (syscall(SYS_futex, word, FUTEX_CMP_REQUEUE_PRIVATE, 0, nullptr, word, 0) >= 0 || errno == EAGAIN) return Moved::kAll;
  return errno == EFAULT ? Moved::kNotThere : Moved::kForbidden;
}

// A byte of each of many pages, with one system call, or one for each where they are few.
class PagesToLookAt {
 public:
  // False: one of those before is not there.
  bool Add(uintptr_t byte) {
    bytes_[count_++] = {reinterpret_cast<void*>(byte), 1};
    return count_ < bytes_.size() || Look();
  }
  bool Look() {
    const size_t count = std::exchange(count_, 0);
    if (count == 0) return true;
    if (count <= kFew) {
      Moved moved = Moved::kAll;
      for (size_t i = 0; i < count && moved == Moved::kAll; ++i) moved = LookAt(bytes_[i].iov_base);
      if (moved != Moved::kForbidden) return moved == Moved::kAll;
    }
    std::array<char, kAtOnce> copies;
    const iovec ours{copies.data(), count};
    const Moved moved = What(process_vm_writev(OwnProcess(), bytes_.data(), count, &ours, 1, 0), count);
    if (moved != Moved::kForbidden) return moved == Moved::kAll;
    return std::all_of(bytes_.begin(), bytes_.begin() + count, [&](const iovec& byte) { return MoveThroughPipe(copies.data(), byte.iov_base, 1); });
  }

 private:
  static constexpr size_t kAtOnce = 64, kFew = 2;
  std::array<iovec, kAtOnce> bytes_;
  size_t count_ = 0;
};

// A longer stretch is looked at by one call, a quarter of the time for each page.
constexpr size_t kPagesOfLookEach = 8;

// False: perhaps not. It is not known before Linux 5.14, and nothing is known of memory of devices.
bool CanBeRead(uintptr_t first, uintptr_t end) {
  return madvise(reinterpret_cast<void*>(first), end - first, MADV_POPULATE_READ) == 0;
}

}  // namespace

bool ReadProgramMemory(void* to, const void* from, size_t bytes) {
  const DmaScope dma;
  const Moved moved = Move({const_cast<void*>(from), bytes}, {to, bytes}, /*write=*/false);
  return moved == Moved::kForbidden ? MoveThroughPipe(to, from, bytes) : moved == Moved::kAll;
}

size_t GatherProgramMemory(void* to, std::span<const iovec> from) {
  size_t bytes = 0;
  for (const iovec& piece : from) bytes += piece.iov_len;
  const iovec ours{to, bytes};
  size_t whole = 0;
  {
    const DmaScope dma;
    const ssize_t moved = process_vm_writev(OwnProcess(), from.data(), from.size(), &ours, 1, 0);
    if (moved >= 0) {
      for (auto left = static_cast<size_t>(moved); whole != from.size() && from[whole].iov_len <= left; ++whole) left -= from[whole].iov_len;
      return whole;
    }
  }
  // Not the first piece needs to be the reason: the kernel looks at all addresses before it moves a byte.
  for (auto* at = static_cast<uint8_t*>(to); whole != from.size() && ReadProgramMemory(at, from[whole].iov_base, from[whole].iov_len); ++whole) at += from[whole].iov_len;
  return whole;
}

bool WriteProgramMemory(void* to, const void* from, size_t bytes) {
  const DmaScope dma;
  const Moved moved = Move({to, bytes}, {const_cast<void*>(from), bytes}, /*write=*/true);
  return moved == Moved::kForbidden ? MoveThroughPipe(to, from, bytes) : moved == Moved::kAll;
}

bool ScatterToProgramMemory(std::span<const iovec> to, std::span<const iovec> from) { return MoveAll(to, from, /*write=*/true); }
bool GatherFromProgramMemory(std::span<const iovec> to, std::span<const iovec> from) { return MoveAll(from, to, /*write=*/false); }

bool IsProgramMemory(std::span<const iovec> pieces) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const DmaScope dma;
  PagesToLookAt pages;
  for (size_t i = 0; i < pieces.size();) {
    const auto first = reinterpret_cast<uintptr_t>(pieces[i].iov_base);
    uintptr_t end = first + pieces[i].iov_len;
    // Pieces of one stretch of memory are one.
    while (++i < pieces.size() && reinterpret_cast<uintptr_t>(pieces[i].iov_base) == end && end + pieces[i].iov_len > end) end += pieces[i].iov_len;
    if (first == end || (end - first > kPagesOfLookEach * page && CanBeRead(first & ~(page - 1), end))) continue;
    for (uintptr_t at = first;; at = (at & ~(page - 1)) + page) {
      if (!pages.Add(at)) return false;
      if ((at | (page - 1)) >= end - 1) break;
    }
  }
  return pages.Look();
}

// MS_ASYNC has done nothing else since Linux 2.6.19 than to look for holes (msync(2): ENOMEM).
bool IsMapped(const void* from, size_t bytes) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(from) & ~(page - 1);
  return bytes == 0 || msync(reinterpret_cast<void*>(first), reinterpret_cast<uintptr_t>(from) + bytes - first, MS_ASYNC) == 0 || errno != ENOMEM;
}

}  // namespace weft
