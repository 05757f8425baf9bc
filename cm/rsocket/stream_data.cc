// Sending and receiving on a stream rsocket. Payload is copied once each way, between the program's memory and the buffers that the
// adapter reads and writes.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cm/rsocket/stream.h"
#include "cm/rsocket/vector_cursor.h"

namespace weft::rsocket {
namespace {

// Sends between two looks at the completion queue: what the peer says meanwhile takes up receives.
constexpr uint32_t kMostUndriven = 8;

}  // namespace

// --- receiving ---

int Stream::AwaitReadable(Lock& lock, int flags) {
  if (closing_) return EBADF;
  if (receive_ring_ && receive_ring_->readable() > 0) return 0;
  switch (state_) {
    case State::kIdle:
    case State::kBound:
    case State::kListening:
      return ENOTCONN;
    default:
      break;
  }
  if (const int error = Await(lock, DeadlineOf(flags, receive_timeout_), &Stream::Readable); error != 0) return error;
  if (closing_) return EBADF;
  if (receive_ring_ && receive_ring_->readable() > 0) return 0;
  if (error_ != 0) return std::exchange(error_, 0);
  return state_ == State::kConnected ? 0 : ENOTCONN;
}

ssize_t Stream::Receive(const iovec* pieces, int count, int flags, sockaddr_storage* from, int* out_flags) {
  if ((flags & MSG_OOB) != 0) return -EINVAL;
  *out_flags = 0;
  if (from != nullptr) from->ss_family = AF_UNSPEC;  // recvfrom(2): a stream has no source address
  VectorCursor into(pieces, count);
  const bool peek = (flags & MSG_PEEK) != 0;
  const bool all = (flags & MSG_WAITALL) != 0 && !peek;
  ssize_t received = 0;
  std::lock_guard one_receiver(receive_mutex_);
  do {
    Lock lock(mutex_);
    if (const int error = AwaitReadable(lock, flags); error != 0) return received > 0 ? received : -error;
    if (!receive_ring_) return received;
    const auto length = static_cast<uint32_t>(std::min<uint64_t>(into.left(), receive_ring_->readable()));
    if (length == 0) return received;  // end of the stream, or nothing wanted
    const RingRange range = receive_ring_->Peek(0, length);
    lock.unlock();
    for (const auto& piece : range.pieces) into.CopyIn(link_->receive_buffer() + piece.offset, piece.length);
    received += length;
    if (peek) return received;
    lock.lock();
    receive_ring_->Consume(length);
    GiveCredits();
  } while (all && into.left() > 0);
  return received;
}

// --- sending ---

int Stream::AwaitWritable(Lock& lock, int flags) {
  if (sends_undriven_ >= kMostUndriven) Drive();
  if (state_ != State::kConnected || WhyNotWritable() != 0 || !CanSend()) {
    if (const int error = WhyNotWritable(); error == ENOTCONN || error == EBADF) return error;
    if (const int error = Await(lock, DeadlineOf(flags, send_timeout_), &Stream::Writable); error != 0) return error;
  }
  const int error = WhyNotWritable();
  if (error != 0 && error == error_) error_ = 0;  // told once
  return error;
}

ssize_t Stream::Send(const iovec* pieces, int count, int flags, const sockaddr* /*to*/, socklen_t /*to_length*/) {
  if ((flags & MSG_OOB) != 0) return -EOPNOTSUPP;
  VectorCursor from(pieces, count);
  ssize_t sent = 0;
  std::lock_guard one_sender(send_mutex_);
  Lock lock(mutex_);
  if (mappings_pending_) {
    if (const int error = AnnounceMappings(lock, flags); error != 0) return -error;
  }
  do {
    if (const int error = AwaitWritable(lock, flags); error != 0) return sent > 0 ? sent : -error;
    if (from.left() == 0) return 0;
    Target& target = targets_[target_];
    auto length = static_cast<uint32_t>(std::min<uint64_t>({from.left(), kMostTransfer, target.length}));
    const bool is_inline = length <= sizes_.inline_bytes && from.contiguous(length);
    if (!is_inline) length = std::min(length, send_ring_->free());

    // The room is ours from here on; the rest needs no lock.
    const uint64_t to = target.address;
    const uint32_t key = target.key;
    target.address += length;
    target.length -= length;
    if (target.length == 0) target_ = (target_ + 1) % kTargetListSize;
    ++sent_messages_;
    ++sends_undriven_;
    slots_free_ -= 2;
    const uint32_t text = Message{MessageType::kData, length}.Serialize();
    ibv_sge elements[2];
    int used = 1;
    uint32_t taken = 0;
    int error;
    if (is_inline) {
      lock.unlock();
      elements[0] = {reinterpret_cast<uintptr_t>(from.data()), length, 0};
    } else {
      taken = length;
      const RingRange range = send_ring_->Take(length);
      used = range.count();
      lock.unlock();
      for (int i = 0; i < used; ++i) {
        const RingRange::Piece& piece = range.pieces[static_cast<size_t>(i)];
        uint8_t* const place = link_->send_buffer() + piece.offset;
        from.CopyOut(place, piece.length);
        elements[i] = {reinterpret_cast<uintptr_t>(place), piece.length, link_->send_key()};
      }
    }
    error = link_->PostWrite({elements, static_cast<size_t>(used)}, is_inline, to, key, &text, CompletionId(2, taken));
    if (is_inline) from.Skip(length);
    lock.lock();
    if (error != 0) {
      slots_free_ += 2;
      send_ring_->GiveBack(taken);
      OnLost(ECONNRESET);
      return sent > 0 ? sent : -ECONNRESET;
    }
    sent += length;
  } while (from.left() > 0);
  return sent;
}

}  // namespace weft::rsocket
