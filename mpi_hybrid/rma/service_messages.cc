#include <sys/eventfd.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include "base/byte_writer.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/rma/apply.h"
#include "mpi_hybrid/rma/service.h"

// What the service does when a message has come.
namespace weft::mpi::rma {

bool Service::OnMessage(Incoming& incoming, ByteSpan message) {
  const auto header = ParseHeader(message);
  if (!header) return false;
  ++incoming.consumed;
  if (!replies_.HasBuffer()) {
    connections_.Drop(incoming, "no memory for a reply");
    return true;
  }
  // Without memory there is no more room, and the origin goes on with what it has. It sends long messages only when it
  // has more, which it gets only where there is a long buffer behind this one.
  if (header->wants_room && !incoming.short_first) (void)GiveRoom(incoming, std::min(kSlots, 2 * incoming.room));
  const ByteSpan body = message.subspan(kHeaderBytes);
  if (header->kind == MessageKind::kNothing) {
    if (!body.empty()) return false;
    if (header->wants_reply) replies_.Send(incoming, header->reply_slot, ReplyStatus::kDone, 0);
    return true;
  }
  const auto found = windows_.find(header->window);
  if (found == windows_.end()) return OnLate(incoming, *header, body);
  TargetWindow& window = *found->second;
  const int rank = window.RankOf(incoming.process);
  if (rank < 0) return false;
  if (header->epoch == LockKind::kNone) return OnMessageTo(window, rank, incoming, *header, body);
  const auto outcome = window.locks.TryAcquire(rank, header->epoch == LockKind::kExclusive ? LockWish::kExclusive : LockWish::kShared);
  if (outcome == LockManager::Outcome::kRefused) return false;
  if (outcome == LockManager::Outcome::kQueued) {
    window.WakeWaiting();
    replies_.Send(incoming, header->reply_slot, ReplyStatus::kBusy, 0);
    return true;
  }
  const bool fine = OnData(incoming, *header, window, body);
  std::vector<LockManager::Asker> granted;
  window.locks.Release(rank, &granted);
  Grant(granted);
  window.WakeWaiting();
  return fine;
}

// Where a rank died, each frees its own part of the window, whatever others have on the way (RdmaWindow::Free): that changes nothing any more.
bool Service::OnLate(Incoming& incoming, const MessageHeader& header, ByteSpan body) {
  if (header.window == 0 || header.window >= next_window_) return false;
  if (!header.wants_reply) return true;
  const bool names_memory = (header.kind >= MessageKind::kPut && header.kind <= MessageKind::kFindRegion) || header.kind == MessageKind::kGetByWrite;
  const std::optional<FenceBehind> fence = header.with_fence ? TakeFenceBehind(&body) : std::nullopt;
  if (header.with_fence && !fence) return false;
  replies_.Send(incoming, header.reply_slot, names_memory ? ReplyStatus::kOutOfRange : ReplyStatus::kDone, 0, /*behind_write=*/false,
                /*of_fence=*/fence && fence->asks);
  return true;
}

bool Service::OnMessageTo(TargetWindow& window, int rank, Incoming& incoming, const MessageHeader& message, ByteSpan body) {
  if (message.with_fence) return OnGetAndFence(incoming, message, window, rank, body);
  const MessageHeader* header = &message;
  switch (header->kind) {
    case MessageKind::kNothing:
      break;
    case MessageKind::kFence:
      return OnFence(incoming, *header, window, rank, body);
    case MessageKind::kPost:
      window.control.signals[rank].posts.fetch_add(1, std::memory_order_release);
      break;
    case MessageKind::kComplete:
      window.control.signals[rank].completes.fetch_add(1, std::memory_order_release);
      break;
    case MessageKind::kLockShared:
    case MessageKind::kLockExclusive:
    case MessageKind::kLockOvertaking:
      return body.empty() && OnLock(incoming, *header, window, rank);
    case MessageKind::kUnlock: {
      std::vector<LockManager::Asker> granted;
      if (!body.empty() || !window.locks.Release(rank, &granted)) return false;
      Grant(granted);
      window.WakeWaiting();
      break;
    }
    case MessageKind::kPut:
    case MessageKind::kGet:
    case MessageKind::kAccumulate:
    case MessageKind::kGetAccumulate:
    case MessageKind::kCompareAndSwap:
      return OnData(incoming, *header, window, body);
    case MessageKind::kFindRegion:
      return OnFindRegion(incoming, *header, window, body);
    case MessageKind::kGetByWrite:
      return OnGetByWrite(incoming, *header, window, body);
  }
  if (header->wants_reply) replies_.Send(incoming, header->reply_slot, ReplyStatus::kDone, 0);
  return body.empty();
}

bool Service::OnData(Incoming& incoming, const MessageHeader& header, const TargetWindow& window, ByteSpan body, bool of_fence) {
  uint8_t* fetched = replies_.data();
  size_t bytes = 0;
  const Applied applied = header.kind == MessageKind::kCompareAndSwap
                              ? ApplyCompareAndSwap(header, body, window, fetched, &bytes)
                              : ApplyData(header, body, window, fetched, &bytes);
  if (applied == Applied::kMalformed) return false;
  const ReplyStatus status = applied == Applied::kDone ? ReplyStatus::kDone : ReplyStatus::kOutOfRange;
  if (header.wants_reply) replies_.Send(incoming, header.reply_slot, status, bytes, /*behind_write=*/false, of_fence);
  return true;
}

bool Service::OnFindRegion(Incoming& incoming, const MessageHeader& header, TargetWindow& window, ByteSpan body) {
  const auto parsed = ParseFindRegion(body);
  if (!parsed || !header.wants_reply || !window.dynamic) return false;
  const TargetWindow::Region* region = window.RegionOf(parsed->address, parsed->bytes);
  if (region == nullptr) {
    replies_.Send(incoming, header.reply_slot, ReplyStatus::kOutOfRange, 0);
    return true;
  }
  ByteWriter writer({replies_.data(), 4});
  writer.U32(region->mr->rkey);
  replies_.Send(incoming, header.reply_slot, ReplyStatus::kDone, writer.size());
  return true;
}

// --- fences, and Gets that they follow ---

// The RNIC reads the data from the window, which the program may change as soon as its fence is over: until the RNIC has read them the origin's fence does
// not count. The reply is behind the Write: what it completes at the origin is placed (RFC 5040 section 5.5).
bool Service::OnGetByWrite(Incoming& incoming, const MessageHeader& header, const TargetWindow& window, ByteSpan body, bool of_fence) {
  const auto parsed = ParseGetByWrite(body);
  if (!parsed || !header.wants_reply || window.mr == nullptr) return false;
  const uint8_t* const from = window.Resolve(parsed->offset, parsed->bytes);
  if (from == nullptr) {
    replies_.Send(incoming, header.reply_slot, ReplyStatus::kOutOfRange, 0, /*behind_write=*/false, of_fence);
    return true;
  }
  if (!replies_.WriteData(incoming, from, parsed->bytes, window.mr->lkey, parsed->address, parsed->key)) return false;
  replies_.Send(incoming, header.reply_slot, ReplyStatus::kDone, 0, /*behind_write=*/true, of_fence);
  return true;
}

bool Service::OnFence(Incoming& incoming, const MessageHeader& header, TargetWindow& window, int rank, ByteSpan body) {
  const auto number = ParseFence(body);
  if (!number) return false;
  std::optional<FenceNotice::Asker> asker;
  if (header.wants_reply) asker = {incoming.index, header.reply_slot};
  std::optional<FenceNotice::Answer> answer;
  if (!window.fences[static_cast<size_t>(rank)].OnMessage(*number, header.promises, asker, &answer)) return false;
  if (answer) Answer(*answer);
  CountWhenTaken(incoming, window, rank, *number);
  return true;
}

// If this rank is in the fence already, and owes its notice of it, the Get's reply is that, too.
bool Service::OnGetAndFence(Incoming& incoming, const MessageHeader& header, TargetWindow& window, int rank, ByteSpan body) {
  const auto fence = TakeFenceBehind(&body);
  if (!fence) return false;
  std::optional<FenceNotice::Asker> asker;
  if (fence->asks) asker = {incoming.index, fence->reply_slot};
  std::optional<FenceNotice::Answer> answer;
  if (!window.fences[static_cast<size_t>(rank)].OnMessage(fence->number, fence->promises, asker, &answer)) return false;
  const bool of_fence = asker && answer && answer->to == *asker && answer->status == ReplyStatus::kDone;
  if (answer && !of_fence) replies_.Gather(true);  // two replies go out together
  const bool fine = header.kind == MessageKind::kGet ? OnData(incoming, header, window, body, of_fence)
                                                     : OnGetByWrite(incoming, header, window, body, of_fence);
  if (!fine) return false;
  if (answer && !of_fence) Answer(*answer);
  CountWhenTaken(incoming, window, rank, fence->number);
  return true;
}

void Service::CountWhenTaken(Incoming& incoming, TargetWindow& window, int rank, uint32_t number) {
  if (incoming.writing != 0) replies_.Post();
  if (replies_.StillWriting(incoming)) {
    held_fences_.Hold({incoming.index, window.id, rank, number});
  } else {
    CountFence(window, rank, number);
  }
}

// Notices come as messages and as replies, in any order; none counts twice.
void Service::CountFence(TargetWindow& window, int rank, uint32_t number) {
  std::atomic<uint32_t>& fences = window.control.signals[rank].fences;
  if (static_cast<int32_t>(number - fences.load(std::memory_order_relaxed)) > 0) fences.store(number, std::memory_order_release);
  changed_ = true;
}

// If the connection is gone its RNIC no longer reads the window.
void Service::CountHeldFences() {
  const auto must_wait = [this](const HeldFences::Fence& held) {
    const Incoming* const incoming = connections_.Find(held.connection);
    return incoming != nullptr && replies_.StillWriting(*incoming);
  };
  held_fences_.CountOthers(must_wait, [this](const HeldFences::Fence& held) {
    if (const auto found = windows_.find(held.window); found != windows_.end()) CountFence(*found->second, held.rank, held.number);
  });
}

void Service::Answer(const FenceNotice::Answer& answer) {
  Incoming* const incoming = connections_.Find(answer.to.connection);
  if (incoming != nullptr && incoming->bad.empty()) replies_.Send(*incoming, answer.to.slot, answer.status, 0);
}

FenceNotice::Entry Service::EnterFence(TargetWindow& window, int rank, bool operations, bool gets) {
  std::lock_guard lock(mutex_);
  const FenceNotice::Entry entry = window.fences[static_cast<size_t>(rank)].Enter(operations, gets);
  if (entry.answer) Answer(*entry.answer);
  return entry;
}

void Service::OnFenceReply(uint32_t window, ProcessId process, uint32_t number, ReplyStatus status) {
  std::lock_guard lock(mutex_);
  const auto found = windows_.find(window);
  const int rank = found == windows_.end() ? -1 : found->second->RankOf(process);
  if (rank >= 0 && found->second->fences[static_cast<size_t>(rank)].OnReply(number, status)) CountFence(*found->second, rank, number);
}

// --- locks ---

bool Service::OnLock(Incoming& incoming, const MessageHeader& header, TargetWindow& window, int rank) {
  if (!header.wants_reply) return false;
  const LockManager::Asker asker{rank, uint64_t{incoming.index} << 16 | header.reply_slot};
  const LockWish wish = header.kind == MessageKind::kLockExclusive    ? LockWish::kExclusive
                        : header.kind == MessageKind::kLockOvertaking ? LockWish::kOvertaking
                                                                      : LockWish::kShared;
  switch (window.locks.Acquire(asker, wish)) {
    case LockManager::Outcome::kGranted:
      replies_.Send(incoming, header.reply_slot, ReplyStatus::kDone, 0);
      return true;
    case LockManager::Outcome::kQueued:
      window.WakeWaiting();
      // The thread may be asleep for as long as no message comes.
      if (const uint64_t one = 1; !locks_wait_.exchange(true)) (void)!write(stop_fd_, &one, sizeof one);
      return true;
    case LockManager::Outcome::kRefused:
      return false;
  }
  return false;
}

// Processes of this host give locks back without a word to this one.
void Service::RetryLocks() {
  std::vector<LockManager::Asker> granted;
  bool some_wait = false;
  for (auto& [id, window] : windows_) {
    if (!window->locks.anyone_waits()) continue;
    window->locks.Retry(&granted);
    some_wait |= window->locks.anyone_waits();
  }
  locks_wait_ = some_wait;
  Grant(granted);
}

void Service::LookForDeadHolders() {
  for (auto& [id, window] : windows_) {
    if (!window->locks.anyone_waits() || window->host == nullptr) continue;
    const WindowLock& lock = window->locks.lock();
    const int holder = lock.Holder(window->locks.first_waiting());
    if (holder >= 0 && window->host->Ended(holder)) lock.Forget(holder);
  }
}

void Service::Grant(const std::vector<LockManager::Asker>& granted) {
  for (const LockManager::Asker& asker : granted) {
    Incoming* incoming = connections_.Find(static_cast<uint32_t>(asker.token >> 16));
    if (incoming != nullptr) replies_.Send(*incoming, static_cast<uint16_t>(asker.token & 0xffff), ReplyStatus::kDone, 0);
  }
}

}  // namespace weft::mpi::rma
