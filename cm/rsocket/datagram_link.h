#ifndef CM_RSOCKET_DATAGRAM_LINK_H_
#define CM_RSOCKET_DATAGRAM_LINK_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "cm/rsocket/datagram_wire.h"
#include "cm/rsocket/link.h"
#include "cm/rsocket/vector_cursor.h"

namespace weft::rsocket {

// The verbs objects of a datagram rsocket on one device: queue pair, completion queue with its channel, a place for each datagram
// that comes or goes. Not thread safe.
class DatagramLink {
 public:
  // `device` outlives it, as rdma_cm's do. `sizes`: bytes and work requests. nullptr and errno.
  static std::unique_ptr<DatagramLink> Create(ibv_context* device, const LinkSizes& sizes);
  ~DatagramLink();
  DatagramLink(const DatagramLink&) = delete;
  DatagramLink& operator=(const DatagramLink&) = delete;

  uint32_t number() const { return qp_->qp_num; }
  ibv_context* verbs() const { return device_; }
  ibv_comp_channel* channel() const { return channel_; }
  uint32_t most_bytes() const { return most_bytes_; }  // of one datagram, its header included
  bool can_send() const { return !free_.empty(); }

  // To where `resolved` goes; ibv_destroy_ah() it before the link. nullptr and errno.
  ibv_ah* MakeAddress(const rdma_cm_id* resolved) const;
  // `header`, then `length` bytes of `from`; can_send(). 0 or the errno of ibv_post_send.
  int Send(ibv_ah* to, uint32_t queue_pair, Bytes header, VectorCursor& from, size_t length);

  // Whether there is a datagram, which is with the program until Release(slot); `sender`: its queue pair.
  struct Incoming {
    uint32_t slot = 0, sender = 0;
    Bytes bytes;
  };
  bool Take(Incoming* incoming);
  void Release(uint32_t slot);

  void Arm();
  // Whether there was an event; the queue is to be armed again then.
  bool TakeEvents();

 private:
  explicit DatagramLink(ibv_context* device) : device_(device) {}
  bool Make(const LinkSizes& sizes);
  bool Activate();
  uint8_t* SendPlace(uint64_t slot) { return memory_.get() + slot * most_bytes_; }
  uint8_t* ReceivePlace(uint64_t slot);

  ibv_context* const device_;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  std::unique_ptr<uint8_t[]> memory_;  // places of what goes, then of what comes
  ibv_mr* region_ = nullptr;
  uint32_t most_bytes_ = 0;
  uint32_t send_slots_ = 0, receive_slots_ = 0;
  uint32_t inline_bytes_ = 0;
  std::vector<uint32_t> free_;  // places of what goes
  bool armed_ = false;
};

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_DATAGRAM_LINK_H_
