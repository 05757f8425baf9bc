// What happens on a connection: completions, messages of the peer, buffers that go back to it.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "cm/rsocket/stream.h"

namespace weft::rsocket {
namespace {

constexpr int kBatch = 16;

// How far `ahead` is ahead of `of`, both modulo 2^16.
int16_t Ahead(uint16_t ahead, uint16_t of) { return static_cast<int16_t>(static_cast<uint16_t>(ahead - of)); }

}  // namespace

void Stream::Drive() {
  bool moved = false;
  if (opening() || state_ == State::kListening) moved = TakeCmEvents();
  // While rconnect waits for the answer, messages behind it wait as well: it says how to read them.
  if (state_ == State::kAccepting || state_ == State::kConnected) {
    sends_undriven_ = 0;
    ibv_wc completions[kBatch];
    int count;
    do {
      count = ibv_poll_cq(link_->cq(), kBatch, completions);
      for (int i = 0; i < count; ++i) OnCompletion(completions[i]);
      moved = moved || count > 0;
    } while (count == kBatch);
    GiveCredits();
  }
  if (moved && !waiters_.empty()) waiters_.WakeAll(&Waiter::Mine());
}

void Stream::OnCompletion(const ibv_wc& completion) {
  const bool is_receive = (completion.wr_id & Link::kReceiveId) != 0;
  if (!is_receive) {
    slots_free_ += static_cast<uint32_t>(completion.wr_id >> 32);
    send_ring_->GiveBack(static_cast<uint32_t>(completion.wr_id));
  }
  if (completion.status != IBV_WC_SUCCESS) {
    OnLost(ECONNRESET);
    return;
  }
  if (!is_receive) return;
  const auto slot = static_cast<uint32_t>(completion.wr_id);
  std::optional<uint32_t> raw;
  if ((completion.wc_flags & IBV_WC_WITH_IMM) != 0) {
    raw = __builtin_bswap32(completion.imm_data);
  } else if (completion.byte_len == Message::kSize) {
    raw = Swapped(link_->MessageIn(slot), swap_);
  }
  if (lost_) return;
  if (!raw || !OnMessage(Message::Parse(*raw))) {
    LogWarning(Format("rsocket %d: the peer broke the rsocket protocol (message %#x); the connection is closed", fd(),
                      raw.value_or(0)));
    OnLost(EPROTO);
    return;
  }
  if (const int error = link_->PostReceive(slot); error != 0) OnLost(ECONNRESET);
}

bool Stream::OnMessage(Message message) {
  switch (message.type) {
    case MessageType::kData:
      return !peer_done_ && receive_ring_->OnMessage(message.value);
    case MessageType::kCredits:
      credit_limit_ = static_cast<uint16_t>(message.value);
      TakeTargets();
      return true;
    case MessageType::kMap:
      ++map_credits_;
      return message.value < sizes_.map_entries;
    case MessageType::kControl:
      switch (static_cast<Control>(message.value)) {
        case Control::kDisconnect:
          peer_done_ = peer_gone_ = true;
          return true;
        case Control::kShutdown:
          peer_done_ = true;
          return true;
        case Control::kKeepAlive:
          return true;
      }
      return true;  // of a later version
    case MessageType::kWrite:
    default:
      return false;
  }
}

// The peer writes an entry before it sends the message, and not again until we have used it up.
void Stream::TakeTargets() {
  for (;;) {
    Target& target = targets_[target_next_];
    if (target.length != 0) return;
    target = Swapped(link_->TakeTarget(target_next_), swap_);
    if (target.length == 0) return;
    target_next_ = (target_next_ + 1) % kTargetListSize;
  }
}

void Stream::GiveCredits() {
  if (state_ != State::kConnected || lost_ || said_goodbye_ || peer_gone_) return;
  while (slots_free_ >= 2) {
    const auto read = static_cast<uint16_t>(receive_ring_->read_messages() + map_credits_);
    const bool grant = receive_ring_->can_grant();
    if (!grant && Ahead(read, credits_due_at_) < 0) return;
    credits_due_at_ = static_cast<uint16_t>(read + std::max<uint16_t>(credits_ / 2, 1));
    const uint32_t text = Message{MessageType::kCredits, static_cast<uint16_t>(read + credits_)}.Serialize();
    const uint32_t slots = grant ? 2 : 1;
    slots_free_ -= slots;
    int error;
    if (grant) {
      const uint32_t offset = receive_ring_->TakeGrant();
      Target entry = Swapped(Target{reinterpret_cast<uintptr_t>(link_->receive_buffer()) + offset, link_->receive_key(),
                                    receive_ring_->half()},
                             swap_);
      ibv_sge piece{reinterpret_cast<uintptr_t>(&entry), sizeof entry, 0};
      const uint64_t to = peer_list_.address + uint64_t{peer_list_next_} * sizeof(Target);
      peer_list_next_ = (peer_list_next_ + 1) % peer_list_.length;
      error = link_->PostWrite({&piece, 1}, /*is_inline=*/true, to, peer_list_.key, &text, CompletionId(slots, 0));
    } else {
      error = link_->PostMessage(text, CompletionId(slots, 0));
    }
    if (error != 0) {
      slots_free_ += slots;
      return OnLost(ECONNRESET);
    }
  }
}

int Stream::PostControl(Control control) {
  if (control == Control::kDisconnect) said_goodbye_ = true;
  --slots_free_;
  const uint32_t text = Message{MessageType::kControl, static_cast<uint32_t>(control)}.Serialize();
  const int error = link_->PostMessage(text, CompletionId(1, 0));
  if (error != 0) {
    ++slots_free_;
    OnLost(ECONNRESET);
  }
  return error;
}

void Stream::OnLost(int error) {
  if (state_ == State::kAccepting) state_ = State::kConnected;
  if (std::exchange(lost_, true)) return;
  // The end of a connection that was over for both is no error.
  if (!peer_gone_ && !said_goodbye_) error_ = error;
  if (error == EPROTO) rdma_disconnect(id_);
  waiters_.WakeAll();
}

bool Stream::CanSend() const {
  return slots_free_ >= 2 + kControlSlots && send_ring_->free() >= kLowWater &&
         Ahead(credit_limit_, sent_messages_) > peer_reserve_ && targets_[target_].length != 0;
}

int Stream::WhyNotWritable() const {
  if (closing_) return EBADF;
  if (state_ != State::kConnected) return opening() ? 0 : ENOTCONN;
  if (write_shut_ || said_goodbye_) return EPIPE;
  if (error_ != 0) return error_;
  return lost_ || peer_gone_ ? ECONNRESET : 0;
}

}  // namespace weft::rsocket
