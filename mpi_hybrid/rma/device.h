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

// This process's RNIC. It is opened when the first window is made and closed by MPI_Finalize. Owns the connections to
// targets (links) and the service, which answers origins. Guarded by the library's lock, except for dead().
class Device : private ProgressStage {
 public:
  // Returns the device and opens it if necessary. It is collective only in that all ranks of a window call it.
  // MPI_ERR_OTHER: there is no device; the message says why.
  static Error Open(Device** device);
  static Device* current();
  static void Close();

  ~Device() override;

  // The process that opened it.
  pid_t process() const { return process_; }
  // The numeric address at which this process listens, for other processes.
  const transport::SocketAddress& address() const { return address_; }
  // Belongs to the address: origins use it in their proofs (wire.h).
  const Nonce& nonce() const { return nonce_; }
  // Sets the address that another process published. Call it before any other function for that process.
  void SetAddress(ProcessId process, const transport::SocketAddress& address, const Nonce& nonce);
  // A nonce for a connection request.
  Nonce NextNonce() { return CountedNonce(++requests_); }
  const Nonce& nonce_of(ProcessId process) const { return nonces_[static_cast<size_t>(process)]; }
  // No window contains `process` any more: closes the connections between the two.
  void Forget(ProcessId process);

  // Returns the connection to `process`, which is made on first use. Other threads may enter the library while this
  // waits for it. ClassOfGone (p2p/message.h): the process is gone. MPI_ERR_OTHER: it could not be reached for 30 s,
  // because one of the two processes lacks resources (descriptors, memory); a later call tries again.
  Error Find(ProcessId process, Link** link);
  // Starts a connection without waiting for it.
  Error Prepare(ProcessId process);
  Link* Existing(ProcessId process) const {
    return static_cast<size_t>(process) < links_.size() ? links_[static_cast<size_t>(process)].get() : nullptr;
  }

  // Like Progress::WaitUntil, but polls this device in every round.
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

  // Whether the process is known to be gone, because its connection broke.
  bool dead(ProcessId process) const {
    const auto at = static_cast<size_t>(process);
    return at < dead_.size() && dead_[at].load(std::memory_order_acquire);
  }
  // Call with the service's mutex held.
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
  // Buffers of kBounceBytes bytes, for data that cannot be registered or is scattered.
  BufferPool& bounce() { return *bounce_; }
  static constexpr size_t kBounceBytes = 65536;
  // Buffers of kSlotBytes bytes, for messages to targets and their replies; shared by all links.
  BufferPool& messages() { return *messages_; }
  // Buffers of 8 bytes, for the results of atomics.
  BufferPool& words() { return *words_; }
  // The destination of 8-byte Reads that only prove something, and of atomics whose result nobody wants; it is ignored.
  uint8_t* proof() { return proof_; }
  uint32_t proof_key() const { return proof_mr_->lkey; }
  // Whether registering an origin buffer is cheap and without risk, so that even small ones are registered.
  bool registers_cheaply() const { return is_weft_; }
  // Whether the RNIC's atomics exclude those of the processors, so that both may work on the memory of a window, and are wanted (WEFT_MPI_RMA_ATOMICS).
  // Weft's RNIC uses the processor's.
  bool vouches_for_atomics() const { return vouches_for_atomics_; }
  // Rights of other processes to the memory of windows, for ibv_reg_mr.
  int window_rights() const {
    const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    return vouches_for_atomics_ ? rights | IBV_ACCESS_REMOTE_ATOMIC : rights;
  }
  // Whether the first message on a new connection must be one that is answered, and the only one until the answer. The
  // target may be Linux's siw driver. Between its MPA Reply and the hand-over of the socket to the queue pair, siw does
  // not look at data that has arrived until more arrives (Linux 6.1: siw_accept). Weft's own RNIC as initiator takes
  // care of that itself.
  bool greets() const { return !is_weft_; }
  // WEFT_MPI_RMA_CONNECT=static: all connections of a window are made together with the window. (Default, dynamic: each
  // one on first use.)
  bool connects_at_once() const { return connects_at_once_; }
  uint32_t max_reads() const { return max_reads_; }
  uint64_t max_message() const { return max_message_; }
  // The largest inline work request that the RNIC grants, in bytes. Learned from the first queue pair.
  uint32_t inline_wanted = 128;
  // The number of completions that are expected. While it is 0, progress polls seldom.
  int64_t expected = 0;

  // Processes completions of links. Returns whether there were any.
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
  uint64_t requests_ = 0;      // number of connection requests so far
  std::vector<std::unique_ptr<Link>> links_;  // by process
  // by process; to grow it, both the library's lock and the service's mutex are held
  std::deque<std::atomic<bool>> dead_;
  rdma_event_channel* events_ = nullptr;  // of links
  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* queue_ = nullptr;  // receives all completions of links; grows with their number if the RNIC permits it
  int most_entries_ = 0;     // of a completion queue
  int made_ = 0;             // number of links
  bool armed_ = false;
  bool is_weft_ = false;  // the RNIC
  bool vouches_for_atomics_ = false;
  bool connects_at_once_ = false;
  uint32_t max_reads_ = 1;
  uint64_t max_message_ = 1 << 30;
  std::unique_ptr<Registrations> registrations_;
  std::unique_ptr<BufferPool> bounce_, messages_, words_;
  alignas(8) uint8_t proof_[8] = {};
  ibv_mr* proof_mr_ = nullptr;
  std::unique_ptr<Service> service_;
  int waiting_ = 0;
  bool links_first_ = true;
  uint32_t idle_polls_ = 0;
  uint32_t lively_polls_ = 0;  // number of further polls that are made although nothing is expected
  uint32_t batches_seen_ = 0;  // last value seen of Service::batches()
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_DEVICE_H_
