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
  bool used = requester_.ForgetRegion(gone);
  used |= connection.stream.ForgetRegion(gone.stag);
  for (const ddp::STag window : responder_.WindowsOf(gone)) used |= window.value != 0 && connection.stream.ForgetRegion(window);
  used |= responder_.IsFilling(gone);
  if (used) connection.channel->DivertPlacement();
  if (request) requester_.DoneRevoking(*request);
  TellOfDrain();
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

void QueuePair::CarryOutRevocation(std::unique_lock<std::mutex>& engine) {
  const Requester::Revocation now = requester_.BeginRevocation();
  if (now.gone.owner != memory_user_.owner) {
    engine.unlock();
    adapter_.ForgetRegion(now.gone, /*but=*/this);
    engine.lock();
  }
  requester_.EndRevocation(now);
  Forget(now.gone, now.count);
  if (connection_ == nullptr) return;
  Transmit();
  CheckStream();
}

std::optional<rdmap::AccessError> QueuePair::Invalidate(ddp::STag stag) {
  RegionInfo gone;
  if (auto error = responder_.Invalidate(stag, &gone)) return error;
  // Only this stream had a use for it, and it is not placing now: a Send is. Answers that it has not appended look the
  // window up.
  connection_->channel->TakeOver(reinterpret_cast<const void*>(gone.address), gone.length, CopyWhatIsThere);
  return std::nullopt;
}

}  // namespace weft::sim
