#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/dma_scope.h"
#include "base/log.h"
#include "sim/queue_pair/queue_pair.h"
#include "sim/queue_pair/internal.h"

// Memory that a queue pair used, or was to use, and that is taken away: by its program, by a work request, by the peer.
namespace weft::sim {

void CopyWhatIsThere(uint8_t* to, const uint8_t* from, size_t count) {
  const iovec into{to, count}, of{const_cast<uint8_t*>(from), count};
  if (process_vm_readv(getpid(), &into, 1, &of, 1, 0) >= 0 || errno == EFAULT) return;
  const DmaScope dma;  // not allowed here (a container's filter), or not there
  std::memcpy(to, from, count);
}

void QueuePair::ForgetRegion(const RegionInfo& gone) {
  EngineLock engine(*this);
  Forget(gone, std::nullopt);
}

void QueuePair::Forget(const RegionInfo& gone, std::optional<uint64_t> request) {
  if (connection_ == nullptr) return;
  Connection& connection = *connection_;
  // Answers of which the stream knows no more.
  if (gone.length != 0)
    connection.channel->TakeOver(reinterpret_cast<const void*>(gone.address), gone.length, CopyWhatIsThere);
  const auto names = [&gone](const ibv_sge* elements, unsigned pieces) {
    for (unsigned piece = 0; piece < pieces; ++piece) {
      if (elements[piece].lkey == gone.stag.value) return true;
    }
    return false;
  };
  // What waits for its turn looks its memory up again then.
  for (uint64_t i = sends_.started; i != sends_.posted(); ++i) {
    SendEntry& entry = sends_.entry(i);
    if (!entry.is_inline && names(sends_.elements(i), entry.pieces)) entry.resolved = false;
  }
  bool used = connection.stream.ForgetRegion(gone.stag);
  for (const WindowUse& use : window_uses_)
    used |= use.region == gone.stag && connection.stream.ForgetRegion(use.window);
  for (uint64_t i = sends_.retired(); i != sends_.started && !used; ++i) {
    const SendEntry& entry = sends_.entry(i);
    used |= !entry.done && !entry.is_inline && names(sends_.elements(i), entry.pieces);
  }
  if (const uint64_t i = receives_.completed(); i != receives_.taken)
    used |= names(receives_.elements(i), receives_.entry(i).pieces);
  if (used) connection.channel->DivertPlacement();
  if (request && sends_.retired() <= *request) {
    sends_.entry(*request).done = true;
    if (sends_.started == *request) ++sends_.started;
    RetireSends();
  }
  if (!used) return;
  LogWarning(
      Format("qp 0x%x: memory 0x%08x was deregistered or invalidated while the queue pair still used it: the "
             "connection is closed; "
             "wait for the work requests' completions, and tell the peer, before the memory goes",
             number_, gone.stag.value));
  if (connection.stream.state() == rdmap::StreamState::kOperational) {  // a request or a receive of our own
    TellPeerOfLocalError();
    return Fail(/*orderly=*/!connection.extended, IBV_WC_LOC_PROT_ERR);
  }
  Transmit();
  CheckStream();
  if (connection_ != nullptr) Fail(/*orderly=*/false, IBV_WC_LOC_PROT_ERR);
}

// --- work requests ---

// In the order of the queue, but without waiting for what was posted before, unless the program asks for a fence:
// requests under way were checked when they began.
bool QueuePair::BindWindow(uint64_t count) {
  SendEntry& entry = sends_.entry(count);
  if (entry.request.fence && sends_.retired() != count) return false;
  RegionInfo gone;
  if (!adapter_.memory().BindWindow(*options_.pd, window_owner_, sends_.bind(count), &gone)) {
    entry.status = IBV_WC_MW_BIND_ERR;
    return false;
  }
  entry.status = IBV_WC_SUCCESS;
  if (gone.length != 0) {
    RevokeLater(count, gone);
    return false;
  }
  entry.done = true;
  return true;
}

bool QueuePair::InvalidateLocally(uint64_t count) {
  if (sends_.retired() != count) return false;  // after all that was posted before it
  SendEntry& entry = sends_.entry(count);
  RegionInfo gone;
  if (!adapter_.memory().Invalidate(*options_.pd, entry.request.invalidate_stag, window_owner_, &gone)) {
    entry.status = IBV_WC_LOC_PROT_ERR;
    return false;
  }
  RevokeLater(count, gone);
  return false;
}

void QueuePair::RevokeLater(uint64_t count, const RegionInfo& gone) {
  revocation_ = {.count = count, .gone = gone, .begun = false};
  upcalls_.push_back(Upcall::kRevocation);
}

void QueuePair::CarryOutRevocation(std::unique_lock<std::mutex>& engine) {
  revocation_->begun = true;
  const Revocation now = *revocation_;
  if (now.gone.owner != window_owner_) {
    engine.unlock();
    adapter_.ForgetRegion(now.gone, /*but=*/this);
    engine.lock();
  }
  if (revocation_ && revocation_->count == now.count) revocation_.reset();
  Forget(now.gone, now.count);
  if (connection_ == nullptr) return;
  Transmit();
  CheckStream();
}

std::optional<rdmap::AccessError> QueuePair::Invalidate(ddp::STag stag) {
  RegionInfo gone;
  if (auto error = adapter_.memory().InvalidateForPeer(remote_pd(), stag, window_owner_, &gone)) return error;
  // Only this stream had a use for it, and it is not placing now: a Send is. Answers that it has not appended look the
  // window up.
  connection_->channel->TakeOver(reinterpret_cast<const void*>(gone.address), gone.length, CopyWhatIsThere);
  return std::nullopt;
}

}  // namespace weft::sim
