#include "mpi_hybrid/rma/host_memory.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/file_limit.h"
#include "base/high_descriptor.h"
#include "base/page_size.h"

namespace weft::mpi::rma {
namespace {

// Of holes. So much is enough for offsets that are given out once.
constexpr uint64_t kFileBytes = uint64_t{1} << 56;

}  // namespace

HostMemory& HostMemory::OfThisProcess() {
  static auto* const memory = new HostMemory;  // the program may use what it has until the process ends
  return *memory;
}

bool HostMemory::Open() {
  if (file_) return process_ == getpid();
  Descriptor made;
  if (host::MakeMemoryFile("weft-mpi-memory", kFileBytes, &made) != 0) return false;
  made = Descriptor(LeaveRoomForSelect(made.Release()));
  cookie_ = NewNonce();
  if (!IsToSpare(made.get()) || pwrite(made.get(), cookie_.data(), cookie_.size(), 0) != static_cast<ssize_t>(cookie_.size())) return false;
  file_ = std::move(made);
  process_ = getpid();
  next_ = PageSize();
  return true;
}

bool HostMemory::AddSpan(size_t bytes, bool for_many) {
  if (!Open() || bytes > kFileBytes - next_ || host::ReserveMemory(file_.get(), next_, bytes) != 0) return false;
  host::Mapping mapping = host::Mapping::OfFile(file_.get(), next_, bytes, MAP_NORESERVE);
  if (!mapping) return false;
  const auto at = reinterpret_cast<uintptr_t>(mapping.data());
  spans_.push_front({next_, for_many, std::move(mapping), FreeSpace(at, bytes)});
  next_ += bytes;
  return true;
}

void* HostMemory::Take(size_t bytes, size_t alignment) {
  if (bytes > kFileBytes / 2 || (file_ && process_ != getpid())) return nullptr;
  bytes = host::RoundUp(std::max(bytes, kUnit), kUnit);
  const bool with_others = bytes < kOwnSpan && alignment <= PageSize();
  std::optional<uint64_t> found;
  auto span = spans_.begin();
  for (; with_others && span != spans_.end(); ++span) {
    if (span->for_many && (found = span->space.Take(bytes, alignment))) break;
  }
  if (!found) {
    const size_t skipped = alignment > PageSize() ? alignment : 0;
    if (!AddSpan(with_others ? kSharedSpan : host::RoundUp(bytes + skipped, PageSize()), with_others)) return nullptr;
    span = spans_.begin();
    found = span->space.Take(bytes, alignment);
  }
  allocations_[*found] = {.bytes = bytes, .span = span};
  return reinterpret_cast<void*>(*found);
}

bool HostMemory::Give(void* memory) {
  const auto allocation = allocations_.find(reinterpret_cast<uintptr_t>(memory));
  if (allocation == allocations_.end()) return false;
  allocation->second.given_back = true;
  Settle(allocation);
  return true;
}

// Of spans for many allocations one stays when it is empty, for a program that allocates and gives back by turns.
void HostMemory::Settle(Allocations::iterator allocation) {
  const auto& [bytes, span, given_back, uses] = allocation->second;
  if (!given_back || uses != 0 || process_ != getpid()) return;
  span->space.Give(allocation->first, bytes);
  const auto is_empty = [&span = span](const Mapped& other) { return other.for_many && &other != &*span && other.space.all_free(); };
  if (span->space.all_free() && (!span->for_many || std::any_of(spans_.begin(), spans_.end(), is_empty))) {
    (void)fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(span->at), static_cast<off_t>(span->mapping.size()));
    spans_.erase(span);
  }
  allocations_.erase(allocation);
}

bool HostMemory::Find(const void* memory, size_t bytes, Use* use) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  auto allocation = allocations_.upper_bound(address);
  if (bytes == 0 || allocation == allocations_.begin() || process_ != getpid()) return false;
  --allocation;
  const uintptr_t offset = address - allocation->first;
  Allocation& found = allocation->second;
  if (offset >= found.bytes || bytes > found.bytes - offset) return false;
  ++found.uses;
  const Mapped& span = *found.span;
  use->owner_ = this;
  use->allocation_ = allocation->first;
  use->span_ = {file_.get(), cookie_, span.at, span.mapping.size()};
  use->offset_ = address - reinterpret_cast<uintptr_t>(span.mapping.data());
  return true;
}

void HostMemory::Use::Reset() {
  HostMemory* const owner = std::exchange(owner_, nullptr);
  if (owner == nullptr) return;
  const auto allocation = owner->allocations_.find(allocation_);
  --allocation->second.uses;
  owner->Settle(allocation);
}

std::map<MappedSpan::Key, std::weak_ptr<MappedSpan>>& MappedSpan::All() {
  static auto* const all = new std::map<Key, std::weak_ptr<MappedSpan>>;
  return *all;
}

std::shared_ptr<MappedSpan> MappedSpan::Find(pid_t pid, const HostMemory::Span& span) {
  if (span.fd < 0 || span.bytes > SIZE_MAX / 2) return nullptr;
  const Key key{pid, span.cookie, span.at, span.bytes};
  if (const auto known = All().find(key); known != All().end()) return known->second.lock();
  if (All().size() >= kMost) return nullptr;
  std::shared_ptr<MappedSpan> made(new MappedSpan(key));
  if (made->segment_.MapPart(pid, span.fd, span.cookie, span.at, span.bytes) != 0) return nullptr;
  All()[key] = made;
  return made;
}

MappedSpan::~MappedSpan() {
  if (segment_.data() != nullptr) All().erase(key_);
}

}  // namespace weft::mpi::rma
