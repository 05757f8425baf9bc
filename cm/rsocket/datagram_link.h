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

// The verbs objects of a datagram rsocket on one device: a queue pair, a completion queue with its channel, and a slot
// for each datagram that is being sent or received. Not thread safe.
class DatagramLink {
 public:
  // `device` outlives the link, as rdma_cm's devices do. `sizes`: bytes and work requests. nullptr and errno.
  static std::unique_ptr<DatagramLink> Create(ibv_context* device, const LinkSizes& sizes);
  ~DatagramLink();
  DatagramLink(const DatagramLink&) = delete;
  DatagramLink& operator=(const DatagramLink&) = delete;

  uint32_t number() const { return qp_->qp_num; }
  ibv_context* verbs() const { return device_; }
  ibv_comp_channel* channel() const { return channel_; }
  uint32_t most_bytes() const { return most_bytes_; }  // of one datagram, its header included
  bool can_send() const { return !free_.empty(); }

  // An address handle for the destination of `resolved`. Call ibv_destroy_ah() before the link goes. nullptr and errno.
  ibv_ah* MakeAddress(const rdma_cm_id* resolved) const;
  // Sends `header`, then `length` bytes of `from`. Call only if can_send(). Returns 0 or the errno of ibv_post_send.
  int Send(ibv_ah* to, uint32_t queue_pair, Bytes header, VectorCursor& from, size_t length);

  // Returns whether there is a datagram. The program has it until Release(slot). `sender`: the sender's queue pair.
  struct Incoming {
    uint32_t slot = 0, sender = 0;
    Bytes bytes;
  };
  bool Take(Incoming* incoming);
  void Release(uint32_t slot);

  void Arm();
  // Returns whether there was an event; the completion queue must then be armed again.
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
  std::unique_ptr<uint8_t[]> memory_;  // slots for sending, then slots for receiving
  ibv_mr* region_ = nullptr;
  uint32_t most_bytes_ = 0;
  uint32_t send_slots_ = 0, receive_slots_ = 0;
  uint32_t inline_bytes_ = 0;
  std::vector<uint32_t> free_;  // slots for sending
  bool armed_ = false;
};

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_DATAGRAM_LINK_H_
