// Direct placement: riomap, riounmap, riowrite (rsocket(7)).
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cm/rsocket/stream.h"

namespace weft::rsocket {

off_t Stream::Map(void* buffer, size_t length, int protection, off_t offset) {
  if ((protection & ~PROT_WRITE) != 0 || length == 0 || length > UINT32_MAX || offset < -1) return -EINVAL;
  Lock lock(mutex_);
  if (closing_) return -EBADF;
  Drive();
  if (state_ != State::kConnected && state_ != State::kAccepting) return -ENOTCONN;
  Mapping mapping;
  mapping.offset = offset == -1 ? reinterpret_cast<uintptr_t>(buffer) : static_cast<uint64_t>(offset);
  if (protection == PROT_WRITE) {
    // The lowest place in the peer's map that is free.
    const auto taken = [&](int index) {
      return std::any_of(mappings_.begin(), mappings_.end(), [&](const Mapping& other) { return other.index == index; });
    };
    mapping.index = 0;
    while (taken(mapping.index)) ++mapping.index;
    if (static_cast<uint32_t>(mapping.index) >= peer_map_entries_) return -ENOSPC;
  }
  const int access = IBV_ACCESS_LOCAL_WRITE | (protection == PROT_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0);
  mapping.region = ibv_reg_mr(link_->pd(), buffer, length, access);
  if (mapping.region == nullptr) return -errno;
  mapping.announced = mapping.index < 0;
  mappings_pending_ = mappings_pending_ || !mapping.announced;
  mappings_.push_back(mapping);
  return static_cast<off_t>(mapping.offset);
}

int Stream::Unmap(void* buffer, size_t length) {
  Lock lock(mutex_);
  if (closing_) return EBADF;
  const auto found = std::find_if(mappings_.begin(), mappings_.end(), [&](const Mapping& mapping) {
    return mapping.region->addr == buffer && mapping.region->length == length;
  });
  if (found == mappings_.end()) return EINVAL;
  ibv_dereg_mr(found->region);
  mappings_.erase(found);
  return 0;
}

int Stream::AnnounceMappings(Lock& lock, int flags) {
  for (;;) {
    const auto pending = [](const Mapping& mapping) { return !mapping.announced; };
    if (std::none_of(mappings_.begin(), mappings_.end(), pending)) break;
    if (const int error = AwaitWritable(lock, flags); error != 0) return error;
    const auto next = std::find_if(mappings_.begin(), mappings_.end(), pending);  // the lock was given up
    if (next == mappings_.end()) break;
    IoMapEntry entry{next->offset, {reinterpret_cast<uintptr_t>(next->region->addr), next->region->rkey,
                                    static_cast<uint32_t>(next->region->length)}};
    entry = Swapped(entry, swap_);
    ibv_sge piece{reinterpret_cast<uintptr_t>(&entry), sizeof entry, 0};
    const uint32_t text = Message{MessageType::kMap, static_cast<uint32_t>(next->index)}.Serialize();
    ++sent_messages_;
    slots_free_ -= 2;
    const uint64_t to = peer_map_ + static_cast<uint64_t>(next->index) * sizeof(IoMapEntry);
    if (link_->PostWrite({&piece, 1}, /*is_inline=*/true, to, peer_list_.key, &text, CompletionId(2, 0)) != 0) {
      slots_free_ += 2;
      OnLost(ECONNRESET);
      return ECONNRESET;
    }
    next->announced = true;
  }
  mappings_pending_ = false;
  return 0;
}

ssize_t Stream::WriteMapped(const void* from, size_t count, off_t offset, int flags) {
  if (offset < 0) return -EINVAL;
  const auto* bytes = static_cast<const uint8_t*>(from);
  auto at = static_cast<uint64_t>(offset);
  size_t written = 0;
  std::lock_guard one_sender(send_mutex_);
  Lock lock(mutex_);
  if (mappings_pending_) {
    if (const int error = AnnounceMappings(lock, flags); error != 0) return -error;
  }
  while (written < count) {
    const auto result = [&](int error) { return written > 0 ? static_cast<ssize_t>(written) : -error; };
    if (const int error = AwaitWritable(lock, flags); error != 0) return result(error);
    IoMapEntry entry;
    uint32_t index = 0;
    for (; index < sizes_.map_entries; ++index) {
      entry = Swapped(link_->MapEntry(index), swap_);
      if (at >= entry.offset && at - entry.offset < entry.target.length) break;
    }
    if (index == sizes_.map_entries) return result(EINVAL);
    const uint64_t room = entry.target.length - (at - entry.offset);
    auto length = static_cast<uint32_t>(std::min<uint64_t>({count - written, kMostTransfer, room}));
    const bool is_inline = length <= sizes_.inline_bytes;
    if (!is_inline) length = std::min(length, send_ring_->free());
    const uint32_t taken = is_inline ? 0 : length;
    slots_free_ -= 1;
    ++sends_undriven_;
    ibv_sge elements[2];
    int used = 1;
    if (is_inline) {
      elements[0] = {reinterpret_cast<uintptr_t>(bytes), length, 0};
      lock.unlock();
    } else {
      const RingRange range = send_ring_->Take(length);
      used = range.count();
      lock.unlock();
      const uint8_t* next = bytes;
      for (int i = 0; i < used; ++i) {
        const RingRange::Piece& piece = range.pieces[static_cast<size_t>(i)];
        uint8_t* const place = link_->send_buffer() + piece.offset;
        std::memcpy(place, next, piece.length);
        next += piece.length;
        elements[i] = {reinterpret_cast<uintptr_t>(place), piece.length, link_->send_key()};
      }
    }
    const uint64_t to = entry.target.address + (at - entry.offset);
    const int error = link_->PostWrite({elements, static_cast<size_t>(used)}, is_inline, to, entry.target.key, nullptr,
                                       CompletionId(1, taken));
    lock.lock();
    if (error != 0) {
      slots_free_ += 1;
      send_ring_->GiveBack(taken);
      OnLost(ECONNRESET);
      return result(ECONNRESET);
    }
    bytes += length;
    at += length;
    written += length;
  }
  return static_cast<ssize_t>(written);
}

}  // namespace weft::rsocket
