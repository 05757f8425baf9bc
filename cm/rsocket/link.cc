#include "cm/rsocket/link.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

#include "cm/rsocket/limits.h"

namespace weft::rsocket {

uint32_t ReservedReceives(uint32_t receive_queue) { return std::min<uint32_t>(8, receive_queue / 4); }

std::unique_ptr<Link> Link::Create(rdma_cm_id* id, LinkSizes* sizes) {
  std::unique_ptr<Link> link(new Link(id));
  if (link->Make(sizes)) return link;
  const int error = errno;
  link.reset();
  errno = error;
  return nullptr;
}

Link::~Link() {
  if (id_->qp != nullptr) rdma_destroy_qp(id_);
  if (cq_ != nullptr) ibv_destroy_cq(cq_);
  if (channel_ != nullptr) ibv_destroy_comp_channel(channel_);
  for (Region* region : {&send_, &receive_, &lists_, &messages_}) {
    if (region->region != nullptr) ibv_dereg_mr(region->region);
  }
}

bool Link::Register(Region* region, size_t length, int access) {
  region->memory.reset(new (std::nothrow) uint8_t[length]);
  if (region->memory == nullptr) {
    errno = ENOMEM;
    return false;
  }
  region->region = ibv_reg_mr(id_->pd, region->memory.get(), length, access);
  return region->region != nullptr;
}

bool Link::Make(LinkSizes* sizes) {
  ibv_device_attr device{};
  if (const int error = ibv_query_device(id_->verbs, &device); error != 0) {
    errno = error;
    return false;
  }
  const auto most_queue = std::min<uint32_t>(kMostQueue, static_cast<uint32_t>(device.max_qp_wr));
  sizes->send_queue = std::clamp(sizes->send_queue, kLeastQueue, most_queue);
  sizes->receive_queue = std::clamp(sizes->receive_queue, kLeastQueue, most_queue);
  sizes->receive_bytes = std::clamp(sizes->receive_bytes, kLeastBuffer, kMostBuffer) & ~7u;
  sizes->send_bytes = std::clamp(sizes->send_bytes, kLeastBuffer, kMostBuffer);
  sizes->map_entries = ScaledMapEntries(sizes->map_entries);

  channel_ = ibv_create_comp_channel(id_->verbs);
  if (channel_ == nullptr) return false;
  if (fcntl(channel_->fd, F_SETFL, O_NONBLOCK) != 0) return false;
  const int entries = static_cast<int>(sizes->send_queue + sizes->receive_queue);
  cq_ = ibv_create_cq(id_->verbs, entries, this, channel_, 0);
  if (cq_ == nullptr) return false;

  ibv_qp_init_attr attributes{};
  attributes.send_cq = cq_;
  attributes.recv_cq = cq_;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap.max_send_wr = sizes->send_queue;
  attributes.cap.max_recv_wr = sizes->receive_queue;
  attributes.cap.max_send_sge = 2;
  attributes.cap.max_recv_sge = 1;
  attributes.cap.max_inline_data = std::clamp(sizes->inline_bytes, kLeastInline, kMostInline);
  if (rdma_create_qp(id_, nullptr, &attributes) != 0) return false;

  const size_t lists = kTargetListSize * sizeof(Target) + sizes->map_entries * sizeof(IoMapEntry);
  constexpr int kWritten = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  if (!Register(&send_, sizes->send_bytes, IBV_ACCESS_LOCAL_WRITE) || !Register(&receive_, sizes->receive_bytes, kWritten) ||
      !Register(&lists_, lists, kWritten) ||
      !Register(&messages_, sizes->receive_queue * Message::kSize, IBV_ACCESS_LOCAL_WRITE)) {
    return false;
  }
  std::memset(lists_.memory.get(), 0, lists);
  sizes_ = *sizes;
  for (uint32_t slot = 0; slot < sizes->receive_queue; ++slot) {
    if (const int error = PostReceive(slot); error != 0) {
      errno = error;
      return false;
    }
  }
  return true;
}

ConnectData Link::Describe() const {
  ConnectData data;
  data.big_endian = std::endian::native == std::endian::big;
  data.credits = static_cast<uint16_t>(sizes_.receive_queue - ReservedReceives(sizes_.receive_queue));
  data.map_entries = static_cast<uint16_t>(sizes_.map_entries);
  data.target_list = {reinterpret_cast<uintptr_t>(lists_.memory.get()), lists_.region->rkey, kTargetListSize};
  data.buffer = {reinterpret_cast<uintptr_t>(receive_.memory.get()), receive_.region->rkey, sizes_.receive_bytes / 2};
  return data;
}

int Link::PostWrite(std::span<ibv_sge> pieces, bool is_inline, uint64_t to, uint32_t key, const uint32_t* message,
                    uint64_t id) {
  ibv_sge text{reinterpret_cast<uintptr_t>(message), Message::kSize, 0};
  ibv_send_wr announce{};
  announce.wr_id = id;
  announce.opcode = IBV_WR_SEND;
  announce.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
  announce.sg_list = &text;
  announce.num_sge = 1;
  ibv_send_wr write{};
  write.wr_id = id;
  write.opcode = IBV_WR_RDMA_WRITE;
  write.send_flags = is_inline ? IBV_SEND_INLINE : 0;
  write.sg_list = pieces.data();
  write.num_sge = static_cast<int>(pieces.size());
  write.wr.rdma.remote_addr = to;
  write.wr.rdma.rkey = key;
  if (message != nullptr) {
    write.next = &announce;
  } else {
    write.send_flags |= IBV_SEND_SIGNALED;
  }
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(id_->qp, &write, &bad);
}

int Link::PostMessage(uint32_t message, uint64_t id) {
  ibv_sge text{reinterpret_cast<uintptr_t>(&message), Message::kSize, 0};
  ibv_send_wr send{};
  send.wr_id = id;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
  send.sg_list = &text;
  send.num_sge = 1;
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(id_->qp, &send, &bad);
}

// ThreadSanitizer sees the adapter's writes as another thread's.
__attribute__((no_sanitize("thread"))) Target Link::TakeTarget(uint32_t index) {
  volatile Target& entry = reinterpret_cast<volatile Target*>(lists_.memory.get())[index];
  Target taken;
  // First: on x86-64 it is written last. Where it is not (arm64), the key comes with it, in one aligned word, and an address that is not there yet is 0.
  taken.length = entry.length;
  std::atomic_thread_fence(std::memory_order_acquire);
  taken.key = entry.key;
  taken.address = entry.address;
  if (taken.length == 0 || taken.address == 0) return {};
  entry.address = 0;
  entry.key = 0;
  entry.length = 0;
  return taken;
}

__attribute__((no_sanitize("thread"))) IoMapEntry Link::MapEntry(uint32_t index) const {
  const auto* map = reinterpret_cast<const volatile IoMapEntry*>(lists_.memory.get() + kTargetListSize * sizeof(Target));
  const volatile IoMapEntry& entry = map[index];
  return {entry.offset, {entry.target.address, entry.target.key, entry.target.length}};
}

uint32_t Link::MessageIn(uint32_t slot) const {
  uint32_t raw;
  std::memcpy(&raw, messages_.memory.get() + size_t{slot} * Message::kSize, sizeof raw);
  return raw;
}

int Link::PostReceive(uint32_t slot) {
  ibv_sge into{reinterpret_cast<uintptr_t>(messages_.memory.get() + size_t{slot} * Message::kSize), Message::kSize,
               messages_.region->lkey};
  ibv_recv_wr receive{};
  receive.wr_id = kReceiveId | slot;
  receive.sg_list = &into;
  receive.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(id_->qp, &receive, &bad);
}

}  // namespace weft::rsocket
