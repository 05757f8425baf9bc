#ifndef SIM_DATAGRAM_QUEUE_PAIR_H_
#define SIM_DATAGRAM_QUEUE_PAIR_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/queues/adapter.h"
#include "sim/queues/any_queue_pair.h"
#include "sim/queues/completion_queue.h"
#include "sim/datagram/group.h"
#include "sim/datagram/port.h"
#include "sim/datagram/ports.h"
#include "sim/datagram/send_queue.h"
#include "sim/queues/queue_pair_options.h"
#include "sim/queues/receive_queue.h"
#include "sim/queues/shared_receive_queue.h"

namespace weft::sim {

struct DatagramOptions {
  QueuePairOptions common;
  uint32_t max_payload = 1024;  // bytes: the port's active MTU, at most kMaxDatagram
};

// An unreliable datagram queue pair (ibv_qp of type UD). Each message is one UDP datagram. It is sent from the thread
// that posts it, and complete when the kernel has it. Messages are lost if the network or the kernel drops them, if no
// receive is posted or the receive is too short, or if the Q_Key is not that of the queue pair. Thread safe.
//
// Locks, outermost first: the port's (while it hands out datagrams), mutex_, send_mutex_, the completion queue's.
class DatagramQueuePair final : public AnyQueuePair,
                                public DatagramReceiver,
                                public std::enable_shared_from_this<DatagramQueuePair> {
 public:
  // `place`: one of `ports`. Both outlive the queue pair, as does the adapter.
  DatagramQueuePair(Adapter& adapter, DatagramPorts& ports, DatagramPorts::Place place, DatagramOptions options);
  ~DatagramQueuePair() override;

  ibv_qp_type type() const override { return IBV_QPT_UD; }
  uint32_t number() const override { return number_; }
  const ibv_qp_cap& capabilities() const override { return options_.capabilities; }
  ibv_qp_state state() const { return state_.load(std::memory_order_acquire); }

  // EINVAL: see DatagramSendQueue::Stage, or a state before RTS.
  int PostSend(ibv_send_wr* list, ibv_send_wr** bad, bool all_or_nothing) override;
  int PostReceive(ibv_recv_wr* list, ibv_recv_wr** bad) override;
  int Modify(const ibv_qp_attr& attributes, int mask) override;
  void Query(ibv_qp_attr* attributes, ibv_qp_init_attr* init) override;
  void Destroy() override;

  // ibv_attach_mcast, ibv_detach_mcast. `interface`: see transport::DatagramOptions. Errors: see DatagramGroups.
  int AttachGroup(const transport::SocketAddress& group, uint32_t interface);
  int DetachGroup(const transport::SocketAddress& group, uint32_t interface);
  bool attached() const { return has_groups_.load(std::memory_order_relaxed); }  // to any group

  void DriveInline(bool spinning) override;
  void FlushDeferred() override {}  // nothing is deferred
  transport::Network& network() const override;
  std::shared_ptr<llp::LentMemory> ForgetRegion(const RegionInfo& gone) override;
  QueuePairSnapshot Snapshot() override;
  void FailFatally(const std::string& device) override;

  // DatagramReceiver
  void OnDatagram(const ReceivedDatagram& datagram) override;
  void OnWritable() override;

 private:
  struct Membership {
    transport::SocketAddress address;
    uint32_t interface;
    std::shared_ptr<DatagramGroup> group;
  };

  void Tell(ibv_event_type event);  // called without locks, except for the port's
  // These require both locks.
  void Reset();
  // These require mutex_.
  //
  // Moves the oldest receive of the shared queue to `receives_`. Returns false if there is none.
  bool TakeShared();
  const Pd& receive_pd() const { return options_.shared_receives ? options_.shared_receives->pd() : *options_.pd; }
  bool FillReceive(const ReceivedDatagram& datagram);
  void CompleteReceive(ibv_wc& completion, bool solicited);
  void FlushReceives();
  // These require send_mutex_.
  void Transmit();
  // Failures injected by faults: a status to complete with, or a loss.
  ibv_wc_status InjectSendStatus(const DatagramSend& entry);
  ibv_wc_status InjectReceiveStatus(const ReceivedDatagram& datagram);
  bool InjectNotReady(const ReceivedDatagram& datagram);
  bool PortIsDown() const;
  void FailSends(ibv_wc_status status);
  // Called without locks, except for the port's: a completion queue that overran ends the queue pair.
  void CheckOverrun();
  void SkipTooLong();  // the oldest one
  size_t Gather(uint64_t first, size_t most);  // returns how many are ready to be sent
  bool Resolve(uint64_t count, size_t slot);
  void CompleteSend(ibv_wc_status status);
  void FlushSends();
  void Push(CompletionQueue& cq, const ibv_wc& completion, bool solicited);

  Adapter& adapter_;
  DatagramPorts& ports_;
  const std::shared_ptr<DatagramPort> port_;
  const uint32_t number_;
  const MemoryUser memory_user_ = MemoryUser::QueuePair(number_, kNoWindowOwner);
  const uint32_t max_payload_;
  QueuePairOptions options_;
  // Written with both locks held, except for RTS to SQE (send_mutex_). Read without: pairs with the post mutex of the
  // receives, like QueuePair::state_.
  std::atomic<ibv_qp_state> state_{IBV_QPS_RESET};

  std::mutex mutex_;  // guards the members below, and the consumer's side of receives_
  ReceiveQueue receives_;  // with a shared queue: receives taken from it
  ibv_qp_attr attributes_{};
  bool failed_ = false;  // the memory of a receive is invalid
  uint64_t failed_receives_ = 0;  // receives completed with an error

  std::mutex send_mutex_;  // guards the members below
  DatagramSendQueue sends_;
  uint32_t own_qkey_ = 0;  // attributes_.qkey
  std::atomic<bool> awaiting_writable_{false};  // written under send_mutex_
  bool drop_reported_ = false, too_long_reported_ = false;
  uint64_t failed_sends_ = 0;
  uint64_t asked_ = 0;  // 1 + the count of the last request for which faults were checked
  std::atomic<bool> overrun_{false};  // a completion was lost
  struct Outgoing;
  std::unique_ptr<Outgoing> outgoing_;

  QueuePairCounters counters_;  // bytes of payload; those of sends under send_mutex_, those of receives under mutex_

  std::mutex groups_mutex_;  // guards groups_
  std::vector<Membership> groups_;
  std::atomic<bool> has_groups_{false};
};

}  // namespace weft::sim

#endif  // SIM_DATAGRAM_QUEUE_PAIR_H_
