#ifndef CM_RSOCKET_LINK_H_
#define CM_RSOCKET_LINK_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <span>

#include "cm/rsocket/wire.h"

namespace weft::rsocket {

// What an rsocket's options ask for (setsockopt before it connects); Link::Create makes it what it can be.
struct LinkSizes {
  uint32_t send_bytes = 0;
  uint32_t receive_bytes = 0;
  uint32_t send_queue = 0;
  uint32_t receive_queue = 0;
  uint32_t inline_bytes = 0;
  uint32_t map_entries = 0;
};

// The verbs objects of one connection: queue pair, completion queue with its channel, buffers and their regions. Not thread safe, but
// posting is.
class Link {
 public:
  // `id` is bound to a device, and outlives it. The receives that messages of the peer need are posted. nullptr and errno.
  // `sizes`: what was granted.
  static std::unique_ptr<Link> Create(rdma_cm_id* id, LinkSizes* sizes);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // What to tell the peer.
  ConnectData Describe() const;

  ibv_cq* cq() const { return cq_; }
  ibv_comp_channel* channel() const { return channel_; }
  ibv_pd* pd() const { return id_->pd; }
  uint8_t* send_buffer() const { return send_.memory.get(); }
  uint8_t* receive_buffer() const { return receive_.memory.get(); }
  uint32_t receive_key() const { return receive_.region->rkey; }
  uint32_t send_key() const { return send_.region->lkey; }
  // Of the lists that the peer writes at any time, also while they are read: what comes is checked, and announced by a message once it
  // is whole. In the peer's byte order. TakeTarget: an entry of the target list, which is empty afterwards; length 0: none, or not
  // whole yet.
  Target TakeTarget(uint32_t index);
  IoMapEntry MapEntry(uint32_t index) const;

  // A Write from `pieces` to `to` without a completion of its own, and with `message` a Send of it behind it. One completion, with
  // `id`. 0 or the errno of ibv_post_send.
  int PostWrite(std::span<ibv_sge> pieces, bool is_inline, uint64_t to, uint32_t key, const uint32_t* message, uint64_t id);
  int PostMessage(uint32_t message, uint64_t id);

  // Receive completions carry kReceiveId | slot.
  static constexpr uint64_t kReceiveId = uint64_t{1} << 63;
  uint32_t MessageIn(uint32_t slot) const;
  int PostReceive(uint32_t slot);

 private:
  struct Region {
    std::unique_ptr<uint8_t[]> memory;
    ibv_mr* region = nullptr;
  };

  explicit Link(rdma_cm_id* id) : id_(id) {}
  bool Make(LinkSizes* sizes);
  bool Register(Region* region, size_t length, int access);

  rdma_cm_id* const id_;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  Region send_, receive_, lists_, messages_;
  LinkSizes sizes_;
};

// Messages of the peer for which there is always a receive although it has no credit for them: control messages.
uint32_t ReservedReceives(uint32_t receive_queue);

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_LINK_H_
