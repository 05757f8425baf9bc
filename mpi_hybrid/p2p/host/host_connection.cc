#include "mpi_hybrid/p2p/host/host_connection.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/copy.h"
#include "base/log.h"
#include "mpi_hybrid/core/counters.h"
#include "mpi_hybrid/core/lock.h"

namespace weft::mpi::host {
namespace {

constexpr size_t kPieces = 64;        // of one gathering write or scattering read
constexpr int kItemsPerTurn = 32;     // then others have theirs
constexpr uint32_t kPublishEvery = 4;  // slots, so that the writer has its cells back while they are in the cache
constexpr size_t kMostInSlot = RingSlot::kInline - FrameHeader::kLength;  // of a frame's body
constexpr size_t kLeftInPlaceFrom = 64 * 1024;  // bytes that a process which leaves has the peer copy from where they lie
constexpr uint64_t kFetchedAtOnce = LibraryLock::kMostCopied;  // bytes of one system call
constexpr size_t kLookFrom = 4;       // cells under way, from which on it is asked what of them was read

size_t Sum(std::span<const iovec> pieces) {
  size_t sum = 0;
  for (const iovec& piece : pieces) sum += piece.iov_len;
  return sum;
}

// What is to be written begins with a header, or a short rest of one, that is beside what follows it.
bool HasHeader(std::span<const iovec> pieces) { return !pieces.empty() && pieces[0].iov_len <= RingSlot::kInlineBesideBulk; }
std::span<const iovec> BodyOf(std::span<const iovec> pieces) { return pieces.subspan(HasHeader(pieces) ? 1 : 0); }

// Copies up to `most` bytes of `pieces` from byte `skip` on; how many.
size_t Gather(std::span<const iovec> pieces, size_t skip, uint8_t* to, size_t most) {
  size_t copied = 0;
  for (const iovec& piece : pieces) {
    if (skip >= piece.iov_len) {
      skip -= piece.iov_len;
      continue;
    }
    const size_t part = std::min(piece.iov_len - skip, most - copied);
    CopyBytes(to + copied, static_cast<const uint8_t*>(piece.iov_base) + skip, part);
    copied += part;
    if (copied == most) break;
    skip = 0;
  }
  return copied;
}

}  // namespace

// What the peer has not read yet stays as it is, though nobody will say when it was: the link is over.
HostConnection::~HostConnection() {
  if (link_.lane() == this) link_.set_lane(nullptr);
  if (writer_.Look()) TakeCellsBack();
  if (!peer_is_dead_) return;
  for (const uint16_t cell : cell_of_) {
    if (cell != kNoCell) cells_.Give(cell);
  }
}

void HostConnection::Lose() {
  if (!std::exchange(lost_, true)) owner_.OnLost(*this);
}

// --- in ---

bool HostConnection::Read() {
  RingItem item;
  bool cells = false;
  int items = 0;
  for (; items < kItemsPerTurn && !lost_; ++items) {
    const RingReader::Result result = reader_.Look(&item);
    if (result == RingReader::Result::kNothing) break;
    // A long copy waits until what came before it is answered: the peer may have something to copy, too.
    if ((item.bulk == BulkKind::kMemory || item.bulk == BulkKind::kOffer) && items != 0) break;
    if (result == RingReader::Result::kNonsense || !Take(item)) {
      if (lost_) break;
      LogWarning(link_.Describe() + " wrote an invalid message; the connection is closed");
      Lose();
      break;
    }
    reader_.Advance();
    cells |= item.bulk == BulkKind::kCell;
    if (reader_.unpublished() >= kPublishEvery || item.bulk == BulkKind::kMemory) Publish();
  }
  // Cells are missed by all to whom their owner sends; of the last slots the writer hears in a moment of leisure, since whoever waits for what
  // they brought comes first.
  if ((cells || items == 0) && reader_.unpublished() != 0) Publish();
  return items != 0;
}

size_t HostConnection::Peek(std::span<iovec, 2> pieces) {
  if (!reader_.has_news() || lost_) return 0;
  RingItem item;
  if (reader_.Look(&item) != RingReader::Result::kItem || item.first.empty()) return 0;
  pieces[0] = {const_cast<uint8_t*>(item.first.data()), item.first.size()};
  shown_cell_ = item.bulk == BulkKind::kCell;
  if (item.bulk == BulkKind::kNone || item.bulk == BulkKind::kOffer) return 1;
  if (item.bulk != BulkKind::kCell) return 0;
  pieces[1] = {const_cast<uint8_t*>(its_cells_ + item.where * kCellBytes), static_cast<size_t>(item.length)};
  return 2;
}

void HostConnection::Taken() {
  reader_.Advance();
  if (shown_cell_ || reader_.unpublished() >= kPublishEvery) Publish();
}

void HostConnection::Publish() {
  if (reader_.Publish() && (its_attention_.load(std::memory_order_seq_cst) & Slot::kAsleep) != 0) owner_.WakePeer(*this);
}

// False: it is no frame; or the connection is lost.
bool HostConnection::Take(const RingItem& item) {
  const std::span<const uint8_t> cell =
      item.bulk == BulkKind::kCell ? std::span(its_cells_ + item.where * kCellBytes, static_cast<size_t>(item.length)) : std::span<const uint8_t>();
  if (item.bulk == BulkKind::kOffer) return item.where != 0 && link_.ReadRequest(item.first, item.where, item.length);
  if (item.bulk != BulkKind::kMemory && link_.TakeForPosted(item.first, cell)) return true;
  if (!link_.ReadStaged(item.first)) return false;
  switch (item.bulk) {
    case BulkKind::kNone:
      return true;
    case BulkKind::kCell:
      return link_.ReadStaged(cell);
    case BulkKind::kMemory:
      return TakeFromMemory(item.where, item.length);
    case BulkKind::kEnd:
      Lose();
      return true;
    case BulkKind::kOffer:
      break;  // above
  }
  return false;
}

// The right to do that can go (setuid(2), PR_SET_DUMPABLE, a filter of system calls, at either end): the peer sends
// what is left in another way then, as all that follows.
bool HostConnection::TakeFromMemory(uint64_t from, uint64_t bytes) {
  if (!reads_memory_) return false;
  ++g_counters.host_copies;
  while (bytes != 0) {
    iovec pieces[kPieces];
    const size_t count = link_.PrepareRead(pieces, staging_);
    const ssize_t got = owner_.ReadPeer(*this, {pieces, count}, from, static_cast<size_t>(bytes));
    if (got == 0) {
      if (TraceEnabled()) Trace("mpi: memory of " + link_.Describe() + " cannot be read any more; messages are copied through shared memory");
      reads_memory_ = false;
      reader_.Refuse(bytes);
      return true;
    }
    if (got < 0 || static_cast<uint64_t>(got) > bytes) {
      Lose();
      return false;
    }
    if (!link_.ReadDone(static_cast<size_t>(got), staging_)) return false;
    from += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
  return true;
}

bool HostConnection::Fetch(Payload& to, uint64_t offer, uint64_t bytes) {
  if (!reads_memory_ || lost_) return false;
  while (bytes != 0) {
    iovec pieces[kPieces];
    const size_t count = to.Peek(pieces, static_cast<size_t>(std::min<uint64_t>(bytes, kFetchedAtOnce)));
    const ssize_t got = owner_.ReadPeer(*this, {pieces, count}, offer, Sum({pieces, count}));
    if (got < 0) Lose();
    if (got <= 0 || static_cast<uint64_t>(got) > bytes) return false;
    ++g_counters.host_copies;
    to.Advance(static_cast<size_t>(got));
    offer += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
  return true;
}

// --- out ---

// What the peer has read. False: it says nonsense.
bool HostConnection::Reclaim() {
  if (!writer_.Look()) {
    LogWarning(link_.Describe() + " claims to have read data that was not written; the connection is closed");
    Lose();
    return false;
  }
  TakeCellsBack();
  return true;
}

void HostConnection::TakeCellsBack() {
  for (; reclaimed_ != writer_.read(); ++reclaimed_) {
    const uint16_t cell = std::exchange(cell_of_[slot_], kNoCell);
    if (cell != kNoCell) {
      cells_.Give(cell);
      --held_;
    }
    if (++slot_ == RingPage::kSlots) slot_ = 0;
  }
}

void HostConnection::Publish(size_t first, BulkKind bulk, uint64_t where, uint64_t length) {
  g_counters.host_bytes_sent += first + length;
  cell_of_[next_slot_] = bulk == BulkKind::kCell ? static_cast<uint16_t>(where) : kNoCell;
  if (++next_slot_ == RingPage::kSlots) next_slot_ = 0;
  writer_.Put(first, bulk, where, length);
  if ((its_attention_.load(std::memory_order_seq_cst) & Slot::kAsleep) != 0) owner_.WakePeer(*this);
}

// `first` bytes are in the slot already, of `skip` of the pieces.
size_t HostConnection::PutInCell(std::span<const iovec> pieces, size_t skip, size_t first) {
  const size_t cell = cells_.Take();
  ++held_;
  const size_t copied = Gather(pieces, skip, cells_.at(cell), kCellBytes);
  Publish(first, BulkKind::kCell, cell, copied);
  return copied;
}

// One slot with a header that announces `data`, and with where these are.
size_t HostConnection::PutOffer(std::span<const uint8_t> data) {
  iovec header[1];
  link_.PrepareWrite(header);
  std::memcpy(writer_.next(), header[0].iov_base, FrameHeader::kLength);
  Publish(FrameHeader::kLength, BulkKind::kOffer, reinterpret_cast<uintptr_t>(data.data()), data.size());
  return FrameHeader::kLength;
}

// One slot that tells where the first long piece is; a header is beside it.
size_t HostConnection::PutInPlace(std::span<const iovec> pieces) {
  const size_t first = HasHeader(pieces) ? pieces[0].iov_len : 0;
  if (first != 0) std::memcpy(writer_.next(), pieces[0].iov_base, first);
  const iovec& body = BodyOf(pieces)[0];
  memory_left_ = std::min<size_t>(body.iov_len, RingReader::kMostFromMemory);
  memory_slot_ = writer_.written() + 1;
  Publish(first, BulkKind::kMemory, reinterpret_cast<uintptr_t>(body.iov_base), memory_left_);
  return first;
}

void HostConnection::Leave() {
  if (lost_ || memory_left_ != 0 || output_ended_ || link_.is_gone() || !link_.has_output()) return;
  if (!writer_.reader_reads_memory() || !writer_.has_room()) return;
  iovec pieces[2];
  const std::span<const iovec> next(pieces, link_.PrepareWrite(pieces));
  if (!BodyOf(next).empty() && BodyOf(next)[0].iov_len >= kLeftInPlaceFrom) link_.Written(PutInPlace(next));
}

// One slot; the bytes of the pieces that count as written.
size_t HostConnection::Put(std::span<const iovec> pieces) {
  // A header is beside what follows it.
  const bool has_header = HasHeader(pieces);
  const std::span<const iovec> body = BodyOf(pieces);
  // Through the cache they go in a third of the time, if this process is there to write them.
  const size_t in_place_from = MayTakeCell() || in_place_from_ == SIZE_MAX ? in_place_from_ : kLeftInPlaceFrom;
  const bool is_long = !body.empty() && body[0].iov_len >= in_place_from && writer_.reader_reads_memory();
  if (is_long && !(MayTakeCell() && owner_.StaysForLongData())) return PutInPlace(pieces);
  if (Sum(pieces) <= RingSlot::kInline || !MayTakeCell()) {
    const size_t first = Gather(pieces, 0, writer_.next(), RingSlot::kInline);
    Publish(first, BulkKind::kNone);
    return first;
  }
  size_t first = 0;
  if (has_header) {
    first = pieces[0].iov_len;
    std::memcpy(writer_.next(), pieces[0].iov_base, first);
  }
  return first + PutInCell(pieces, first, first);
}

bool HostConnection::Write() {
  if (lost_) return false;
  if (writer_.under_way() != 0 && !Reclaim()) return true;
  bool moved = false;
  for (int items = 0; !lost_ && items < kItemsPerTurn; ++items) {
    if (memory_left_ != 0) {
      if (static_cast<int32_t>(writer_.read() - memory_slot_) < 0) return moved;
      moved = true;
      if (!MemoryWasRead()) return true;
      continue;
    }
    if (output_ended_ || link_.is_gone() || !link_.has_output()) break;
    if (!CanPut()) {
      if (!Reclaim()) return true;
      if (!CanPut()) return moved;
    }
    const std::span<const uint8_t> offer = link_.Offer();
    if (offer.size() >= in_place_from_ && offer.size() <= RingReader::kMostFromMemory && writer_.reader_reads_memory()) {
      link_.Written(PutOffer(offer));
    } else {
      iovec pieces[kPieces];
      const size_t count = link_.PrepareWrite(pieces);
      link_.Written(Put({pieces, count}));
    }
    moved = true;
  }
  if (has_pending_end()) TellEnd();
  return moved;
}

// False: the peer says nonsense.
bool HostConnection::MemoryWasRead() {
  const uint64_t refused = writer_.refused();
  if (refused > memory_left_) {
    LogWarning(link_.Describe() + " refused more bytes than it was sent; the connection is closed");
    Lose();
    return false;
  }
  const size_t read = std::exchange(memory_left_, 0) - static_cast<size_t>(refused);
  if (read != 0 && !link_.is_gone()) link_.Written(read);  // else its sends have failed
  return true;
}

Lane::Room HostConnection::Open(size_t body_bytes) {
  if (lost_ || memory_left_ != 0) return {};
  // How far the peer is costs a line of the cache.
  if ((held_ >= kLookFrom || writer_.under_way() >= RingPage::kSlots / 2) && !Reclaim()) return {};
  if (!writer_.has_room()) return {};
  uint8_t* const slot = writer_.next();
  if (body_bytes <= kMostInSlot) return {slot, slot + FrameHeader::kLength};
  if (body_bytes > kCellBytes || !MayTakeCell()) return {};
  open_cell_ = cells_.Take();
  ++held_;
  return {slot, cells_.at(open_cell_)};
}

void HostConnection::Close(size_t body_bytes) {
  if (body_bytes <= kMostInSlot) {
    Publish(FrameHeader::kLength + body_bytes, BulkKind::kNone);
  } else {
    Publish(FrameHeader::kLength, BulkKind::kCell, open_cell_, body_bytes);
  }
}

size_t HostConnection::WriteAtOnce(std::span<const iovec> pieces, size_t total) {
  const size_t body = total - FrameHeader::kLength;
  if (pieces[0].iov_len != FrameHeader::kLength || Sum(pieces) != total) return 0;
  const Room room = Open(body);
  if (room.header == nullptr) return 0;
  std::memcpy(room.header, pieces[0].iov_base, FrameHeader::kLength);
  Gather(pieces.subspan(1), 0, room.body, body);
  Close(body);
  return total;
}

void HostConnection::EndOutput() {
  if (std::exchange(output_ended_, true) || lost_) return;
  TellEnd();
}

void HostConnection::TellEnd() {
  if (!Reclaim() || !writer_.has_room()) return;
  end_told_ = true;
  Publish(0, BulkKind::kEnd);
}

// --- sleeping, and the end ---

bool HostConnection::Arm() {
  if (lost_ || reader_.has_news()) return false;
  if (reader_.unpublished() != 0) Publish();
  if (!is_blocked() && !has_pending_end()) return true;
  if (memory_left_ == 0 && CanPut()) return false;  // it had its turn, and has more
  // When half of it is free again, not for each cell.
  const uint32_t half = writer_.read() + (writer_.under_way() + 1) / 2;
  const uint32_t until = memory_left_ != 0 ? memory_slot_ : half;
  writer_.WaitFor(until);
  waits_ = true;
  return writer_.Look() && static_cast<int32_t>(writer_.read() - until) < 0;
}

void HostConnection::OnPeerGone(bool is_dead) {
  peer_is_dead_ |= is_dead;
  while (!lost_ && Read()) {
  }
  Lose();
}

}  // namespace weft::mpi::host
