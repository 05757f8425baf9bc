#include "mpi_hybrid/rma/link.h"

#include <infiniband/weft.h>
#include <mpi.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/file_limit.h"
#include "mpi_hybrid/core/counters.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/rma/device.h"
#include "mpi_hybrid/rma/request_id.h"
#include "mpi_hybrid/rma/service.h"

namespace weft::mpi::rma {
namespace {

constexpr size_t kProofBytes = 8;
constexpr int kResolveMs = 5000;
constexpr size_t kMostWaiting = 65536;  // bytes that wait for company

// No message here finds no receive (Link's slots), and fences and flushes say what was carried out. On Weft's own RNIC
// acknowledgements, which tell the same of each request, would be one more message each way. Atomics do not need them.
void AskForPlainIwarp(ibv_qp* qp) {
  ibv_ece ece{};
  if (ibv_query_ece(qp, &ece) != 0 || ece.vendor_id != WEFT_ECE_VENDOR_ID) return;
  ece.options &= ~WEFT_ECE_INFINIBAND_SEMANTICS;
  ibv_set_ece(qp, &ece);
}

// What both ends have agreed on.
bool HasAtomics(ibv_qp* qp) {
  ibv_ece ece{};
  return ibv_query_ece(qp, &ece) == 0 && ece.vendor_id == WEFT_ECE_VENDOR_ID && (ece.options & WEFT_ECE_ATOMICS) != 0;
}

Error NoBuffer() {
  return Error(MPI_ERR_NO_MEM, std::string("no memory can be registered for a message: ") + std::strerror(errno));
}

bool Changes(MessageKind kind) {
  return kind == MessageKind::kPut || kind == MessageKind::kAccumulate || kind == MessageKind::kGetAccumulate ||
         kind == MessageKind::kCompareAndSwap;
}

std::string Describe(ProcessId process) { return ThisJob().processes.Describe(process); }

// Whether the target replies to it when it comes to it, and not when a lock is free, which may be never.
bool IsAnsweredAtOnce(MessageKind kind) {
  switch (kind) {
    case MessageKind::kLockShared:
    case MessageKind::kLockExclusive:
    case MessageKind::kLockOvertaking:
      return false;
    case MessageKind::kNothing:
    case MessageKind::kFence:
    case MessageKind::kPost:
    case MessageKind::kComplete:
    case MessageKind::kUnlock:
    case MessageKind::kPut:
    case MessageKind::kGet:
    case MessageKind::kAccumulate:
    case MessageKind::kGetAccumulate:
    case MessageKind::kCompareAndSwap:
    case MessageKind::kFindRegion:
    case MessageKind::kGetByWrite:
      return true;
  }
  return false;
}

}  // namespace

Link::Link(Device& device, ProcessId process) : device_(device), process_(process) {}

Link::~Link() {
  Break("this process closes it");
  if (id_ != nullptr) {
    if (qp_ != nullptr) {
      rdma_disconnect(id_);
      rdma_destroy_qp(id_);
    }
    rdma_destroy_id(id_);
  }
  for (auto* buffers : {&in_flight_, &receives_}) {
    for (const BufferPool::Buffer& buffer : *buffers) {
      if (buffer.bytes != nullptr) device_.messages().Give(buffer);
    }
  }
  if (building_.bytes != nullptr) device_.messages().Give(building_);
}

Error Link::failure() const {
  if (unreachable_) {
    return Error(MPI_ERR_OTHER, "no RDMA connection to " + Describe(process_) + " can be made: " + why_);
  }
  return Error(ClassOfGone(process_),
               "the RDMA connection to " + Describe(process_) + " is broken: " + why_);
}

// --- connecting ---

void Link::StartConnect(const transport::SocketAddress& from, const transport::SocketAddress& to) {
  transport::SocketAddress source = from;
  source.set_port(0);
  state_ = State::kConnecting;
  if (rdma_create_id(device_.events(), &id_, this, RDMA_PS_TCP) != 0 ||
      rdma_resolve_addr(id_, const_cast<sockaddr*>(source.get()), const_cast<sockaddr*>(to.get()), kResolveMs) != 0) {
    const int error = errno;
    Unreachable("address " + to.ToString() + " cannot be resolved: " + DescribeShortage(error), IsShortage(error));
  }
}

void Link::Unreachable(std::string why, bool wants_room) {
  state_ = State::kBroken;
  why_ = std::move(why);
  unreachable_ = true;
  wants_room_ = wants_room;
}

// False: it said that the target is unreachable.
bool Link::MakeQueuePair() {
  if (id_->verbs != device_.context()) {
    Unreachable("it is reached through another RDMA device", false);
    return false;
  }
  // The largest inline size that the RNIC grants: some refuse what others allow. What is refused for want of room says
  // nothing about those to come.
  bool wants_room = false;
  for (uint32_t inline_bytes = device_.inline_wanted;; inline_bytes /= 4) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = device_.queue();
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {.max_send_wr = kDepth,
                      .max_recv_wr = kSlots,
                      .max_send_sge = 1,
                      .max_recv_sge = 1,
                      .max_inline_data = inline_bytes};
    if (rdma_create_qp(id_, device_.domain(), &attributes) == 0) {
      inline_room_ = std::min(attributes.cap.max_inline_data, 1024u);
      if (!wants_room) device_.inline_wanted = inline_bytes;
      break;
    }
    const int error = errno;
    wants_room |= IsShortage(error);
    if (inline_bytes < 16) {
      Unreachable("no queue pair could be made: " + DescribeShortage(error), wants_room);
      return false;
    }
  }
  qp_ = id_->qp;
  AskForPlainIwarp(qp_);
  inline_bytes_ = std::make_unique_for_overwrite<uint8_t[]>(kBatch * inline_room_);
  return true;
}

// For the next reply. If one reply answered two messages a receive is left.
Error Link::PostReceive() {
  const uint32_t index = receives_posted_ % kSlots;
  BufferPool::Buffer& buffer = receives_[index];
  WEFT_CHECK(buffer.bytes == nullptr);
  buffer = device_.messages().Take();
  if (buffer.bytes == nullptr) return NoBuffer();
  ibv_sge piece{reinterpret_cast<uintptr_t>(buffer.bytes), kSlotBytes, buffer.key};
  ibv_recv_wr request{};
  request.wr_id = RequestId::OfReceive(process_, index);
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  if (int error = ibv_post_recv(qp_, &request, &bad); error != 0) {
    device_.messages().Give(std::exchange(buffer, {}));
    return Error(MPI_ERR_OTHER, std::string("a receive cannot be posted: ") + std::strerror(error));
  }
  ++receives_posted_;
  return {};
}

void Link::OnEvent(const rdma_cm_event& event) {
  if (state_ == State::kBroken) return;
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (rdma_resolve_route(id_, kResolveMs) != 0) {
        const int error = errno;
        Unreachable("no route: " + DescribeShortage(error), IsShortage(error));
      }
      return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED: {
      if (!MakeQueuePair()) return;
      const ProcessTable& processes = ThisJob().processes;
      said_ = {.target = device_.nonce_of(process_), .origin = device_.NextNonce(), .process = processes.own_name()};
      const Hello hello{.origin = said_.process,
                        .nonce = said_.origin,
                        .proof = ProveShortly(processes.BondOf(process_).secret, kOrigin, said_)};
      uint8_t bytes[kHelloBytes];
      WriteHello(hello, bytes);
      rdma_conn_param parameters{};
      parameters.private_data = bytes;
      parameters.private_data_len = sizeof bytes;
      parameters.initiator_depth = static_cast<uint8_t>(device_.max_reads());
      parameters.responder_resources = 1;
      parameters.retry_count = parameters.rnr_retry_count = 7;
      if (rdma_connect(id_, &parameters) != 0) {
        const int error = errno;
        Unreachable("connecting failed: " + DescribeShortage(error), IsShortage(error));
      }
      return;
    }
    case RDMA_CM_EVENT_ESTABLISHED: {
      const auto* data = static_cast<const uint8_t*>(event.param.conn.private_data);
      auto welcome = ParseWelcome(ByteSpan(data, data == nullptr ? 0 : event.param.conn.private_data_len));
      if (welcome) {
        said_.control_address = welcome->control_address;
        said_.control_key = welcome->control_key;
      }
      if (!welcome || !Verifies(ThisJob().processes.BondOf(process_).secret, kTarget, said_, welcome->proof)) {
        return Break("the process that listens at its address is not a rank of this job");
      }
      has_atomics_ = device_.vouches_for_atomics() && HasAtomics(qp_);
      if (device_.greets()) return Greet();
      state_ = State::kUp;
      return;
    }
    case RDMA_CM_EVENT_DISCONNECTED:
      return Break("it closed the connection");
    default:
      return OnFailure(event);
  }
}

void Link::Greet() {
  const Reply none;
  const Error error = SendPlain(MessageKind::kNothing, 0, {.reply = &none});
  if (error.ok()) {
    state_ = State::kGreeting;
  } else if (!broken()) {
    Unreachable(error.message(), error.mpi_class() == MPI_ERR_NO_MEM);
  }
}

void Link::Nudge() {
  if (posted_ - completed() < kDepth) (void)PostEmptyWrite(false);
}

// Want of room, here or there, does not say that the target is dead. Where nobody listens, and where nobody answers, it
// is.
void Link::OnFailure(const rdma_cm_event& event) {
  const std::string what = std::string(rdma_event_str(event.event)) + ", status " + std::to_string(event.status);
  if (!connecting()) return Break(what);
  if (event.event == RDMA_CM_EVENT_REJECTED) {
    const rdma_conn_param& answer = event.param.conn;
    if (answer.private_data == nullptr || answer.private_data_len < sizeof kNoRoom ||
        std::memcmp(answer.private_data, kNoRoom, sizeof kNoRoom) != 0) {
      return Break("it refuses the connection (" + what + ")");
    }
    return Unreachable("it has no resources for another connection (its own messages name what is missing)", true);
  }
  if (IsShortage(-event.status)) return Unreachable(what + ": " + DescribeShortage(-event.status), true);
  if (event.event == RDMA_CM_EVENT_ADDR_ERROR || event.event == RDMA_CM_EVENT_ROUTE_ERROR) {
    return Unreachable(what, false);
  }
  Break(what);
}

// --- posting ---

Error Link::WaitForRoom() {
  if (posted_ - completed() < kDepth) [[likely]]
    return {};
  WEFT_MPI_TRY(Ring());
  device_.PollLinks();
  device_.Await([this] { return broken() || posted_ - completed() < kDepth; });
  return broken() ? failure() : Error();
}

ibv_send_wr& Link::Add(bool signaled) {
  get_waits_last_ = false;
  Waiting& waiting = waiting_[waiting_count_++];
  ++posted_;
  waiting.request = {};
  waiting.request.wr_id = RequestId::OfSend(process_, posted_);
  waiting.request.sg_list = &waiting.piece;
  waiting.request.num_sge = 1;
  if (signaled || posted_ - signaled_ >= kUnsignaled) {
    waiting.request.send_flags = IBV_SEND_SIGNALED;
    signaled_ = posted_;
    ++uncompleted_;
    ++device_.expected;
  }
  return waiting.request;
}

Error Link::Ring() {
  if (waiting_count_ == 0) return {};
  if (broken()) return failure();
  for (uint32_t i = 0; i + 1 < waiting_count_; ++i) waiting_[i].request.next = &waiting_[i + 1].request;
  waiting_count_ = 0;
  waiting_bytes_ = 0;
  get_waits_last_ = false;
  ibv_send_wr* bad = nullptr;
  if (int error = ibv_post_send(qp_, &waiting_[0].request, &bad); error != 0) {
    Break(std::string("ibv_post_send: ") + std::strerror(error));
    return failure();
  }
  return {};
}

// There must be room.
Error Link::PostEmptyWrite(bool signaled) {
  ibv_send_wr& request = Add(signaled);
  request.opcode = IBV_WR_RDMA_WRITE;
  request.wr.rdma = {said_.control_address, said_.control_key};
  request.num_sge = 0;
  return Ring();
}

Error Link::RingIfFull() { return waiting_count_ == kBatch || waiting_bytes_ >= kMostWaiting ? Ring() : Error(); }

Error Link::Write(const void* from, uint32_t key, uint64_t to, uint32_t to_key, size_t bytes) {
  if (broken()) return failure();
  WEFT_MPI_TRY(WaitForRoom());
  const bool small = bytes <= inline_room_;
  uint8_t* copy = inline_bytes_.get() + waiting_count_ * inline_room_;
  ibv_send_wr& request = Add(!small);
  request.opcode = IBV_WR_RDMA_WRITE;
  request.wr.rdma = {to, to_key};
  *request.sg_list = {reinterpret_cast<uintptr_t>(from), static_cast<uint32_t>(bytes), key};
  writes_unproved_ = writes_since_message_ = true;
  ++g_counters.rdma_operations;
  g_counters.rdma_bytes += bytes;
  if (!small) {
    local_ = posted_;
    waiting_bytes_ += bytes;
    return bytes > kWaits ? Ring() : RingIfFull();
  }
  std::memcpy(copy, from, bytes);
  request.sg_list->addr = reinterpret_cast<uintptr_t>(copy);
  request.send_flags |= IBV_SEND_INLINE;
  return RingIfFull();
}

Error Link::Read(void* into, uint32_t key, uint64_t from, uint32_t from_key, size_t bytes) {
  if (broken()) return failure();
  WEFT_MPI_TRY(WaitForRoom());
  const bool first = !reads_outstanding();
  ibv_send_wr& request = Add(true);
  request.opcode = IBV_WR_RDMA_READ;
  request.wr.rdma = {from, from_key};
  *request.sg_list = {reinterpret_cast<uintptr_t>(into), static_cast<uint32_t>(bytes), key};
  local_ = reads_posted_ = posted_;
  order_.ReadPosted(posted_);
  ++g_counters.rdma_operations;
  g_counters.rdma_bytes += bytes;
  return first || bytes > kWaits ? Ring() : RingIfFull();
}

Error Link::Atomic(const RdmaAtomic& atomic, uint8_t* into, uint32_t key, uint64_t at, uint32_t at_key) {
  if (broken()) return failure();
  WEFT_MPI_TRY(WaitForRoom());
  const bool first = atomics_posted_ <= completed();
  ibv_send_wr& request = Add(true);
  request.opcode = atomic.swaps ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
  request.wr.atomic = {at, atomic.operand, atomic.swap, at_key};
  *request.sg_list = {reinterpret_cast<uintptr_t>(into), sizeof(uint64_t), key};
  local_ = atomics_posted_ = posted_;
  ++g_counters.rdma_operations;
  g_counters.rdma_bytes += sizeof(uint64_t);
  return first ? Ring() : RingIfFull();
}

void Link::WhenComplete(LocalCompletion&& completion) {
  if (broken() || completion.number <= completed()) {
    FinishLocal(completion, broken() ? failure() : Error());
    return;
  }
  local_completions_.push_back(std::move(completion));
}

bool Link::HasRoom() const {
  if (sent_ - consumed_ >= room_ || posted_ - completed() >= kDepth) return false;
  return replies_expected_ < static_cast<int>(kSlots);
}

// For a message that is longer than a new connection takes. It was begun, and waits. Want of memory at either end is an
// error of this message alone: the connection stays, and the next message asks again.
Error Link::GrowRoom() {
  const BufferPool::Buffer message = std::exchange(building_, {});
  ReplyWaiter waiter;
  const Reply reply{.waiter = &waiter};
  stalled_ = true;
  Error error = SendPlain(MessageKind::kNothing, 0, {.reply = &reply});
  if (error.ok()) device_.Await([&] { return waiter.done; });
  if (error.ok() && room_ > kFirstRoom) device_.Await([this] { return broken() || HasRoom(); });
  if (building_.bytes != nullptr) device_.messages().Give(building_);
  building_ = message;
  if (broken()) return failure();
  if (error.ok() && room_ == kFirstRoom) {
    error = Error(MPI_ERR_NO_MEM, "process " + std::to_string(process_) +
                                      " has no memory, or no room in its completion queue, for messages of more than " +
                                      std::to_string(kFirstBytes) + " bytes");
  }
  return error;
}

Error Link::BeginMessage(uint8_t** room) {
  if (broken()) return failure();
  if (!HasRoom()) {
    stalled_ |= sent_ - consumed_ >= room_;
    WEFT_MPI_TRY(Ring());
    device_.Await([this] { return broken() || HasRoom(); });
    if (broken()) return failure();
  }
  if (building_.bytes == nullptr) building_ = device_.messages().Take();
  if (building_.bytes == nullptr) return NoBuffer();
  *room = building_.bytes + kHeaderBytes;
  return {};
}

Error Link::ExpectReply(const Reply* reply, uint16_t* slot) {
  if (receives_posted_ - receives_used_ <= static_cast<uint32_t>(replies_expected_)) WEFT_MPI_TRY(PostReceive());
  *slot = 0;
  while (pending_[*slot].in_use) ++*slot;  // the caller made sure that there is one
  PendingReply& pending = pending_[*slot];
  pending.in_use = true;
  pending.reply = reply == nullptr ? Reply{} : *reply;
  if (pending.reply.request != nullptr) pending.reply.request->AddPart();
  if (pending.reply.sink.type || pending.reply.filled != nullptr) ++sinks_expected_;
  ++replies_expected_;
  ++device_.expected;
  return {};
}

Error Link::SendMessage(MessageKind kind, uint32_t window, size_t body_bytes, const SendOptions& options) {
  const size_t bytes = kHeaderBytes + body_bytes;
  const auto give_up = [&](Error error) {
    if (options.reply != nullptr && options.reply->filled != nullptr) device_.registrations().Release(options.reply->filled);
    return error;
  };
  if (bytes > kFirstBytes && room_ == kFirstRoom) {
    if (Error error = GrowRoom(); !error.ok()) return give_up(std::move(error));
  }
  MessageHeader header{kind, options.reply != nullptr, 0, window, options.epoch, false, options.promises};
  // Without replies the target could not give back the right to send more. Who has to ask for them sends many.
  if (!header.wants_reply && sent_ - consumed_ >= room_ / 2 && sent_ % std::max(1u, room_ / 4) == 0) {
    header.wants_reply = stalled_ = true;
  }
  header.wants_room = std::exchange(stalled_, false) && room_ < kSlots;
  if (header.wants_reply) {
    if (Error error = ExpectReply(options.reply, &header.reply_slot); !error.ok()) return give_up(std::move(error));
  }
  BufferPool::Buffer message = std::exchange(building_, {});
  WriteHeader(header, {message.bytes, kHeaderBytes});
  uint8_t* copy = inline_bytes_.get() + waiting_count_ * inline_room_;
  ibv_send_wr& request = Add(false);
  request.opcode = IBV_WR_SEND;
  *request.sg_list = {reinterpret_cast<uintptr_t>(message.bytes), static_cast<uint32_t>(bytes), message.key};
  if (bytes <= inline_room_) {
    std::memcpy(copy, message.bytes, bytes);
    request.sg_list->addr = reinterpret_cast<uintptr_t>(copy);
    request.send_flags |= IBV_SEND_INLINE;
    device_.messages().Give(message);
  } else {
    in_flight_[sent_ % kSlots] = message;
  }
  if (options.urgent || header.wants_reply) request.send_flags |= IBV_SEND_SOLICITED;
  if (options.behind_reads && reads_outstanding()) request.send_flags |= IBV_SEND_FENCE;
  ++sent_;
  ++g_counters.window_messages;
  if (Changes(kind)) {
    last_change_ = sent_;
    changes_pending_ = true;
    if (kind != MessageKind::kPut) detours_ = 0;
  }
  last_is_answered_ = header.wants_reply && IsAnsweredAtOnce(kind) && (options.reply == nullptr || options.reply->fenced == 0);
  writes_since_message_ = false;
  waiting_bytes_ += bytes;
  if (!options.waits) return Ring();
  if ((kind == MessageKind::kGet || kind == MessageKind::kGetByWrite) && bytes + kFenceBehindBytes <= inline_room_) {
    get_waits_last_ = true;
    get_header_ = header;
  }
  return RingIfFull();
}

bool Link::MayJoinFence(uint32_t window) const {
  return get_waits_last_ && get_header_.window == window && !reads_outstanding() && replies_expected_ < static_cast<int>(kSlots);
}

Error Link::JoinFence(uint32_t number, bool promises, const Reply* reply) {
  FenceBehind fence{.number = number, .promises = promises, .asks = reply != nullptr};
  if (reply != nullptr) {
    WEFT_MPI_TRY(ExpectReply(reply, &fence.reply_slot));
    pending_[get_header_.reply_slot].fence_slot = fence.reply_slot;
  }
  ibv_sge& piece = waiting_[waiting_count_ - 1].piece;
  auto* const message = reinterpret_cast<uint8_t*>(piece.addr);
  get_header_.with_fence = true;
  WriteHeader(get_header_, {message, kHeaderBytes});
  piece.length += static_cast<uint32_t>(WriteFenceBehind(fence, {message + piece.length, kFenceBehindBytes}));
  return Ring();
}

Error Link::SendPlain(MessageKind kind, uint32_t window, const SendOptions& options) {
  uint8_t* room;
  WEFT_MPI_TRY(BeginMessage(&room));
  return SendMessage(kind, window, 0, options);
}

Error Link::AwaitChanges() {
  if (!changes_pending_) return {};
  if (!last_is_answered_) {
    const Reply none;
    WEFT_MPI_TRY(SendPlain(MessageKind::kNothing, 0, {.reply = &none}));
  }
  WEFT_MPI_TRY(Ring());
  device_.Await([this] { return broken() || !changes_pending_; });
  return broken() ? failure() : Error();
}

// --- flushing ---

Error Link::StartFlush(bool remote, Mark* mark) {
  if (broken()) return failure();
  // A message under way that asks for a lock may stay for long, and tells nothing.
  const bool will_tell = sent_ != consumed_ && last_is_answered_ && !writes_since_message_;
  uint32_t messages = consumed_;
  if (remote && (changes_pending_ || will_tell)) {
    // The reply to a message behind the Writes proves both.
    if (!will_tell) {
      const Reply none;
      WEFT_MPI_TRY(SendPlain(MessageKind::kNothing, 0, {.reply = &none}));
    }
    messages = sent_;
    writes_unproved_ = false;
  } else if (remote && writes_unproved_) {
    WEFT_MPI_TRY(Read(device_.proof(), device_.proof_key(), said_.control_address, said_.control_key, kProofBytes));
    writes_unproved_ = false;
  }
  WEFT_MPI_TRY(Ring());
  if (local_ > signaled_) {  // nothing behind it would tell
    WEFT_MPI_TRY(WaitForRoom());
    WEFT_MPI_TRY(PostEmptyWrite(true));
  }
  *mark = {local_, messages, remote};
  return {};
}

bool Link::Flushed(const Mark& mark) const {
  if (broken()) return true;
  if (completed() < mark.number || sinks_expected_ > 0) return false;
  return !mark.remote || static_cast<int32_t>(consumed_ - mark.messages) >= 0;
}

// --- completions ---

void Link::OnCompletion(const ibv_wc& completion) {
  if (broken()) return;
  if (completion.status != IBV_WC_SUCCESS) {
    if (completion.status == IBV_WC_WR_FLUSH_ERR) return Break("it closed the connection");
    return Break(ibv_wc_status_str(completion.status));
  }
  if (RequestId::IsReceive(completion.wr_id)) {
    ++receives_used_;
    const BufferPool::Buffer reply = std::exchange(receives_[RequestId::IndexOf(completion.wr_id)], {});
    OnReply(reply.bytes, completion.byte_len);
    device_.messages().Give(reply);
    return;
  }
  order_.Completed(RequestId::NumberOf(completion.wr_id, posted_));
  --uncompleted_;
  --device_.expected;
  while (!local_completions_.empty() && local_completions_.front().number <= completed()) {
    LocalCompletion done = std::move(local_completions_.front());
    local_completions_.pop_front();
    FinishLocal(done, {});
  }
}

void Link::OnReply(const uint8_t* bytes, size_t size) {
  const auto header = ParseReply({bytes, size});
  const auto has_fence = [this](uint16_t get) {
    const uint16_t slot = pending_[get].fence_slot;
    return slot != kNoSlot && pending_[slot].in_use && pending_[slot].reply.fenced != 0;
  };
  if (!header || !pending_[header->reply_slot].in_use || (header->of_fence && !has_fence(header->reply_slot)) || sent_ - header->consumed > sent_ - consumed_ ||
      header->room < room_) {
    return Break("it sent a reply without a request");
  }
  room_ = header->room;
  Consumed(header->consumed);
  if (changes_pending_ && static_cast<int32_t>(consumed_ - last_change_) >= 0) {
    changes_pending_ = false;
    detours_ = 0;
  }
  const uint16_t fence_slot = header->of_fence ? pending_[header->reply_slot].fence_slot : kNoSlot;
  FinishReply(pending_[header->reply_slot], {}, {bytes + kReplyBytes, size - kReplyBytes}, header->status);
  if (fence_slot != kNoSlot && !broken()) FinishReply(pending_[fence_slot], {}, {}, ReplyStatus::kDone);
  if (greeting()) state_ = State::kUp;
}

// The target has dealt with this many messages.
void Link::Consumed(uint32_t messages) {
  for (; consumed_ != messages; ++consumed_) {
    BufferPool::Buffer& buffer = in_flight_[consumed_ % kSlots];
    if (buffer.bytes != nullptr) device_.messages().Give(std::exchange(buffer, {}));
  }
}

void Link::FinishReply(PendingReply& pending, const Error& error, ByteSpan data, ReplyStatus status) {
  Reply reply = std::move(pending.reply);
  pending = {};
  --replies_expected_;
  --device_.expected;
  Error outcome = error;
  if (status == ReplyStatus::kOutOfRange) {
    outcome = Error(MPI_ERR_RMA_RANGE, "the memory at the target is not attached to the window");
    if (reply.out_of_range != nullptr) *reply.out_of_range = true;
  }
  if (reply.sink.type) {
    --sinks_expected_;
    const bool filled = outcome.ok() && status == ReplyStatus::kDone;
    if (filled && data.size() != reply.sink.bytes) {
      Break("a reply has the wrong length");
      outcome = failure();
    } else if (filled) {
      TypeCursor cursor(reply.sink.buffer, reply.sink.count, *reply.sink.type);
      cursor.Seek(reply.sink.position);
      Unpack(cursor, data);
    }
  }
  if (reply.filled != nullptr) {
    --sinks_expected_;
    device_.registrations().Release(reply.filled);
  }
  if (reply.fenced != 0 && error.ok()) device_.service().OnFenceReply(reply.fenced, process_, reply.fence, status);
  if (reply.waiter != nullptr) {
    reply.waiter->bytes = std::min(data.size(), sizeof reply.waiter->data);
    std::copy_n(data.begin(), reply.waiter->bytes, reply.waiter->data);
    reply.waiter->status = status;
    reply.waiter->failed = broken();
    reply.waiter->done = true;
  }
  if (reply.request != nullptr) reply.request->PartDone(std::move(outcome));
}

void Link::FinishLocal(LocalCompletion& completion, const Error& error) {
  if (completion.bounce.bytes != nullptr) {
    if (completion.sink.type && error.ok()) {
      TypeCursor cursor(completion.sink.buffer, completion.sink.count, *completion.sink.type);
      cursor.Seek(completion.sink.position);
      Unpack(cursor, {completion.bounce.bytes, completion.sink.bytes});
    }
    completion.pool->Give(completion.bounce);
  }
  if (completion.registration != nullptr) device_.registrations().Release(completion.registration);
  if (completion.request != nullptr) completion.request->PartDone(error);
}

void Link::Break(std::string why) {
  if (state_ == State::kBroken) return;
  state_ = State::kBroken;
  why_ = std::move(why);
  device_.SetDead(process_);
  device_.expected -= std::exchange(uncompleted_, 0);
  waiting_count_ = 0;
  const Error error = failure();
  while (!local_completions_.empty()) {
    LocalCompletion completion = std::move(local_completions_.front());
    local_completions_.pop_front();
    FinishLocal(completion, error);
  }
  for (PendingReply& pending : pending_) {
    if (pending.in_use) FinishReply(pending, error, {}, ReplyStatus::kDone);
  }
  Progress::Wake();
}

}  // namespace weft::mpi::rma
