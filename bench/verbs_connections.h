#ifndef BENCH_VERBS_CONNECTIONS_H_
#define BENCH_VERBS_CONNECTIONS_H_

#include <cstdint>
#include <vector>

#include "bench/job.h"
#include "bench/verbs_resources.h"

namespace weft::bench {

// The memory that a peer opens for RDMA operations. Sent in the connection manager's private data; both ends are the
// same binary on one host.
struct RemoteBuffer {
  uint64_t address = 0;
  uint32_t key = 0;
  uint32_t reserved = 0;
};

// A QP, and the memory that its peer opens.
struct Connection {
  OwnedId id;
  RemoteBuffer remote;
};

// Connected RC QPs that share one PD, one CQ for sends, one for receives and one registered buffer: a send area, then a
// receive area of the same size. Every receive queue is kept full of receives that point to the receive area. Functions
// throw Failure.
class VerbsConnections {
 public:
  explicit VerbsConnections(const Shape& shape) : shape_(shape) {}
  ~VerbsConnections();

  uint16_t Listen();
  void Accept();
  // At most `at_once` connections are set up at a time; 0: all of them.
  void Connect(uint16_t port, int64_t at_once = 0);

  const Shape& shape() const { return shape_; }
  Connection& first();
  const std::vector<Connection>& all() const { return connections_; }
  ibv_cq* send_cq() const { return send_cq_.get(); }
  ibv_cq* receive_cq() const { return receive_cq_.get(); }
  uint32_t max_inline() const { return max_inline_; }
  uint8_t* send_area() { return buffer_.data(); }
  uint8_t* receive_area() { return buffer_.data() + shape_.buffer; }
  uint32_t local_key() const { return mr_->lkey; }

  void PostReceive(ibv_qp* qp);

 private:
  void OpenEventChannel();
  // Creates what all QPs share, on the device of the first connection.
  void OpenDevice(ibv_context* device);
  OwnedCq MakeCq(ibv_context* device, OwnedChannel* channel, int64_t depth);
  // Gives `id` a QP with a full receive queue.
  void MakeQp(rdma_cm_id* id);
  RemoteBuffer Exposed();
  void StartConnecting();
  rdma_conn_param Parameters(const RemoteBuffer* exposed) const;
  void OnConnectRequest(const rdma_cm_event& event);
  void OnEstablished(const rdma_cm_event& event);
  // Handles events until `shape_.connections` are established.
  void HandleEvents();

  const Shape shape_;
  uint16_t port_ = 0;
  int64_t established_ = 0;
  uint32_t max_inline_ = 0;
  std::vector<uint8_t> buffer_;
  // Destroyed in reverse order.
  OwnedEventChannel events_;
  OwnedPd pd_;
  OwnedMr mr_;
  OwnedChannel send_channel_, receive_channel_;
  OwnedCq send_cq_, receive_cq_;
  OwnedId listener_;
  std::vector<Connection> connections_;
};

}  // namespace weft::bench

#endif  // BENCH_VERBS_CONNECTIONS_H_
