#include "mpi_hybrid/rma/reply_sender.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

namespace weft::mpi::rma {
namespace {

// The lower half of a send's wr_id: the reply's buffer, or kNoBuffer, and whether it is behind a Write.
constexpr uint32_t kBehindWrite = 1u << 31, kNoBuffer = kBehindWrite - 1;

}  // namespace

ReplySender::ReplySender(IncomingTable& connections) : connections_(connections) {}

bool ReplySender::Start(ibv_cq* sent, BufferPool& buffers) {
  sent_ = sent;
  buffers_ = &buffers;
  waiting_ = std::make_unique<Waiting[]>(kMostWaiting);
  return HasBuffer();
}

void ReplySender::Forget() {
  if (sent_ == nullptr) return;
  constexpr int kBatch = 64;
  ibv_wc completions[kBatch];
  int count;
  do {
    count = ibv_poll_cq(sent_, kBatch, completions);
    for (int i = 0; i < count; ++i) {
      const auto which = static_cast<uint32_t>(completions[i].wr_id);
      const uint32_t buffer = which & ~kBehindWrite;
      Incoming* incoming = connections_.Find(static_cast<uint32_t>(completions[i].wr_id >> 32));
      if (incoming == nullptr) continue;
      if ((which & kBehindWrite) != 0) --incoming->writing;
      if (buffer == kNoBuffer || std::erase(incoming->sending, buffer) == 0) continue;
      buffers_->Give(buffers_->at(buffer));
    }
  } while (count == kBatch);
}

bool ReplySender::HasBuffer() {
  if (next_.bytes != nullptr) return true;
  next_ = buffers_->Take();
  if (next_.bytes == nullptr) {
    Forget();
    next_ = buffers_->Take();
  }
  return next_.bytes != nullptr;
}

// A place for a request behind those that wait. The caller fills it, and posts it, except while requests gather.
ibv_send_wr& ReplySender::AddWaiting(Incoming& incoming) {
  if (waiting_count_ == kMostWaiting || (waiting_count_ != 0 && waiting_for_ != incoming.index)) Post();
  waiting_for_ = incoming.index;
  Waiting& waiting = waiting_[waiting_count_++];
  waiting.request = {};
  waiting.request.sg_list = &waiting.piece;
  waiting.request.num_sge = 1;
  return waiting.request;
}

void ReplySender::Post() {
  if (waiting_count_ == 0) return;
  for (uint32_t i = 0; i + 1 < waiting_count_; ++i) waiting_[i].request.next = &waiting_[i + 1].request;
  waiting_count_ = 0;
  Incoming* const incoming = connections_.Find(waiting_for_);
  if (incoming == nullptr || !incoming->bad.empty()) return;
  ibv_send_wr* bad = nullptr;
  int error = ibv_post_send(incoming->qp, &waiting_[0].request, &bad);
  if (error == ENOMEM) {  // the queue is full of replies that were delivered
    Forget();
    error = ibv_post_send(incoming->qp, bad, &bad);
  }
  if (error != 0) connections_.Drop(*incoming, std::string("a reply cannot be sent: ") + std::strerror(error));
}

void ReplySender::Send(Incoming& incoming, uint16_t slot, ReplyStatus status, size_t data_bytes, bool behind_write, bool of_fence) {
  if (!HasBuffer()) return connections_.Drop(incoming, "no memory for a reply");
  WriteReply({status, slot, incoming.consumed, static_cast<uint8_t>(incoming.room), of_fence}, {next_.bytes, kReplyBytes});
  const size_t bytes = kReplyBytes + data_bytes;
  const bool is_inline = bytes <= incoming.inline_room;
  const bool signaled = ++incoming.replies % kUnsignaled == 0 || !is_inline || behind_write;
  if (signaled) Forget();
  ibv_send_wr& request = AddWaiting(incoming);
  request.wr_id = uint64_t{incoming.index} << 32 | (is_inline ? kNoBuffer : next_.index) | (behind_write ? kBehindWrite : 0);
  *request.sg_list = {reinterpret_cast<uintptr_t>(next_.bytes), static_cast<uint32_t>(bytes), next_.key};
  request.opcode = IBV_WR_SEND;
  if (is_inline) request.send_flags |= IBV_SEND_INLINE;
  if (signaled) request.send_flags |= IBV_SEND_SIGNALED;
  if (!is_inline) {  // the connection's from now on: it gives the buffer back when it is closed, whether the reply was posted or not
    incoming.sending.push_back(next_.index);
    next_ = {};
  } else if (gathers_) {
    uint8_t* const copy = waiting_[waiting_count_ - 1].bytes;
    std::memcpy(copy, next_.bytes, bytes);
    request.sg_list->addr = reinterpret_cast<uintptr_t>(copy);
  }
  if (!gathers_) Post();
}

bool ReplySender::WriteData(Incoming& incoming, const uint8_t* from, uint32_t bytes, uint32_t key, uint64_t to, uint32_t to_key) {
  if (incoming.writing == kMostWriting) Forget();
  if (incoming.writing == kMostWriting) return false;
  ibv_send_wr& request = AddWaiting(incoming);
  request.wr_id = uint64_t{incoming.index} << 32 | kNoBuffer;
  *request.sg_list = {reinterpret_cast<uintptr_t>(from), bytes, key};
  request.opcode = IBV_WR_RDMA_WRITE;
  request.wr.rdma = {to, to_key};
  ++incoming.writing;
  return true;
}

bool ReplySender::StillWriting(const Incoming& incoming) {
  if (incoming.writing == 0) return false;
  Forget();
  if (incoming.writing == 0) return false;
  ibv_req_notify_cq(sent_, 0);
  Forget();
  return incoming.writing != 0;
}

}  // namespace weft::mpi::rma
