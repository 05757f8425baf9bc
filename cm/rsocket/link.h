#ifndef CM_RSOCKET_LINK_H_
#define CM_RSOCKET_LINK_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <span>

#include "cm/rsocket/wire.h"

namespace weft::rsocket {

// The sizes that an rsocket's options ask for (setsockopt before it connects). Link::Create reduces them to what is
// possible.
struct LinkSizes {
  uint32_t send_bytes = 0;
  uint32_t receive_bytes = 0;
  uint32_t send_queue = 0;
  uint32_t receive_queue = 0;
  uint32_t inline_bytes = 0;
  uint32_t map_entries = 0;
};

// The verbs objects of one connection: a queue pair, a completion queue with its channel, buffers and their regions.
// Not thread safe, except for posting.
class Link {
 public:
  // `id` is bound to a device and outlives the link. Posts the receives that messages of the peer need. Sets `sizes` to
  // what was granted. nullptr and errno.
  static std::unique_ptr<Link> Create(rdma_cm_id* id, LinkSizes* sizes);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // The data for the peer.
  ConnectData Describe() const;

  ibv_cq* cq() const { return cq_; }
  ibv_comp_channel* channel() const { return channel_; }
  ibv_pd* pd() const { return id_->pd; }
  uint8_t* send_buffer() const { return send_.memory.get(); }
  uint8_t* receive_buffer() const { return receive_.memory.get(); }
  uint32_t receive_key() const { return receive_.region->rkey; }
  uint32_t send_key() const { return send_.region->lkey; }
  // These read lists that the peer may write at any time, also while they are read. Entries are checked; a message
  // announces each complete entry. They are in the peer's byte order. TakeTarget returns an entry of the target list
  // and clears it; length 0: there is none, or it is not complete yet.
  Target TakeTarget(uint32_t index);
  IoMapEntry MapEntry(uint32_t index) const;

  // Posts a Write from `pieces` to `to` without its own completion. With `message`, posts a Send of it behind the
  // Write. There is one completion, with `id`. Returns 0 or the errno of ibv_post_send.
  int PostWrite(std::span<ibv_sge> pieces, bool is_inline, uint64_t to, uint32_t key, const uint32_t* message, uint64_t id);
  int PostMessage(uint32_t message, uint64_t id);

  // Completions of receives have the ID kReceiveId | slot.
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

// Number of receives kept for control messages of the peer, which need no credit.
uint32_t ReservedReceives(uint32_t receive_queue);

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_LINK_H_
