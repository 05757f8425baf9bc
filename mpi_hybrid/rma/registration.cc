#include "mpi_hybrid/rma/registration.h"

#include <sys/mman.h>

#include "base/check.h"
#include "base/page_size.h"

namespace weft::mpi::rma {
namespace {

constexpr size_t kRemembered = 256;

}  // namespace

Registration* Registrations::Acquire(const void* address, size_t bytes, bool sink) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address), end = begin + bytes;
  if (remember_) {
    // Of those that begin at or before the buffer, the nearest few.
    auto entry = by_first_.upper_bound(begin);
    for (int tries = 0; tries < 8 && entry != by_first_.begin(); ++tries) {
      --entry;
      Registration& known = *entry->second.at;
      if (known.last < end || (sink && !known.sink)) continue;
      ++known.users;
      if (&known != &used_last_.front()) used_last_.splice(used_last_.begin(), used_last_, entry->second.at);
      return &known;
    }
  }
  const uintptr_t page = PageSize();
  Registration made;
  made.first = begin & ~(page - 1);
  made.last = (end + page - 1) & ~(page - 1);
  made.sink = sink;
  made.users = 1;
  made.mr = ibv_reg_mr(domain_, reinterpret_cast<void*>(made.first), made.last - made.first, sink ? kSinkAccess : 0);
  if (made.mr == nullptr) return nullptr;
  if (!remember_) return new Registration(made);
  made.cached = true;
  used_last_.push_front(made);
  by_first_.emplace(made.first, Entry{used_last_.begin()});
  if (used_last_.size() > kRemembered) {
    for (auto victim = std::prev(used_last_.end()); victim != used_last_.begin(); --victim) {
      if (victim->users != 0) continue;
      Forget(&*victim);
      break;
    }
  }
  return &used_last_.front();
}

void Registrations::Release(Registration* registration) {
  WEFT_CHECK(registration->users > 0);
  if (--registration->users != 0 || registration->cached) return;
  ibv_dereg_mr(registration->mr);
  delete registration;
}

void Registrations::Forget(Registration* registration) {
  ibv_dereg_mr(registration->mr);
  auto [entry, end] = by_first_.equal_range(registration->first);
  while (entry != end && &*entry->second.at != registration) ++entry;
  WEFT_CHECK(entry != end);
  const auto at = entry->second.at;
  by_first_.erase(entry);
  used_last_.erase(at);
}

void Registrations::Clear() {
  for (auto at = used_last_.begin(); at != used_last_.end();) {
    Registration& registration = *at++;
    if (registration.users == 0) Forget(&registration);
  }
}

BufferPool::~BufferPool() {
  for (const Chunk& chunk : chunks_) {
    ibv_dereg_mr(chunk.mr);
    munmap(chunk.memory, bytes_ * per_chunk_);
  }
}

bool BufferPool::Grow() {
  if ((chunks_.size() + 1) * per_chunk_ > most_) return false;
  const size_t bytes = bytes_ * per_chunk_;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  ibv_mr* mr = ibv_reg_mr(domain_, memory, bytes, access_);
  if (mr == nullptr) {
    munmap(memory, bytes);
    return false;
  }
  chunks_.push_back({static_cast<uint8_t*>(memory), mr});
  for (size_t i = chunks_.size() * per_chunk_; i-- > (chunks_.size() - 1) * per_chunk_;)
    free_.push_back(at(static_cast<uint32_t>(i)));
  return true;
}

BufferPool::Buffer BufferPool::at(uint32_t index) const {
  const Chunk& chunk = chunks_[index / per_chunk_];
  return {chunk.memory + index % per_chunk_ * bytes_, chunk.mr->lkey, index};
}

BufferPool::Buffer BufferPool::Take() {
  if (free_.empty() && !Grow()) return {};
  const Buffer buffer = free_.back();
  free_.pop_back();
  return buffer;
}

}  // namespace weft::mpi::rma
