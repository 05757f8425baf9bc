#ifndef MPI_HYBRID_RMA_DEVICE_H_
#define MPI_HYBRID_RMA_DEVICE_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <vector>

#include "base/job_secret.h"
#include "mpi_hybrid/comm/group.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/p2p/progress.h"
#include "mpi_hybrid/rma/registration.h"
#include "mpi_hybrid/rma/wire.h"
#include "transport/socket_address.h"

namespace weft::mpi::rma {

class Link;
class Service;

// This process's RNIC: opened when the first window is made, closed by MPI_Finalize. Owns the connections to targets
// (links) and the service, which answers origins. Guarded by the library's lock, but for dead().
class Device : private ProgressStage {
 public:
  // The device, opened if need be; collective only in that all ranks of a window do it. MPI_ERR_OTHER says why there is
  // none.
  static Error Open(Device** device);
  static Device* current();
  static void Close();

  ~Device() override;

  // That opened it.
  pid_t process() const { return process_; }
  // Where this process listens: numbers of an address, to be told to the others.
  const transport::SocketAddress& address() const { return address_; }
  // Goes with it: what origins say in their proofs (wire.h).
  const Nonce& nonce() const { return nonce_; }
  // What another process said, before anything else is asked of it.
  void SetAddress(ProcessId process, const transport::SocketAddress& address, const Nonce& nonce);
  // For a request for a connection.
  Nonce NextNonce() { return CountedNonce(++requests_); }
  const Nonce& nonce_of(ProcessId process) const { return nonces_[static_cast<size_t>(process)]; }
  // Nobody has windows with `process` any more: closes what there is between the two.
  void Forget(ProcessId process);

  // The connection to `process`, made on first use; other threads come in while that is waited for. ClassOfGone (p2p/message.h): it is gone. MPI_ERR_OTHER: it cannot be
  // reached for want of room (descriptors, memory), here or there, for 30 s; a later call tries again.
  Error Find(ProcessId process, Link** link);
  // Starts a connection without waiting for it.
  Error Prepare(ProcessId process);
  Link* Existing(ProcessId process) const {
    return static_cast<size_t>(process) < links_.size() ? links_[static_cast<size_t>(process)].get() : nullptr;
  }

  // As Progress::WaitUntil, with this device polled at every round.
  template <typename Done>
  void Await(Done done) {
    if (done()) return;
    if (waiting_++ == 0) SetAttended(true);
    Progress::WaitUntil(done);
    if (--waiting_ == 0) SetAttended(false);
  }

  template <typename Done>
  void AwaitUntil(Done done, std::chrono::steady_clock::time_point deadline) {
    if (done()) return;
    if (waiting_++ == 0) SetAttended(true);
    Progress::WaitUntil(done, deadline);
    if (--waiting_ == 0) SetAttended(false);
  }

  // Known to be gone: its connection broke.
  bool dead(ProcessId process) const {
    const auto at = static_cast<size_t>(process);
    return at < dead_.size() && dead_[at].load(std::memory_order_acquire);
  }
  // With the service's mutex.
  void SetDead(ProcessId process) {
    const auto at = static_cast<size_t>(process);
    if (at < dead_.size()) dead_[at].store(true, std::memory_order_release);
  }

  Service& service() { return *service_; }
  ibv_context* context() const { return context_; }
  ibv_pd* domain() const { return domain_; }
  ibv_cq* queue() const { return queue_; }
  rdma_event_channel* events() const { return events_; }
  Registrations& registrations() { return *registrations_; }
  // Of kBounceBytes, for data that cannot be registered or is scattered.
  BufferPool& bounce() { return *bounce_; }
  static constexpr size_t kBounceBytes = 65536;
  // Of kSlotBytes, for messages to targets and their replies; shared by all links.
  BufferPool& messages() { return *messages_; }
  // Eight bytes for Reads that prove something, whatever they bring.
  uint8_t* proof() { return proof_; }
  uint32_t proof_key() const { return proof_mr_->lkey; }
  // Whether origin buffers are registered at no risk and little cost, so that even small ones are.
  bool registers_cheaply() const { return is_weft_; }
  // Whether a new connection's first message is one that is answered, and until then the only one: the target may be Linux's
  // siw driver, which does not look at what reaches it between its MPA Reply and the hand-over of the socket to the queue pair
  // before more comes (6.1: siw_accept). Weft's RNIC, as an initiator, sees to that itself.
  bool greets() const { return !is_weft_; }
  // WEFT_MPI_RMA_CONNECT=static: all connections of a window are made with it (the default, dynamic: each on first
  // use).
  bool connects_at_once() const { return connects_at_once_; }
  uint32_t max_reads() const { return max_reads_; }
  uint64_t max_message() const { return max_message_; }
  // Most bytes of an inline work request that the RNIC grants; learned from the first queue pair.
  uint32_t inline_wanted = 128;
  // Completions that will come: while there are none, progress looks seldom.
  int64_t expected = 0;

  // Takes completions of links; whether there were any.
  bool PollLinks();

 private:
  Device() = default;
  Error Start();
  Error StartOn(const transport::SocketAddress& address, rdma_cm_id** listener);
  Error Listen(rdma_cm_id** listener);
  void SetAttended(bool attended);
  Error Connect(ProcessId process);
  bool TakeEvents();
  void AwaitConnected(ProcessId process);
  void AwaitGreeted(ProcessId process);
  void GiveUp(Link& link);
  void MakeRoomFor(ProcessId process);
  Error MakeQueue(int links);
  Error MakeRoomInQueue();

  bool Poll() override;
  bool Arm() override;
  int fd() const override { return channel_ == nullptr ? -1 : channel_->fd; }
  bool Awaited() const override { return waiting_ != 0; }

  const pid_t process_ = getpid();
  transport::SocketAddress address_;
  std::vector<transport::SocketAddress> addresses_;  // by process
  const Nonce nonce_ = NewNonce();
  std::vector<Nonce> nonces_;  // by process
  uint64_t requests_ = 0;      // for connections, so far
  std::vector<std::unique_ptr<Link>> links_;  // by process
  std::deque<std::atomic<bool>> dead_;  // by process; grows with the library's lock and the service's mutex
  rdma_event_channel* events_ = nullptr;  // of links
  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* queue_ = nullptr;  // all completions of links; grows with their number where the RNIC lets it
  int most_entries_ = 0;     // of a completion queue
  int made_ = 0;             // links
  bool armed_ = false;
  bool is_weft_ = false;  // the RNIC
  bool connects_at_once_ = false;
  uint32_t max_reads_ = 1;
  uint64_t max_message_ = 1 << 30;
  std::unique_ptr<Registrations> registrations_;
  std::unique_ptr<BufferPool> bounce_, messages_;
  alignas(8) uint8_t proof_[8] = {};
  ibv_mr* proof_mr_ = nullptr;
  std::unique_ptr<Service> service_;
  int waiting_ = 0;
  bool links_first_ = true;
  uint32_t idle_polls_ = 0;
  uint32_t lively_polls_ = 0;  // so many more look here although nothing is expected
  uint32_t batches_seen_ = 0;  // of Service::batches()
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_DEVICE_H_
