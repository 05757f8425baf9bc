#include "wires/host/meeting/peer_memory.h"

#include <sys/prctl.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <utility>

#include "base/dma_scope.h"

namespace weft::host {
namespace {

std::atomic<bool> g_forbidden{false};

// Behind it a word into which peers write, to see whether they can.
uint64_t* OurProbe() {
  static uint64_t* const probe = [] {
    auto* value = new uint64_t[2]{};
    if (getrandom(value, sizeof *value, GRND_NONBLOCK) != sizeof *value) *value = 0;
    return value;
  }();
  return probe;
}

bool PolicyWantsName() {
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  return scope == 1;
}

}  // namespace

void PeerMemory::ForbidForTesting(bool forbidden) { g_forbidden.store(forbidden); }

void PeerMemory::Admit(pid_t peer) {
  static const bool wanted = PolicyWantsName();
  static std::atomic<pid_t> admitted{0};
  pid_t nobody = 0;
  if (wanted && peer > 0 && admitted.compare_exchange_strong(nobody, peer)) prctl(PR_SET_PTRACER, peer, 0, 0, 0);
}

void PeerMemory::ShowProbe(Probe& probe) {
  probe.address.store(reinterpret_cast<uintptr_t>(OurProbe()), std::memory_order_relaxed);
  probe.value.store(*OurProbe(), std::memory_order_relaxed);
}

bool PeerMemory::TryProbe(const Probe& probe) {
  probe_address_ = probe.address.load(std::memory_order_relaxed);
  probe_value_ = probe.value.load(std::memory_order_relaxed);
  if (pid_ <= 0 || probe_value_ == 0) return false;
  return ReadBesideProbe({}, {}, 0) == 0;
}

int PeerMemory::Read(std::span<const iovec> to, std::span<const Piece> from, size_t length) {
  const bool one_piece = to.size() == 1 && from.size() == 1 && length == to[0].iov_len && length == from[0].length;
  const auto now = std::chrono::steady_clock::now();
  if (one_piece && now - seen_ <= kTrust) {
    if (const MemoryFile* const file = FileFor(length); file != nullptr) {
      const int error = file->Read(to[0].iov_base, from[0].address, length);
      if (error == 0 || error == ESRCH) return error;
    }
  }
  const int error = ReadBesideProbe(to, from, length);
  if (error == 0) seen_ = now;
  return error;
}

int PeerMemory::ReadBesideProbe(std::span<const iovec> to, std::span<const Piece> from, size_t length) const {
  std::array<iovec, kMostPieces + 1> ours;    // NOLINT: filled here
  std::array<iovec, kMostPieces + 1> theirs;  // NOLINT: filled here
  if (g_forbidden.load(std::memory_order_relaxed)) [[unlikely]] return EPERM;
  if (to.size() > kMostPieces || from.size() > kMostPieces) return EINVAL;
  uint64_t value = 0;
  auto* our_end = std::copy(to.begin(), to.end(), ours.begin());
  *our_end++ = {&value, sizeof value};
  auto* their_end = std::transform(from.begin(), from.end(), theirs.begin(), [](const Piece& piece) {
    return iovec{reinterpret_cast<void*>(piece.address), piece.length};
  });
  // Behind the payload: who answers to the number then has done so all the while.
  *their_end++ = {reinterpret_cast<void*>(probe_address_), sizeof value};
  const DmaScope dma;
  const ssize_t got = process_vm_readv(pid_, ours.data(), static_cast<unsigned long>(our_end - ours.begin()), theirs.data(),
                                       static_cast<unsigned long>(their_end - theirs.begin()), 0);
  if (got < 0) return errno;
  if (static_cast<size_t>(got) != length + sizeof value) return EFAULT;
  return value == probe_value_ ? 0 : ESRCH;
}

bool PeerMemory::TryWriting() {
  uint64_t nothing = 0;
  const iovec from{&nothing, sizeof nothing};
  return WriteByCall({&from, 1}, {probe_address_ + sizeof nothing, sizeof nothing}) == 0;
}

// For so many bytes; nullptr: the kernel is to be asked in the ordinary way.
const MemoryFile* PeerMemory::FileFor(size_t length) {
  if (length > MemoryFile::kMostBytes || g_forbidden.load(std::memory_order_relaxed)) return nullptr;
  if (!std::exchange(file_tried_, true)) file_ = MemoryFile::Open(pid_, probe_address_, probe_value_);
  return file_.get();
}

int PeerMemory::Write(std::span<const iovec> from, const Piece& to) {
  const auto now = std::chrono::steady_clock::now();
  if (now - seen_ > kTrust) {
    if (const int error = ReadBesideProbe({}, {}, 0); error != 0) return error == EFAULT ? ESRCH : error;
    seen_ = now;
  }
  if (from.size() == 1 && from[0].iov_len == to.length && MemoryFile::WritesInOrder()) {
    if (const MemoryFile* const file = FileFor(to.length); file != nullptr) {
      const int error = file->Write(from[0].iov_base, to.address, to.length);
      if (error == 0 || error == ESRCH) return error;
    }
  }
  return WriteByCall(from, to);
}

int PeerMemory::WriteByCall(std::span<const iovec> from, const Piece& to) const {
  if (g_forbidden.load(std::memory_order_relaxed)) [[unlikely]] return EPERM;
  const iovec theirs{reinterpret_cast<void*>(to.address), to.length};
  const DmaScope dma;
  const ssize_t put = process_vm_writev(pid_, from.data(), from.size(), &theirs, 1, 0);
  if (put < 0) return errno;
  return static_cast<size_t>(put) == to.length ? 0 : EFAULT;
}

}  // namespace weft::host
