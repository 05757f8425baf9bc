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

// Of the replies that are inline one in so many tells when it was delivered, for its and earlier ones' room. The peer
// need not acknowledge the others. The rest tell each, and their buffer is free again.
constexpr uint32_t kUnsignaledReplies = 8;
constexpr int kFirstConnections = 16;  // at least, for which there is room in the queues from the start
// An origin has one Get in flight that is answered by a Write; two more may be done whose completion was not seen here.
constexpr uint32_t kMostWriting = 3;
constexpr uint32_t kReplyDepth = kSlots + kUnsignaledReplies + kMostWriting;
constexpr size_t kBuffersPerChunk = 4, kShortPerChunk = 16;
// The lower half of a send's wr_id: the reply's buffer, or kNoBuffer, and whether it is behind a Write.
constexpr uint32_t kBehindWrite = 1u << 31, kNoBuffer = kBehindWrite - 1;
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

Error Failed(const char* what) { return Error(MPI_ERR_OTHER, std::string(what) + ": " + DescribeShortage(errno)); }

}  // namespace

// A connection of which a peer is the initiator.
struct Service::Incoming {
  uint32_t index = 0;
  ProcessId process = 0;
  rdma_cm_id* id = nullptr;
  ibv_qp* qp = nullptr;
  uint32_t room = 0;         // messages that may be in flight, and receives
  bool short_first = false;  // the first receive is of kFirstBytes; there is no other
  BufferPool::Buffer receives[kSlots];
  std::vector<uint32_t> sending;  // indices of buffers of replies that are not known to be delivered
  uint32_t consumed = 0;
  uint32_t replies = 0;
  uint32_t inline_room = 0;
  uint32_t writing = 0;  // Writes from windows that the RNIC may not have taken yet
  std::string bad;  // why it is to be dropped

  ~Incoming() {
    if (qp != nullptr) rdma_destroy_qp(id);
    if (id != nullptr) rdma_destroy_id(id);
  }
};

Service::Service(Device& device) : device_(device), events_(rdma_create_event_channel()) {}

Service::~Service() {
  Stop();
  for (const auto& incoming : incoming_) {
    if (incoming != nullptr) Close(*incoming);
  }
  buffers_.reset();
  short_.reset();
  if (listener_ != nullptr) rdma_destroy_id(listener_);
  if (messages_ != nullptr) ibv_destroy_cq(messages_);
  if (replies_ != nullptr) ibv_destroy_cq(replies_);
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
  reply_ = buffers_->Take();
  if (reply_.bytes == nullptr) return Failed("memory for messages");
  aside_ = std::make_unique_for_overwrite<uint8_t[]>(kSlotBytes);
  control_mr_ =
      ibv_reg_mr(device_.domain(), &control_, sizeof control_, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  if (control_mr_ == nullptr) return Failed("ibv_reg_mr");
  channel_ = ibv_create_comp_channel(device_.context());
  if (channel_ == nullptr) return Failed("ibv_create_comp_channel");
  // For all that the job's other processes may send, and some of other jobs; for more of these they grow (GrowQueues).
  // Where the RNIC has no queue as long as that, fewer messages may be in flight (GiveRoom).
  most_entries_ = limits.max_cqe;
  const int entries = static_cast<int>(std::min<int64_t>(most_entries_, int64_t{kSlots} * std::max(ThisJob().size, kFirstConnections)));
  messages_ = ibv_create_cq(device_.context(), entries, nullptr, channel_, 0);
  replies_ = ibv_create_cq(device_.context(), entries, nullptr, channel_, 0);
  waiting_ = std::make_unique<Waiting[]>(kMostWaiting);
  stop_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (messages_ == nullptr || replies_ == nullptr || stop_fd_ < 0) return Failed("ibv_create_cq");
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
    gathers_ = count > 1;
    for (int i = 0; i < count; ++i) {
      const ibv_wc& completion = completions[i];
      const auto index = static_cast<uint32_t>(completion.wr_id >> 8);
      const auto slot = static_cast<uint32_t>(completion.wr_id & 0xff);
      Incoming* const found = Find(index);
      if (found == nullptr || !found->bad.empty()) continue;
      Incoming& incoming = *found;
      if (completion.status != IBV_WC_SUCCESS) {
        Drop(incoming, "closed");
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
        Drop(incoming, "no receive");
        continue;
      }
      const bool fine = OnMessage(incoming, bytes);
      if (next.bytes != message.bytes) PoolOf(is_short).Give(message);
      if (!fine) {
        LogWarning(Format("rank %d: process %d sent a malformed one-sided message; its connection is closed",
                          ThisJob().rank, incoming.process));
        Drop(incoming, "malformed message");
        continue;
      }
      changed_ = true;
    }
    PostWaiting();
    gathers_ = false;
    any |= count > 0;
  } while (count == kBatch);
  if (!broken_.empty()) Sweep();
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
    for (auto& incoming : incoming_) {
      if (incoming == nullptr || incoming->id != id) continue;
      PollLocked();  // what came before it closed
      if (incoming != nullptr) Drop(*incoming, "closed");
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
  const char* const why = !hello                                                       ? "does not say who it is"
                          : !process                                                   ? "is of a process that is not known here"
                          : !secret                                                    ? "does not prove who it is"
                          : met_.contains(*process) || refused_.Includes(*process, hello->nonce) ? "comes again: it was overheard"
                                                                                       : nullptr;
  if (why != nullptr) {
    rdma_reject(id, nullptr, 0);
    rdma_destroy_id(id);
    LogWarning(Format("rank %d: an RDMA connection was refused, which %s%s%s", ThisJob().rank, why,
                      hello ? "; it says it is " : "", hello ? hello->origin.ToString().c_str() : ""));
    return;
  }
  Incoming& made = AddIncoming(*process, id);
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
  attributes.send_cq = replies_;
  attributes.recv_cq = messages_;
  attributes.qp_type = IBV_QPT_RC;
  for (uint32_t inline_bytes = kReplyInline;; inline_bytes /= 4) {
    attributes.cap = {.max_send_wr = kReplyDepth,
                      .max_recv_wr = kSlots,
                      .max_send_sge = 1,
                      .max_recv_sge = 1,
                      .max_inline_data = inline_bytes};
    if (rdma_create_qp(incoming.id, device_.domain(), &attributes) == 0) break;
    if (inline_bytes == 0) return Failed("rdma_create_qp");
  }
  GrowQueues();
  incoming.qp = incoming.id->qp;
  incoming.inline_room = attributes.cap.max_inline_data;
  WEFT_MPI_TRY(GiveRoom(incoming, kFirstRoom));
  if (incoming.room < kFirstRoom) {
    return Error(MPI_ERR_OTHER, "the completion queue of " + std::to_string(messages_->cqe) + " entries is taken");
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
  if (rdma_accept(incoming.id, &parameters) != 0) return Failed("rdma_accept");
  return {};
}

// For processes of jobs that joined this one's. An RNIC that cannot (siw) leaves them as they are.
void Service::GrowQueues() {
  const auto connections = std::count_if(incoming_.begin(), incoming_.end(), [](const auto& incoming) { return incoming != nullptr; });
  for (ibv_cq* queue : {messages_, replies_}) {
    if (queue->cqe >= most_entries_ || queue->cqe >= int64_t{kSlots} * connections) continue;
    (void)ibv_resize_cq(queue, static_cast<int>(std::min<int64_t>(most_entries_, 2 * int64_t{kSlots} * connections)));
  }
}

// So many messages may be in flight, or as many more as there is memory, and room in the completion queue, for.
Error Service::GiveRoom(Incoming& incoming, uint32_t room) {
  const bool is_short = room == kFirstRoom;
  for (; incoming.room < room && room_given_ < static_cast<uint64_t>(messages_->cqe); ++incoming.room, ++room_given_) {
    const BufferPool::Buffer buffer = PoolOf(is_short).Take();
    if (buffer.bytes == nullptr) return Failed("memory for messages");
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

// The places of connections that are gone are used again. So that a late completion is not taken for one of the next connection there, the number has the
// low bits of a count of all connections above the place.
Service::Incoming& Service::AddIncoming(ProcessId process, rdma_cm_id* id) {
  const auto free = std::find(incoming_.begin(), incoming_.end(), nullptr);
  const auto place = static_cast<uint32_t>(free - incoming_.begin());
  WEFT_CHECK(place <= kPlaceMask);
  if (free == incoming_.end()) incoming_.emplace_back();
  auto incoming = std::make_unique<Incoming>();
  incoming->index = made_++ << kPlaceBits | place;
  incoming->process = process;
  incoming->id = id;
  return *(incoming_[place] = std::move(incoming));
}

Service::Incoming* Service::Find(uint32_t index) const {
  const uint32_t place = index & kPlaceMask;
  Incoming* const incoming = place < incoming_.size() ? incoming_[place].get() : nullptr;
  return incoming != nullptr && incoming->index == index ? incoming : nullptr;
}

// The queue pair goes first, and then nobody uses its buffers.
void Service::Close(Incoming& closed) {
  if (replies_ != nullptr && buffers_ != nullptr) ForgetReplies();
  const std::unique_ptr<Incoming> incoming = std::move(incoming_[closed.index & kPlaceMask]);
  if (incoming->qp != nullptr) rdma_destroy_qp(incoming->id);
  incoming->qp = nullptr;
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    const BufferPool::Buffer& buffer = incoming->receives[slot];
    if (buffer.bytes != nullptr) PoolOf(slot == 0 && incoming->short_first).Give(buffer);
  }
  for (uint32_t buffer : incoming->sending) buffers_->Give(buffers_->at(buffer));
  room_given_ -= incoming->room;
}

void Service::Drop(Incoming& incoming, const std::string& why) {
  if (!incoming.bad.empty()) return;
  incoming.bad = why;
  broken_.push_back(incoming.index);
}

void Service::Forget(ProcessId process) {
  std::lock_guard lock(mutex_);
  for (const auto& incoming : incoming_) {
    if (incoming == nullptr || incoming->process != process) continue;
    std::erase(broken_, incoming->index);
    Close(*incoming);
  }
  met_.erase(process);
  refused_.Forget(process);
}

// Destroys dropped connections; their processes lose their locks.
void Service::Sweep() {
  while (!broken_.empty()) {
    Incoming& incoming = *Find(broken_.back());
    broken_.pop_back();
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

// --- messages ---

void Service::ForgetReplies() {
  constexpr int kBatch = 64;
  ibv_wc completions[kBatch];
  int count;
  do {
    count = ibv_poll_cq(replies_, kBatch, completions);
    for (int i = 0; i < count; ++i) {
      const auto which = static_cast<uint32_t>(completions[i].wr_id);
      const uint32_t buffer = which & ~kBehindWrite;
      Incoming* incoming = Find(static_cast<uint32_t>(completions[i].wr_id >> 32));
      if (incoming == nullptr) continue;
      if ((which & kBehindWrite) != 0) --incoming->writing;
      if (buffer == kNoBuffer || std::erase(incoming->sending, buffer) == 0) continue;
      buffers_->Give(buffers_->at(buffer));
    }
  } while (count == kBatch);
}

// Whether there is a buffer for the next reply.
bool Service::TakeReply() {
  if (reply_.bytes != nullptr) return true;
  reply_ = buffers_->Take();
  if (reply_.bytes == nullptr) {
    ForgetReplies();
    reply_ = buffers_->Take();
  }
  return reply_.bytes != nullptr;
}

// A place for a request behind those that wait. The caller fills it, and posts it, except while requests gather.
ibv_send_wr& Service::AddWaiting(Incoming& incoming) {
  if (waiting_count_ == kMostWaiting || (waiting_count_ != 0 && waiting_for_ != incoming.index)) PostWaiting();
  waiting_for_ = incoming.index;
  Waiting& waiting = waiting_[waiting_count_++];
  waiting.request = {};
  waiting.request.sg_list = &waiting.piece;
  waiting.request.num_sge = 1;
  return waiting.request;
}

void Service::PostWaiting() {
  if (waiting_count_ == 0) return;
  for (uint32_t i = 0; i + 1 < waiting_count_; ++i) waiting_[i].request.next = &waiting_[i + 1].request;
  waiting_count_ = 0;
  Incoming* const incoming = Find(waiting_for_);
  if (incoming == nullptr || !incoming->bad.empty()) return;
  ibv_send_wr* bad = nullptr;
  int error = ibv_post_send(incoming->qp, &waiting_[0].request, &bad);
  if (error == ENOMEM) {  // the queue is full of replies that were delivered
    ForgetReplies();
    error = ibv_post_send(incoming->qp, bad, &bad);
  }
  if (error != 0) Drop(*incoming, std::string("a reply cannot be sent: ") + std::strerror(error));
}

void Service::SendReply(Incoming& incoming, uint16_t slot, ReplyStatus status, size_t data_bytes, bool behind_write) {
  if (!TakeReply()) return Drop(incoming, "no memory for a reply");
  WriteReply({status, slot, incoming.consumed, static_cast<uint8_t>(incoming.room)}, {reply_.bytes, kReplyBytes});
  const size_t bytes = kReplyBytes + data_bytes;
  const bool is_inline = bytes <= incoming.inline_room;
  const bool signaled = ++incoming.replies % kUnsignaledReplies == 0 || !is_inline || behind_write;
  if (signaled) ForgetReplies();
  ibv_send_wr& request = AddWaiting(incoming);
  request.wr_id = uint64_t{incoming.index} << 32 | (is_inline ? kNoBuffer : reply_.index) | (behind_write ? kBehindWrite : 0);
  *request.sg_list = {reinterpret_cast<uintptr_t>(reply_.bytes), static_cast<uint32_t>(bytes), reply_.key};
  request.opcode = IBV_WR_SEND;
  if (is_inline) request.send_flags |= IBV_SEND_INLINE;
  if (signaled) request.send_flags |= IBV_SEND_SIGNALED;
  if (!is_inline) {  // the connection's from now on: it gives the buffer back when it is closed, whether the reply was posted or not
    incoming.sending.push_back(reply_.index);
    reply_ = {};
  } else if (gathers_) {
    uint8_t* const copy = waiting_[waiting_count_ - 1].bytes;
    std::memcpy(copy, reply_.bytes, bytes);
    request.sg_list->addr = reinterpret_cast<uintptr_t>(copy);
  }
  if (!gathers_) PostWaiting();
}

bool Service::OnMessage(Incoming& incoming, ByteSpan message) {
  const auto header = ParseHeader(message);
  if (!header) return false;
  ++incoming.consumed;
  if (!TakeReply()) {
    Drop(incoming, "no memory for a reply");
    return true;
  }
  // Without memory there is no more room, and the origin goes on with what it has. It sends long messages only when it
  // has more, which it gets only where there is a long buffer behind this one.
  if (header->wants_room && !incoming.short_first) (void)GiveRoom(incoming, std::min(kSlots, 2 * incoming.room));
  const ByteSpan body = message.subspan(kHeaderBytes);
  if (header->kind == MessageKind::kNothing) {
    if (!body.empty()) return false;
    if (header->wants_reply) SendReply(incoming, header->reply_slot, ReplyStatus::kDone, 0);
    return true;
  }
  const auto found = windows_.find(header->window);
  if (found == windows_.end()) return OnLate(incoming, *header);
  TargetWindow& window = *found->second;
  const int rank = window.RankOf(incoming.process);
  if (rank < 0) return false;
  if (header->epoch == LockKind::kNone) return OnMessageTo(window, rank, incoming, *header, body);
  const auto outcome = window.locks.TryAcquire(rank, header->epoch == LockKind::kExclusive ? LockWish::kExclusive : LockWish::kShared);
  if (outcome == LockManager::Outcome::kRefused) return false;
  if (outcome == LockManager::Outcome::kQueued) {
    window.WakeWaiting();
    SendReply(incoming, header->reply_slot, ReplyStatus::kBusy, 0);
    return true;
  }
  const bool fine = OnData(incoming, *header, window, body);
  std::vector<LockManager::Asker> granted;
  window.locks.Release(rank, &granted);
  Grant(granted);
  window.WakeWaiting();
  return fine;
}

// Where a rank died, each frees its own part of the window, whatever others have on the way (RdmaWindow::Free): that changes nothing any more.
bool Service::OnLate(Incoming& incoming, const MessageHeader& header) {
  if (header.window == 0 || header.window >= next_window_) return false;
  if (!header.wants_reply) return true;
  const bool names_memory = (header.kind >= MessageKind::kPut && header.kind <= MessageKind::kFindRegion) || header.kind == MessageKind::kGetByWrite;
  SendReply(incoming, header.reply_slot, names_memory ? ReplyStatus::kOutOfRange : ReplyStatus::kDone, 0);
  return true;
}

bool Service::OnMessageTo(TargetWindow& window, int rank, Incoming& incoming, const MessageHeader& message, ByteSpan body) {
  const MessageHeader* header = &message;
  switch (header->kind) {
    case MessageKind::kNothing:
      break;
    case MessageKind::kFence:
      return OnFence(incoming, *header, window, rank, body);
    case MessageKind::kPost:
      window.control.signals[rank].posts.fetch_add(1, std::memory_order_release);
      break;
    case MessageKind::kComplete:
      window.control.signals[rank].completes.fetch_add(1, std::memory_order_release);
      break;
    case MessageKind::kLockShared:
    case MessageKind::kLockExclusive:
    case MessageKind::kLockOvertaking:
      return body.empty() && OnLock(incoming, *header, window, rank);
    case MessageKind::kUnlock: {
      std::vector<LockManager::Asker> granted;
      if (!body.empty() || !window.locks.Release(rank, &granted)) return false;
      Grant(granted);
      window.WakeWaiting();
      break;
    }
    case MessageKind::kPut:
    case MessageKind::kGet:
    case MessageKind::kAccumulate:
    case MessageKind::kGetAccumulate:
    case MessageKind::kCompareAndSwap:
      return OnData(incoming, *header, window, body);
    case MessageKind::kFindRegion:
      return OnFindRegion(incoming, *header, window, body);
    case MessageKind::kGetByWrite:
      return OnGetByWrite(incoming, *header, window, body);
  }
  if (header->wants_reply) SendReply(incoming, header->reply_slot, ReplyStatus::kDone, 0);
  return body.empty();
}

bool Service::OnData(Incoming& incoming, const MessageHeader& header, const TargetWindow& window, ByteSpan body) {
  uint8_t* fetched = ReplyData();
  size_t bytes = 0;
  const Applied applied = header.kind == MessageKind::kCompareAndSwap
                              ? ApplyCompareAndSwap(header, body, window, fetched, &bytes)
                              : ApplyData(header, body, window, fetched, &bytes);
  if (applied == Applied::kMalformed) return false;
  const ReplyStatus status = applied == Applied::kDone ? ReplyStatus::kDone : ReplyStatus::kOutOfRange;
  if (header.wants_reply) SendReply(incoming, header.reply_slot, status, bytes);
  return true;
}

bool Service::OnFindRegion(Incoming& incoming, const MessageHeader& header, TargetWindow& window, ByteSpan body) {
  const auto parsed = ParseFindRegion(body);
  if (!parsed || !header.wants_reply || !window.dynamic) return false;
  const TargetWindow::Region* region = window.RegionOf(parsed->address, parsed->bytes);
  if (region == nullptr) {
    SendReply(incoming, header.reply_slot, ReplyStatus::kOutOfRange, 0);
    return true;
  }
  ByteWriter writer({ReplyData(), 4});
  writer.U32(region->mr->rkey);
  SendReply(incoming, header.reply_slot, ReplyStatus::kDone, writer.size());
  return true;
}

// --- fences, and Gets that they follow ---

// The RNIC reads the data from the window, which the program may change as soon as its fence is over: until the RNIC has read them the origin's fence does
// not count. The reply is behind the Write: what it completes at the origin is placed (RFC 5040 section 5.5).
bool Service::OnGetByWrite(Incoming& incoming, const MessageHeader& header, const TargetWindow& window, ByteSpan body) {
  const auto parsed = ParseGetByWrite(body);
  if (!parsed || !header.wants_reply || window.mr == nullptr) return false;
  const uint8_t* const from = window.Resolve(parsed->offset, parsed->bytes);
  if (from == nullptr) {
    SendReply(incoming, header.reply_slot, ReplyStatus::kOutOfRange, 0);
    return true;
  }
  if (incoming.writing == kMostWriting) ForgetReplies();
  if (incoming.writing == kMostWriting) return false;
  ibv_send_wr& request = AddWaiting(incoming);
  request.wr_id = uint64_t{incoming.index} << 32 | kNoBuffer;
  *request.sg_list = {reinterpret_cast<uintptr_t>(from), parsed->bytes, window.mr->lkey};
  request.opcode = IBV_WR_RDMA_WRITE;
  request.wr.rdma = {parsed->address, parsed->key};
  ++incoming.writing;
  SendReply(incoming, header.reply_slot, ReplyStatus::kDone, 0, /*behind_write=*/true);
  return true;
}

bool Service::OnFence(Incoming& incoming, const MessageHeader& header, TargetWindow& window, int rank, ByteSpan body) {
  const auto number = ParseFence(body);
  if (!number) return false;
  std::optional<FenceNotice::Asker> asker;
  if (header.wants_reply) asker = {incoming.index, header.reply_slot};
  std::optional<FenceNotice::Answer> answer;
  if (!window.fences[static_cast<size_t>(rank)].OnMessage(*number, header.promises, asker, &answer)) return false;
  if (answer) Answer(*answer);
  if (incoming.writing != 0) PostWaiting();
  if (!StillWriting(incoming)) {
    CountFence(window, rank, *number);
    return true;
  }
  const auto held = std::find_if(held_fences_.begin(), held_fences_.end(), [&](const HeldFence& one) {
    return one.connection == incoming.index && one.window == window.id;
  });
  if (held == held_fences_.end()) {
    held_fences_.push_back({incoming.index, window.id, rank, *number});
  } else {
    held->number = *number;
  }
  return true;
}

// Notices come as messages and as replies, in any order; none counts twice.
void Service::CountFence(TargetWindow& window, int rank, uint32_t number) {
  std::atomic<uint32_t>& fences = window.control.signals[rank].fences;
  if (static_cast<int32_t>(number - fences.load(std::memory_order_relaxed)) > 0) fences.store(number, std::memory_order_release);
  changed_ = true;
}

// True: the completion queue tells when to look again.
bool Service::StillWriting(const Incoming& incoming) {
  if (incoming.writing == 0) return false;
  ForgetReplies();
  if (incoming.writing == 0) return false;
  ibv_req_notify_cq(replies_, 0);
  ForgetReplies();
  return incoming.writing != 0;
}

// If the connection is gone its RNIC no longer reads the window.
void Service::CountHeldFences() {
  std::erase_if(held_fences_, [this](const HeldFence& held) {
    if (const Incoming* incoming = Find(held.connection); incoming != nullptr && StillWriting(*incoming)) return false;
    if (const auto found = windows_.find(held.window); found != windows_.end()) CountFence(*found->second, held.rank, held.number);
    return true;
  });
}

void Service::Answer(const FenceNotice::Answer& answer) {
  Incoming* const incoming = Find(answer.to.connection);
  if (incoming != nullptr && incoming->bad.empty()) SendReply(*incoming, answer.to.slot, answer.status, 0);
}

FenceNotice::Entry Service::EnterFence(TargetWindow& window, int rank, bool operations, bool gets) {
  std::lock_guard lock(mutex_);
  const FenceNotice::Entry entry = window.fences[static_cast<size_t>(rank)].Enter(operations, gets);
  if (entry.answer) Answer(*entry.answer);
  return entry;
}

void Service::OnFenceReply(uint32_t window, ProcessId process, uint32_t number, ReplyStatus status) {
  std::lock_guard lock(mutex_);
  const auto found = windows_.find(window);
  const int rank = found == windows_.end() ? -1 : found->second->RankOf(process);
  if (rank >= 0 && found->second->fences[static_cast<size_t>(rank)].OnReply(number, status)) CountFence(*found->second, rank, number);
}

// --- locks ---

bool Service::OnLock(Incoming& incoming, const MessageHeader& header, TargetWindow& window, int rank) {
  if (!header.wants_reply) return false;
  const LockManager::Asker asker{rank, uint64_t{incoming.index} << 16 | header.reply_slot};
  const LockWish wish = header.kind == MessageKind::kLockExclusive    ? LockWish::kExclusive
                        : header.kind == MessageKind::kLockOvertaking ? LockWish::kOvertaking
                                                                      : LockWish::kShared;
  switch (window.locks.Acquire(asker, wish)) {
    case LockManager::Outcome::kGranted:
      SendReply(incoming, header.reply_slot, ReplyStatus::kDone, 0);
      return true;
    case LockManager::Outcome::kQueued:
      window.WakeWaiting();
      // The thread may be asleep for as long as no message comes.
      if (const uint64_t one = 1; !locks_wait_.exchange(true)) (void)!write(stop_fd_, &one, sizeof one);
      return true;
    case LockManager::Outcome::kRefused:
      return false;
  }
  return false;
}

// Processes of this host give locks back without a word to this one.
void Service::RetryLocks() {
  std::vector<LockManager::Asker> granted;
  bool some_wait = false;
  for (auto& [id, window] : windows_) {
    if (!window->locks.anyone_waits()) continue;
    window->locks.Retry(&granted);
    some_wait |= window->locks.anyone_waits();
  }
  locks_wait_ = some_wait;
  Grant(granted);
}

void Service::LookForDeadHolders() {
  for (auto& [id, window] : windows_) {
    if (!window->locks.anyone_waits() || window->host == nullptr) continue;
    const WindowLock& lock = window->locks.lock();
    const int holder = lock.Holder(window->locks.first_waiting());
    if (holder >= 0 && window->host->Ended(holder)) lock.Forget(holder);
  }
}

void Service::Grant(const std::vector<LockManager::Asker>& granted) {
  for (const LockManager::Asker& asker : granted) {
    Incoming* incoming = Find(static_cast<uint32_t>(asker.token >> 16));
    if (incoming != nullptr) SendReply(*incoming, static_cast<uint16_t>(asker.token & 0xffff), ReplyStatus::kDone, 0);
  }
}

}  // namespace weft::mpi::rma
