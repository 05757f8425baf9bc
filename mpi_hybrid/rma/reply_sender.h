#ifndef MPI_HYBRID_RMA_REPLY_SENDER_H_
#define MPI_HYBRID_RMA_REPLY_SENDER_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "mpi_hybrid/rma/incoming.h"
#include "mpi_hybrid/rma/registration.h"
#include "mpi_hybrid/rma/wire.h"

namespace weft::mpi::rma {

// Sends for a target's service: replies, and Writes with the data of Gets. If a send fails, the connection is dropped.
// Guarded by the service's mutex.
class ReplySender {
 public:
  // Longest inline send, in bytes, if the RNIC supports it.
  static constexpr uint32_t kInline = 64;
  // An origin has one Get in flight that is answered by a Write. Two more may be finished without their completion
  // having been seen here.
  static constexpr uint32_t kMostWriting = 3;
  // Every kUnsignaled-th inline reply is signaled; its completion frees the space of itself and of the replies before
  // it. The peer need not acknowledge the others. Replies that are not inline are all signaled, and their completion
  // frees the buffer.
  static constexpr uint32_t kUnsignaled = 8;
  static constexpr uint32_t kDepth = kSlots + kUnsignaled + kMostWriting;  // of a connection's send queue

  explicit ReplySender(IncomingTable& connections);
  // `sent`: the completion queue of all connections' send queues. The caller owns both arguments, which must outlive
  // the use of this object. False: there is no memory for a reply.
  bool Start(ibv_cq* sent, BufferPool& buffers);

  // Makes sure that there is a buffer for the next reply. False: there is none.
  bool HasBuffer();
  // The data of that buffer: space for DataRoom(1) bytes behind the reply's header.
  uint8_t* data() { return next_.bytes + kReplyBytes; }
  // Sends the reply with `data_bytes` bytes that the caller has written to data(). `behind_write`: it follows the Write
  // of WriteData. `of_fence`: it is also the reply to the fence that came with the Get.
  void Send(Incoming& incoming, uint16_t slot, ReplyStatus status, size_t data_bytes, bool behind_write = false, bool of_fence = false);
  // Adds a Write to the origin's memory. It is sent together with the reply that the caller sends next, and that reply
  // follows it. False: too many Writes are in flight.
  bool WriteData(Incoming& incoming, const uint8_t* from, uint32_t bytes, uint32_t key, uint64_t to, uint32_t to_key);

  // While messages are handled, all sends to one connection are collected for one system call.
  void Gather(bool gathers) { gathers_ = gathers; }
  void Post();

  // Processes completions: frees the buffers of delivered replies.
  void Forget();
  // Whether the RNIC still has to place data of Writes. True: a completion tells when to check again.
  bool StillWriting(const Incoming& incoming);

 private:
  struct Waiting {
    ibv_send_wr request;
    ibv_sge piece;
    uint8_t bytes[kInline];
  };
  static constexpr uint32_t kMostWaiting = 16;

  ibv_send_wr& AddWaiting(Incoming& incoming);

  IncomingTable& connections_;
  ibv_cq* sent_ = nullptr;  // polled when space is needed
  BufferPool* buffers_ = nullptr;
  BufferPool::Buffer next_;
  std::unique_ptr<Waiting[]> waiting_;
  uint32_t waiting_count_ = 0;
  uint32_t waiting_for_ = 0;  // index of the connection
  bool gathers_ = false;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_REPLY_SENDER_H_
