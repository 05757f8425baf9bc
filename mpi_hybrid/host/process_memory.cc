#include "mpi_hybrid/host/process_memory.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/host/weak_table.h"

namespace weft::mpi::host {
namespace {

using Key = std::pair<pid_t, ProcessMemory::Access>;

WeakTable<Key, ProcessMemory>& Known() {
  static auto* const known = new WeakTable<Key, ProcessMemory>;  // used until the process ends
  return *known;
}

}  // namespace

std::shared_ptr<ProcessMemory> ProcessMemory::Of(const Claim& claim, Access access) {
  if (claim.mark == 0 || claim.pid <= 0) return nullptr;
  std::shared_ptr<ProcessMemory> memory = Known().Find({claim.pid, access});
  if (memory != nullptr && memory->process_.mark() == claim.mark) return memory;
  memory.reset(new ProcessMemory(MarkedProcess(claim.pid, claim.mark), access));
  if (!memory->Proves(claim)) return nullptr;
  Known().Put({claim.pid, access}, memory);
  return memory;
}

bool ProcessMemory::Proves(const Claim& claim) const {
  uint8_t found[64];
  const size_t length = claim.cookie.size();
  if (length == 0 || length > sizeof found) return false;
  const auto move = [&](Direction direction) {
    iovec here{found, length}, there{reinterpret_cast<void*>(claim.cookie_address), length};
    return MoveByCall(direction, &here, &there, 1, length) == 0;
  };
  if (!move(Direction::kFromProcess) || !std::equal(claim.cookie.begin(), claim.cookie.end(), found)) return false;
  return access_ == Access::kRead || move(Direction::kToProcess);
}

size_t ProcessMemory::ReadSome(std::span<const iovec> to, uint64_t from, size_t bytes) const {
  const iovec there = {reinterpret_cast<void*>(from), bytes};
  return static_cast<size_t>(std::max<ssize_t>(process_.Read(to, {&there, 1}), 0));
}

int ProcessMemory::Read(uint64_t from, void* to, size_t bytes) {
  for (;;) {
    const size_t part = std::min<size_t>(bytes, LibraryLock::kMostCopied);
    iovec here{to, part}, there{reinterpret_cast<void*>(from), part};
    const int error = Move(Direction::kFromProcess, &here, &there, 1, part);
    bytes -= part;
    if (error != 0 || bytes == 0) return error;
    from += part;
    to = static_cast<uint8_t*>(to) + part;
    LibraryLock::HandOver();
  }
}

int ProcessMemory::Write(const void* from, uint64_t to, size_t bytes) {
  iovec here{const_cast<void*>(from), bytes}, there{reinterpret_cast<void*>(to), bytes};
  return Move(Direction::kToProcess, &here, &there, 1, bytes);
}

int ProcessMemory::Move(Direction direction, iovec* here, iovec* there, size_t pieces, size_t bytes) {
  if (access_ == Access::kReadAndWrite && pieces == 1 && bytes <= MemoryFile::kMostBytes) {
    if (!std::exchange(file_tried_, true)) file_ = MemoryFile::Open(process_);
    if (file_ != nullptr) {
      const auto address = reinterpret_cast<uintptr_t>(there->iov_base);
      const int error = direction == Direction::kToProcess ? file_->Write(here->iov_base, address, bytes)
                                                           : file_->Read(here->iov_base, address, bytes);
      if (error == 0 || error == ESRCH) return error;
    }
  }
  return MoveByCall(direction, here, there, pieces, bytes);
}

// The kernel may stop earlier, between two of the pieces or inside of one.
int ProcessMemory::MoveByCall(Direction direction, iovec* here, iovec* there, size_t pieces, size_t bytes) const {
  const std::span<const iovec> ours(here, pieces), theirs(there, pieces);
  while (bytes > 0) {
    const ssize_t moved = direction == Direction::kToProcess ? process_.Write(ours, theirs) : process_.Read(ours, theirs);
    if (moved < 0) return errno;
    auto done = static_cast<size_t>(moved);
    bytes -= done;
    for (size_t i = 0; i < pieces && done > 0; ++i) {
      const size_t part = std::min(done, here[i].iov_len);
      here[i] = {static_cast<uint8_t*>(here[i].iov_base) + part, here[i].iov_len - part};
      there[i] = {static_cast<uint8_t*>(there[i].iov_base) + part, there[i].iov_len - part};
      done -= part;
    }
  }
  return 0;
}

}  // namespace weft::mpi::host
