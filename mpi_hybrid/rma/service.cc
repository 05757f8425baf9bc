#include "mpi_hybrid/rma/service.h"

#include <fcntl.h>
#include <mpi.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/byte_writer.h"
#include "base/check.h"
#include "base/file_limit.h"
#include "base/log.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/p2p/progress.h"
#include "mpi_hybrid/rma/apply.h"
#include "mpi_hybrid/rma/device.h"

namespace weft::mpi::rma {
namespace {

constexpr int kFirstConnections = 16;  // at least, for which there is room in the queues from the start
constexpr size_t kBuffersPerChunk = 4, kShortPerChunk = 16;
// How often to look whether threads inside MPI still look after the messages, and whether a lock that a message asks for
// is free.
constexpr int kRestMs = 1;
constexpr int kDeadHoldersEvery = 64;  // looks for such a lock
// siw (Linux 6.1) never counts a receive as solicited: a queue of its that waits for those alone waits for ever.
constexpr uint32_t kSiwVendor = 0x626d74;

// struct sched_attr of Linux; a short slice lets a thread that wakes up preempt a program that computes (since
// Linux 6.12).
void AskForShortSlice() {
  struct {
    uint32_t size = 48, policy = SCHED_OTHER;
    uint64_t flags = 0;
    int32_t nice = 0;
    uint32_t priority = 0;
    uint64_t runtime_ns = 100'000, deadline_ns = 0, period_ns = 0;
  } attributes;
  if (sched_getscheduler(0) != SCHED_OTHER) return;
  errno = 0;
  attributes.nice = getpriority(PRIO_PROCESS, 0);
  if (errno == 0) syscall(SYS_sched_setattr, 0, &attributes, 0u);
}

bool AsksForRoom(ByteSpan message) {
  const auto header = ParseHeader(message);
  return header && header->wants_room;
}

Error ShortOf(const char* what) { return Error(MPI_ERR_OTHER, std::string(what) + ": " + DescribeShortage(errno)); }

}  // namespace

Service::Service(Device& device) : device_(device), events_(rdma_create_event_channel()) {}

Service::~Service() {
  Stop();
  for (const auto& incoming : connections_.places()) {
    if (incoming != nullptr) Close(*incoming);
  }
  buffers_.reset();
  short_.reset();
  if (listener_ != nullptr) rdma_destroy_id(listener_);
  if (messages_ != nullptr) ibv_destroy_cq(messages_);
  if (sent_ != nullptr) ibv_destroy_cq(sent_);
  if (channel_ != nullptr) ibv_destroy_comp_channel(channel_);
  if (control_mr_ != nullptr) ibv_dereg_mr(control_mr_);
  if (events_ != nullptr) rdma_destroy_event_channel(events_);
  if (stop_fd_ >= 0) close(stop_fd_);
}

Error Service::Start(rdma_cm_id* listener, const ibv_device_attr& limits) {
  listener_ = listener;
  max_reads_ = static_cast<uint32_t>(limits.max_qp_rd_atom);
  tells_solicited_ = limits.vendor_id != kSiwVendor;
  short_ =
      std::make_unique<BufferPool>(device_.domain(), kFirstBytes, kShortPerChunk, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE);
  buffers_ =
      std::make_unique<BufferPool>(device_.domain(), kSlotBytes, kBuffersPerChunk, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE);
  aside_ = std::make_unique_for_overwrite<uint8_t[]>(kSlotBytes);
  control_mr_ =
      ibv_reg_mr(device_.domain(), &control_, sizeof control_, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  if (control_mr_ == nullptr) return ShortOf("ibv_reg_mr");
  channel_ = ibv_create_comp_channel(device_.context());
  if (channel_ == nullptr) return ShortOf("ibv_create_comp_channel");
  // For all that the job's other processes may send, and some of other jobs; for more of these they grow (GrowQueues).
  // Where the RNIC has no queue as long as that, fewer messages may be in flight (GiveRoom).
  most_entries_ = limits.max_cqe;
  const int entries = static_cast<int>(std::min<int64_t>(most_entries_, int64_t{kSlots} * std::max(ThisJob().size, kFirstConnections)));
  messages_ = ibv_create_cq(device_.context(), entries, nullptr, channel_, 0);
  sent_ = ibv_create_cq(device_.context(), entries, nullptr, channel_, 0);
  stop_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (messages_ == nullptr || sent_ == nullptr || stop_fd_ < 0) return ShortOf("ibv_create_cq");
  if (!replies_.Start(sent_, *buffers_)) return ShortOf("memory for messages");
  for (int fd : {channel_->fd, events_->fd}) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  AskForEvent();

  // The thread takes none of the program's signals.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(
      &thread_, nullptr,
      [](void* self) -> void* {
        static_cast<Service*>(self)->Run();
        return nullptr;
      },
      this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0)
    return Error(MPI_ERR_OTHER, std::string("a thread for one-sided communication: ") + std::strerror(error));
  running_ = true;
  return {};
}

void Service::Stop() {
  if (!running_) return;
  stopping_ = true;
  const uint64_t one = 1;
  (void)!write(stop_fd_, &one, sizeof one);
  pthread_join(thread_, nullptr);
  running_ = false;
}

uint32_t Service::Add(TargetWindow* window) {
  std::lock_guard lock(mutex_);
  window->id = next_window_++;
  windows_[window->id] = window;
  return window->id;
}

void Service::Remove(uint32_t window) {
  std::lock_guard lock(mutex_);
  windows_.erase(window);
}

void Service::Run() {
  pthread_setname_np(pthread_self(), "weft-rma");
  AskForShortSlice();
  pollfd ready[] = {{stop_fd_, POLLIN, 0}, {events_->fd, POLLIN, 0}, {channel_->fd, POLLIN, 0}};
  bool unarmed = false;  // an event was taken and no other asked for
  uint32_t polls_seen = 0, looks = 0;
  while (!stopping_) {
    const bool locks_wait = locks_wait_;
    if (poll(ready, 3, unarmed || locks_wait ? kRestMs : -1) < 0) continue;
    uint64_t kicks;
    if (ready[0].revents != 0 && !stopping_) (void)!read(stop_fd_, &kicks, sizeof kicks);
    if (ready[2].revents != 0) {
      ibv_cq* queue;
      void* context;
      while (ibv_get_cq_event(channel_, &queue, &context) == 0) ibv_ack_cq_events(queue, 1);
      if (!std::exchange(unarmed, true)) polls_seen = polls_.load(std::memory_order_relaxed);
    }
    if (ready[1].revents == 0 && unarmed && !locks_wait && LeaveToOthers(&polls_seen)) continue;
    bool changed;
    {
      std::lock_guard lock(mutex_);
      if (locks_wait && ++looks % kDeadHoldersEvery == 0) LookForDeadHolders();
      if (ready[1].revents != 0) OnConnectionEvent();
      bool any = PollLocked();
      if (std::exchange(unarmed, false)) {
        AskForEvent();
        any |= PollLocked();
      }
      if (any) batches_.store(batches_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      changed = std::exchange(changed_, false);
    }
    if (changed) Progress::WakeFromOutside();
  }
}

// Whether threads inside MPI have looked after the messages since the last look, or do so now. Asking for an event
// after each message would have this thread and the RNIC's take turns with the program's for the processors.
bool Service::LeaveToOthers(uint32_t* polls_seen) const {
  if (waiter_asleep_) return false;
  const uint32_t polls = polls_.load(std::memory_order_relaxed);
  return std::exchange(*polls_seen, polls) != polls || attended_.load(std::memory_order_relaxed) ||
         (lively_.load(std::memory_order_relaxed) && Progress::IsPolling());
}

bool Service::TryPoll() {
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  const bool any = PollLocked();
  return std::exchange(changed_, false) || any;
}

void Service::SetWaiter(bool asleep) {
  waiter_asleep_ = asleep;
  if (asleep) AskForEvent();
}

// Of the next message that is urgent; of the next one of all while a thread sleeps in MPI, and where the RNIC does not
// tell which is which.
void Service::AskForEvent() { ibv_req_notify_cq(messages_, tells_solicited_ && !waiter_asleep_ ? 1 : 0); }

bool Service::PollLocked() {
  if (locks_wait_.load(std::memory_order_relaxed)) RetryLocks();
  if (!held_fences_.empty()) CountHeldFences();
  constexpr int kBatch = 16;
  ibv_wc completions[kBatch];
  bool any = false;
  int count;
  do {
    count = ibv_poll_cq(messages_, kBatch, completions);
    replies_.Gather(count > 1);
    for (int i = 0; i < count; ++i) {
      const ibv_wc& completion = completions[i];
      const auto index = static_cast<uint32_t>(completion.wr_id >> 8);
      const auto slot = static_cast<uint32_t>(completion.wr_id & 0xff);
      Incoming* const found = connections_.Find(index);
      if (found == nullptr || !found->bad.empty()) continue;
      Incoming& incoming = *found;
      if (completion.status != IBV_WC_SUCCESS) {
        connections_.Drop(incoming, "closed");
        continue;
      }
      // Another receive comes first: the message counts as consumed in its own reply. Without memory for one the message
      // moves aside, and its own buffer is the next receive.
      const BufferPool::Buffer message = incoming.receives[slot];
      const bool is_short = slot == 0 && incoming.short_first;
      ByteSpan bytes(message.bytes, completion.byte_len);
      bool next_short = is_short && !AsksForRoom(bytes);
      BufferPool::Buffer next = PoolOf(next_short).Take();
      if (next.bytes == nullptr) {
        std::memcpy(aside_.get(), bytes.data(), bytes.size());
        bytes = {aside_.get(), bytes.size()};
        next = message;
        next_short = is_short;
      }
      if (Error error = PostReceive(incoming, slot, next, next_short); !error.ok()) {
        LogWarning(Format("rank %d: the one-sided connection of process %d is closed: %s", ThisJob().rank,
                          incoming.process, error.message().c_str()));
        connections_.Drop(incoming, "no receive");
        continue;
      }
      const bool fine = OnMessage(incoming, bytes);
      if (next.bytes != message.bytes) PoolOf(is_short).Give(message);
      if (!fine) {
        LogWarning(Format("rank %d: process %d sent a malformed one-sided message; its connection is closed",
                          ThisJob().rank, incoming.process));
        connections_.Drop(incoming, "malformed message");
        continue;
      }
      changed_ = true;
    }
    replies_.Post();
    replies_.Gather(false);
    any |= count > 0;
  } while (count == kBatch);
  if (connections_.any_dropped()) Sweep();
  return any;
}

// --- connections ---

void Service::OnConnectionEvent() {
  rdma_cm_event* event;
  while (rdma_get_cm_event(events_, &event) == 0) {
    const rdma_cm_event_type type = event->event;
    rdma_cm_id* id = event->id;
    uint8_t data[256];
    rdma_conn_param asked = event->param.conn;
    if (asked.private_data != nullptr) {
      std::memcpy(data, asked.private_data, asked.private_data_len);
      asked.private_data = data;
    }
    rdma_ack_cm_event(event);
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      OnRequest(id, asked);
      continue;
    }
    if (type == RDMA_CM_EVENT_ESTABLISHED || id == listener_) continue;
    for (auto& incoming : connections_.places()) {
      if (incoming == nullptr || incoming->id != id) continue;
      PollLocked();  // what came before it closed
      if (incoming != nullptr) connections_.Drop(*incoming, "closed");
    }
    Sweep();
  }
}

void Service::OnRequest(rdma_cm_id* id, const rdma_conn_param& asked) {
  const auto hello = ParseHello({static_cast<const uint8_t*>(asked.private_data),
                                 asked.private_data == nullptr ? size_t{0} : size_t{asked.private_data_len}});
  Acquaintance said{.target = device_.nonce()};
  const ProcessTable& processes = ThisJob().processes;
  std::optional<ProcessId> process;
  std::optional<JobSecret> secret;
  if (hello) {
    said.origin = hello->nonce;
    said.process = hello->origin;
    process = processes.Find(hello->origin);
    for (const Bond& bond : process ? processes.BondsOf(*process) : std::vector<Bond>()) {
      if (Verifies(bond.secret, kOrigin, said, hello->proof)) secret = bond.secret;
    }
  }
  // A process connects once; what comes again was overheard. Of one that has connected no request is accepted any more, so that those which
  // there was no room for need not be known from then on.
  const char* const why = !hello                                                       ? "does not identify itself"
                          : !process                                                   ? "comes from an unknown process"
                          : !secret                                                    ? "does not prove its identity"
                          : met_.contains(*process) || refused_.Includes(*process, hello->nonce) ? "repeats an earlier request"
                                                                                       : nullptr;
  if (why != nullptr) {
    rdma_reject(id, nullptr, 0);
    rdma_destroy_id(id);
    LogWarning(Format("rank %d: an RDMA connection was refused: it %s%s%s", ThisJob().rank, why,
                      hello ? "; it claims to be " : "", hello ? hello->origin.ToString().c_str() : ""));
    return;
  }
  Incoming& made = connections_.Add(*process, id);
  if (Error error = Accept(made, asked, *secret, said); !error.ok()) {
    LogWarning(Format("rank %d: the RDMA connection of process %d was refused: %s", ThisJob().rank, made.process,
                      error.message().c_str()));
    rdma_reject(id, kNoRoom, sizeof kNoRoom);
    Close(made);
    refused_.Add(*process, hello->nonce);
    return;
  }
  met_.insert(*process);
  refused_.Forget(*process);
}

Error Service::Accept(Incoming& incoming, const rdma_conn_param& asked, const JobSecret& secret, Acquaintance& said) {
  if (incoming.id->verbs != device_.context()) return Error(MPI_ERR_OTHER, "it came over another RDMA device");
  ibv_qp_init_attr attributes{};
  attributes.send_cq = sent_;
  attributes.recv_cq = messages_;
  attributes.qp_type = IBV_QPT_RC;
  for (uint32_t inline_bytes = ReplySender::kInline;; inline_bytes /= 4) {
    attributes.cap = {.max_send_wr = ReplySender::kDepth,
                      .max_recv_wr = kSlots,
                      .max_send_sge = 1,
                      .max_recv_sge = 1,
                      .max_inline_data = inline_bytes};
    if (rdma_create_qp(incoming.id, device_.domain(), &attributes) == 0) break;
    if (inline_bytes == 0) return ShortOf("rdma_create_qp");
  }
  GrowQueues();
  incoming.qp = incoming.id->qp;
  incoming.inline_room = attributes.cap.max_inline_data;
  WEFT_MPI_TRY(GiveRoom(incoming, kFirstRoom));
  if (incoming.room < kFirstRoom) {
    return Error(MPI_ERR_OTHER, "the completion queue of " + std::to_string(messages_->cqe) + " entries is full");
  }
  uint8_t bytes[kWelcomeBytes];
  said.control_address = reinterpret_cast<uintptr_t>(&control_);
  said.control_key = control_mr_->rkey;
  WriteWelcome({said.control_address, said.control_key, Prove(secret, kTarget, said)}, bytes);
  rdma_conn_param parameters{};
  parameters.private_data = bytes;
  parameters.private_data_len = sizeof bytes;
  parameters.responder_resources = static_cast<uint8_t>(std::min<uint32_t>(max_reads_, asked.responder_resources));
  parameters.initiator_depth = asked.initiator_depth == 0 ? 0 : 1;
  parameters.rnr_retry_count = 7;
  if (rdma_accept(incoming.id, &parameters) != 0) return ShortOf("rdma_accept");
  return {};
}

// For processes of jobs that joined this one's. An RNIC that cannot (siw) leaves them as they are.
void Service::GrowQueues() {
  const auto connections = std::count_if(connections_.places().begin(), connections_.places().end(), [](const auto& incoming) { return incoming != nullptr; });
  for (ibv_cq* queue : {messages_, sent_}) {
    if (queue->cqe >= most_entries_ || queue->cqe >= int64_t{kSlots} * connections) continue;
    (void)ibv_resize_cq(queue, static_cast<int>(std::min<int64_t>(most_entries_, 2 * int64_t{kSlots} * connections)));
  }
}

// So many messages may be in flight, or as many more as there is memory, and room in the completion queue, for.
Error Service::GiveRoom(Incoming& incoming, uint32_t room) {
  const bool is_short = room == kFirstRoom;
  for (; incoming.room < room && room_given_ < static_cast<uint64_t>(messages_->cqe); ++incoming.room, ++room_given_) {
    const BufferPool::Buffer buffer = PoolOf(is_short).Take();
    if (buffer.bytes == nullptr) return ShortOf("memory for messages");
    WEFT_MPI_TRY(PostReceive(incoming, incoming.room, buffer, is_short));
  }
  return {};
}

// Takes the buffer, also when it fails; what the slot held is the caller's then, if it succeeds.
Error Service::PostReceive(Incoming& incoming, uint32_t slot, const BufferPool::Buffer& buffer, bool is_short) {
  ibv_sge piece{reinterpret_cast<uintptr_t>(buffer.bytes), static_cast<uint32_t>(is_short ? kFirstBytes : kSlotBytes),
                buffer.key};
  ibv_recv_wr request{};
  request.wr_id = uint64_t{incoming.index} << 8 | slot;
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  if (const int error = ibv_post_recv(incoming.qp, &request, &bad); error != 0) {
    if (buffer.bytes != incoming.receives[slot].bytes) PoolOf(is_short).Give(buffer);
    return Error(MPI_ERR_OTHER, std::string("ibv_post_recv: ") + std::strerror(error));
  }
  incoming.receives[slot] = buffer;
  if (slot == 0) incoming.short_first = is_short;
  return {};
}

// The queue pair goes first, and then nobody uses its buffers.
void Service::Close(Incoming& closed) {
  replies_.Forget();
  const std::unique_ptr<Incoming> incoming = connections_.Take(closed);
  if (incoming->qp != nullptr) rdma_destroy_qp(incoming->id);
  incoming->qp = nullptr;
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    const BufferPool::Buffer& buffer = incoming->receives[slot];
    if (buffer.bytes != nullptr) PoolOf(slot == 0 && incoming->short_first).Give(buffer);
  }
  for (uint32_t buffer : incoming->sending) buffers_->Give(buffers_->at(buffer));
  room_given_ -= incoming->room;
}

void Service::Forget(ProcessId process) {
  std::lock_guard lock(mutex_);
  for (const auto& incoming : connections_.places()) {
    if (incoming == nullptr || incoming->process != process) continue;
    connections_.TakeFromDropped(*incoming);
    Close(*incoming);
  }
  met_.erase(process);
  refused_.Forget(process);
}

// Destroys dropped connections; their processes lose their locks.
void Service::Sweep() {
  while (connections_.any_dropped()) {
    Incoming& incoming = connections_.NextDropped();
    const ProcessId process = incoming.process;
    Close(incoming);
    device_.SetDead(process);
    std::vector<LockManager::Asker> granted;
    for (auto& [id, window] : windows_) {
      const int rank = window->RankOf(process);
      if (rank < 0) continue;
      window->locks.Drop(rank, &granted);
      window->WakeWaiting();
    }
    Grant(granted);
    changed_ = true;
  }
}

}  // namespace weft::mpi::rma
