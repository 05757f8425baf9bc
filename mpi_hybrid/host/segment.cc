#include "mpi_hybrid/host/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/file_limit.h"
#include "base/page_size.h"
#include "mpi_hybrid/host/sealed_memory.h"

namespace weft::mpi::host {
namespace {

// Offsets are given out once, so that nobody ever maps what another has now; there are enough. A memfd of that length
// is of holes.
constexpr uint64_t kFileBytes = uint64_t{1} << 56;

// The word is in memory of several processes.
long Futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* end) {
  return syscall(SYS_futex, &word, operation, value, end, nullptr, FUTEX_BITSET_MATCH_ANY);
}

// On the clock of FUTEX_WAIT_BITSET.
timespec TimespecOf(std::chrono::steady_clock::time_point time) {
  const auto since = time.time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
  return {.tv_sec = seconds.count(), .tv_nsec = std::chrono::nanoseconds(since - seconds).count()};
}

std::string Why(const char* what) { return std::string(what) + ": " + DescribeShortage(errno); }

}  // namespace

std::unique_ptr<Segment> Segment::Create(std::span<const int> ranks, int place, std::string* why) {
  std::unique_ptr<Segment> made(new Segment(ranks, place));
  if (const int error = MakeMemoryFile("weft-mpi", kFileBytes, &made->memory_); error != 0) {
    errno = error;
    *why = error == EFBIG ? "files are limited in length (ulimit -f)" : Why("memfd_create");
    return nullptr;
  }
  if (!made->Attach(why)) return nullptr;
  new (&made->header()) Header{.magic = Header::kMagic,
                               .places = static_cast<uint32_t>(ranks.size()),
                               .next_range = RoundUp(FixedBytes(ranks.size()), PageSize())};
  return made->TakePlace(why) ? std::move(made) : nullptr;
}

std::unique_ptr<Segment> Segment::Join(Descriptor memory, std::span<const int> ranks, int place, std::string* why) {
  std::unique_ptr<Segment> made(new Segment(ranks, place));
  made->memory_ = std::move(memory);
  uint64_t length = 0;
  if (!IsSealed(made->memory_.get(), &length) || length < FixedBytes(ranks.size())) {
    *why = "the received descriptor is not the memory of a host's ranks";
    return nullptr;
  }
  if (!made->Attach(why)) return nullptr;
  if (made->header().magic != Header::kMagic || made->header().places != ranks.size()) {
    *why = "the memory is for " + std::to_string(made->header().places) + " ranks, but the launcher reports " +
           std::to_string(ranks.size());
    return nullptr;
  }
  return made->TakePlace(why) ? std::move(made) : nullptr;
}

Segment::~Segment() {
  if (has_place_) Leave();
}

bool Segment::Attach(std::string* why) {
  const size_t bytes = FixedBytes(ranks_.size());
  fixed_ = Mapping::OfFile(memory_.get(), 0, bytes, MAP_NORESERVE);
  if (!fixed_) *why = Why("mapping the memory of the host's ranks");
  return static_cast<bool>(fixed_);
}

// From here on the lock on the byte of its place says that this process lives: the kernel lets go of it when it dies,
// and tells everybody who holds it.
bool Segment::TakePlace(std::string* why) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = place_;
  lock.l_len = 1;
  if (!bell_.Open() || fcntl(memory_.get(), F_SETLK, &lock) != 0) {
    *why = Why("a place in the memory of the host's ranks");
    return false;
  }
  Slot& slot = own();
  slot.pid = static_cast<uint32_t>(getpid());
  slot.bell = bell_.name();
  slot.attention = 0;
  if (cpu_set_t ours; sched_getaffinity(0, sizeof(ours), &ours) == 0) affinities().Add(ours);
  slot.presence.store(Slot::kJoined, std::memory_order_release);
  has_place_ = true;
  return true;
}

void Segment::Settle() {
  joined_.resize(ranks_.size());
  for (int place = 0; place < places(); ++place) {
    const bool here = SlotAt(place).presence.load(std::memory_order_acquire) != Slot::kAbsent;
    joined_[static_cast<size_t>(place)] = here;
    company_ |= here && place != place_;
  }
}

std::optional<int> Segment::PlaceOf(ProcessId process) const {
  const auto found = std::lower_bound(ranks_.begin(), ranks_.end(), process);
  if (found == ranks_.end() || *found != process) return std::nullopt;
  const size_t place = static_cast<size_t>(found - ranks_.begin());
  if (place >= joined_.size() || !joined_[place]) return std::nullopt;
  return static_cast<int>(place);
}

pid_t Segment::PidOf(int place) const {
  if (SlotAt(place).presence.load(std::memory_order_acquire) != Slot::kJoined) return 0;
  if (SlotAt(place).pid == static_cast<uint32_t>(getpid())) return getpid();  // one's own locks are not to be seen
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = place;
  lock.l_len = 1;
  if (fcntl(memory_.get(), F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return 0;
  return lock.l_pid;
}

std::shared_ptr<Process> Segment::ProcessAt(int place) const {
  const pid_t pid = PidOf(place);
  if (pid == 0) return nullptr;
  std::shared_ptr<Process> process = Process::Of(pid);
  return PidOf(place) == pid ? process : nullptr;  // else that may be a later one
}

bool Segment::IsPresent(int place) const { return PidOf(place) != 0; }

void Segment::Leave() {
  if (own().presence.exchange(Slot::kLeft) == Slot::kLeft) return;
  for (int place = 0; place < places(); ++place) {
    if (place != place_) RingAfterFence(place);
  }
}

int Segment::Elsewhere() const {
  cpu_set_t ours;
  return sched_getaffinity(0, sizeof(ours), &ours) == 0 ? affinities().ElsewhereThan(ours) : 0;
}

uint8_t* Segment::CardOf(int place) const {
  return fixed_.data() + CardsStart(ranks_.size()) + static_cast<size_t>(place) * kCardBytes;
}

uint8_t* Segment::OfPlace(int place) const {
  return fixed_.data() + PlacesStart(ranks_.size()) + static_cast<size_t>(place) * kPlaceBytes;
}

uint8_t* Segment::OfPair(int from, int to) const {
  return fixed_.data() + PairsStart(ranks_.size()) + PairOffset(static_cast<size_t>(from), static_cast<size_t>(to), ranks_.size());
}

std::optional<uint64_t> Segment::Reserve(uint64_t bytes) {
  if (bytes == 0 || bytes > kFileBytes) return std::nullopt;
  const uint64_t length = RoundUp(bytes, PageSize());
  const uint64_t offset = header().next_range.fetch_add(length);
  const bool in_file = offset >= FixedBytes(ranks_.size()) && offset % PageSize() == 0 && offset <= kFileBytes - length;
  return in_file ? std::optional(offset) : std::nullopt;
}

Mapping Segment::Map(uint64_t offset, uint64_t bytes) const {
  if (bytes == 0 || offset % PageSize() != 0 || offset < FixedBytes(ranks_.size()) || offset > kFileBytes ||
      bytes > kFileBytes - offset) {
    errno = EINVAL;
    return {};
  }
  return Mapping::OfFile(memory_.get(), offset, bytes, MAP_NORESERVE);
}

void Segment::Discard(uint64_t offset, uint64_t bytes) const {
  if (bytes == 0 || offset < FixedBytes(ranks_.size()) || offset > kFileBytes || bytes > kFileBytes - offset) return;
  (void)fallocate(memory_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(RoundUp(bytes, PageSize())));
}

void Segment::IsAwake() {
  if (!std::exchange(armed_, false)) return;
  own().attention.fetch_and(~uint32_t{Slot::kAsleep});  // acquires what the process did that took the bit, in WakeUp
  if (!std::exchange(napped_, false)) bell_.Silence();
}

bool Segment::Nap(std::chrono::milliseconds most) {
  std::atomic<uint32_t>& attention = own().attention;
  const auto end = std::chrono::steady_clock::now() + most;
  const timespec deadline = TimespecOf(end);
  uint32_t seen = attention.fetch_or(Slot::kNaps) | Slot::kNaps;
  while ((seen & Slot::kAsleep) != 0) {
    const bool woken = Futex(attention, FUTEX_WAIT_BITSET, seen, &deadline) == 0;
    // EAGAIN: the word has changed, perhaps in bits of others. Some process may change it all the time.
    if (!woken && errno != EAGAIN && errno != EINTR) break;
    if (std::chrono::steady_clock::now() >= end) break;
    seen = attention.load();
  }
  seen = attention.fetch_and(~uint32_t{Slot::kNaps});
  napped_ = (seen & Slot::kAsleep) == 0;
  return napped_;
}

void Segment::EndNap() const { WakeUp(place_); }

// Only the first of those who have news pays for the system call.
void Segment::WakeUp(int place) const {
  Slot& slot = SlotAt(place);
  const uint32_t before = slot.attention.fetch_and(~uint32_t{Slot::kAsleep});
  if ((before & Slot::kAsleep) == 0) return;
  if ((before & Slot::kNaps) != 0) {
    Futex(slot.attention, FUTEX_WAKE, 1, nullptr);
    return;
  }
  const BellName name = slot.bell;  // which another process may change meanwhile
  bell_.Ring(name);
}

}  // namespace weft::mpi::host
