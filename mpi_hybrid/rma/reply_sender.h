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

// What a target's service sends: replies, and Writes with the data of Gets. A connection to which something cannot be sent is dropped. Guarded by the
// service's mutex.
class ReplySender {
 public:
  // Bytes that go inline, if the RNIC has room for them.
  static constexpr uint32_t kInline = 64;
  // An origin has one Get in flight that is answered by a Write; two more may be done whose completion was not seen here.
  static constexpr uint32_t kMostWriting = 3;
  // Of the replies that are inline one in so many tells when it was delivered, for its and earlier ones' room. The peer
  // need not acknowledge the others. The rest tell each, and their buffer is free again.
  static constexpr uint32_t kUnsignaled = 8;
  static constexpr uint32_t kDepth = kSlots + kUnsignaled + kMostWriting;  // of a connection's send queue

  explicit ReplySender(IncomingTable& connections);
  // `sent`: the completion queue of all connections' send queues. Both are the caller's, and stay as long as this object is used. False: there is no memory
  // for a reply.
  bool Start(ibv_cq* sent, BufferPool& buffers);

  // Makes sure that there is a buffer for the next reply.
  bool HasBuffer();
  // Of that: room for DataRoom(1) bytes behind the reply's header.
  uint8_t* data() { return next_.bytes + kReplyBytes; }
  // With `data_bytes` bytes that the caller wrote to data(). `behind_write`: of WriteData. `of_fence`: it is the reply to the fence that came with the Get, too.
  void Send(Incoming& incoming, uint16_t slot, ReplyStatus status, size_t data_bytes, bool behind_write = false, bool of_fence = false);
  // A Write to the origin's memory, which goes out with the reply that the caller sends next, and behind which that is. False: too many are in flight.
  bool WriteData(Incoming& incoming, const uint8_t* from, uint32_t bytes, uint32_t key, uint64_t to, uint32_t to_key);

  // While messages are dealt with, one system call sends all that goes to one connection.
  void Gather(bool gathers) { gathers_ = gathers; }
  void Post();

  // Takes note of what was delivered.
  void Forget();
  // Whether the RNIC has not taken all data of Writes yet. True: the completion queue tells when to look again.
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
  ibv_cq* sent_ = nullptr;  // looked at when room is needed
  BufferPool* buffers_ = nullptr;
  BufferPool::Buffer next_;
  std::unique_ptr<Waiting[]> waiting_;
  uint32_t waiting_count_ = 0;
  uint32_t waiting_for_ = 0;  // index of the connection
  bool gathers_ = false;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_REPLY_SENDER_H_
