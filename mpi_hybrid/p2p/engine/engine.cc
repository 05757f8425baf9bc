#include "mpi_hybrid/p2p/engine/engine.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"
#include "mpi_hybrid/core/counters.h"
#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/datatype/external32.h"
#include "mpi_hybrid/datatype/signature.h"
#include "mpi_hybrid/core/tool_events.h"
#include "mpi_hybrid/p2p/engine/packed.h"
#include "mpi_hybrid/p2p/engine/pool.h"
#include "mpi_hybrid/p2p/request/external_count.h"
#include "mpi_hybrid/p2p/request/news.h"

namespace weft::mpi {
namespace {

MatchKey ReceiveKey(int source, int tag, const Comm& comm, Channel channel) {
  return {comm.receive_context + static_cast<uint32_t>(channel), source, tag};
}

void SetType(const Datatype& type, const Datatype** pointer, Ref<const Datatype>* reference) {
  *pointer = &type;
  if (!type.builtin) *reference = Ref<const Datatype>(&type);
}

ReceiveRequest* NewReceive(Engine* engine, void* buffer, MPI_Aint count, const Datatype& type, Comm* comm) {
  ReceiveRequest* receive = Pool<ReceiveRequest>::Take();
  receive->engine = engine;
  receive->comm = Ref<Comm>(comm);
  SetType(type, &receive->type, &receive->type_reference);
  receive->payload = Payload(buffer, count, type);
  receive->capacity = receive->payload.left();
  receive->buffer = buffer;
  receive->count = count;
  receive->AddRef();
  return receive;
}

// A message into a derived type with gaps that ends within a basic element has another signature (MPI 4.0 section 3.3.1). The class is MPICH's, and as
// there data of dense types are bytes in a row: MPI_Get_count tells of a part of an element.
void CheckWholeElements(ReceiveRequest& receive) {
  if (!receive.error.ok() || BasicsIn(static_cast<MPI_Aint>(receive.length), *receive.type) != MPI_UNDEFINED) return;
  receive.error = Error(MPI_ERR_TRUNCATE, "the message from rank " + std::to_string(receive.status.MPI_SOURCE) + " with tag " + std::to_string(receive.status.MPI_TAG) +
                                              " has " + std::to_string(receive.length) + " bytes, which end within an element of the receive's type");
}

// For MPI_T. `waiting`: messages that do, with this one.
void TellOfUnexpected(const Message& message, size_t waiting) {
  ++g_counters.unexpected_messages;
  g_counters.unexpected_most = std::max<uint64_t>(g_counters.unexpected_most, waiting);
  ToolEvents::Tell({.kind = ToolEvent::Kind::kUnexpectedMessage,
                    .source = message.envelope.source,
                    .tag = message.envelope.tag,
                    .context = message.envelope.context,
                    .bytes = message.length});
}

}  // namespace

Engine::~Engine() {
  // Messages that nobody received; MPI_Finalize does not ask for it.
  std::vector<Message*> waiting;
  ForEachWaiting([&](Message& message) { waiting.push_back(&message); });
  for (Message* message : waiting) {
    (message->early ? early_ : waiting_).Remove(message->hooks);
    message->Drop();
  }
}

Link& Engine::LinkTo(ProcessId process) {
  WEFT_CHECK(process >= 0 && process != self_);
  const size_t at = static_cast<size_t>(process);
  if (at >= links_.size()) links_.resize(at + 1);
  if (links_[at] == nullptr) {
    links_[at] = std::make_unique<Link>(*this, process);
    if (on_link_) on_link_(*links_[at]);
  }
  return *links_[at];
}

std::string Engine::Describe(ProcessId process) const {
  return describe_ ? describe_(process) : "rank " + std::to_string(process) + " of MPI_COMM_WORLD";
}

// --- sends ---

Error Engine::StartSend(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm,
                        SendMode mode, Channel channel, Request** request) {
  if (comm.revoked) return RevokedError();
  const ProcessId process = comm.peer(destination);
  Link* link = nullptr;
  if (process != self_) {
    link = &LinkTo(process);
    if (link->state() > Link::State::kOpen) [[unlikely]] {
      if (link->is_gone()) return GoneError(process);
      return StartForeign(*link, buffer, count, type, tag, comm, mode, channel, request);
    }
  }
  SendRequest* send = NewSend(link, count, type, comm, mode);
  send->payload = Payload(buffer, count, type);
  send->length = send->payload.left();
  send->buffer = buffer;
  send->external = IsPackedForClients(type, comm);
  *request = send;

  const MatchKey envelope = {comm.send_context + static_cast<uint32_t>(channel), comm.rank, tag};
  send->frame.flow = Link::FlowOf(comm, envelope.context, tag);
  if (link == nullptr) {
    SendToSelf(*send, envelope);
    return {};
  }
  // A wire through memory of the host gathers pieces for nothing more than their copy, while the peer copies those before. Packed data wait for one another.
  const bool packs = link->lane() == nullptr ? send->payload.fine_grained() : send->payload.very_fine_grained();
  if (packs) std::swap(send->payload, send->fine_grained);
  SendOrAnnounce(*send, envelope);
  return {};
}

SendRequest* Engine::NewSend(Link* link, MPI_Aint count, const Datatype& type, Comm& comm, SendMode mode) {
  SendRequest* send = Pool<SendRequest>::Take();
  send->engine = this;
  send->link = link;
  send->comm = Ref<Comm>(&comm);
  SetType(type, &send->type, &send->type_reference);
  send->count = count;
  send->synchronous = mode == SendMode::kSynchronous;
  send->excuse = mode == SendMode::kExcuse;
  send->AddRef();
  ++unfinished_sends_;
  if (link != nullptr) ++link->unfinished_sends;
  return send;
}

void Engine::SendOrAnnounce(SendRequest& send, const MatchKey& envelope) {
  ++g_counters.messages_sent;
  g_counters.bytes_sent += send.length;
  if (send.length <= limits_.eager && send.link->HasCredit(Link::CostOf(send.length))) {
    SendEager(send, envelope);
  } else {
    Announce(send, envelope);
  }
}

Error Engine::StartForeign(Link& link, const void* buffer, MPI_Aint count, const Datatype& type, int tag, Comm& comm, SendMode mode, Channel channel,
                           Request** request) {
  if (channel != Channel::kPointToPoint && channel != Channel::kCollective) {
    return Error(MPI_ERR_UNSUPPORTED_OPERATION, "IMPI has no partitioned communication; use it between processes of one client");
  }
  if (tag > foreign_tag_bound_) {
    return Error(MPI_ERR_TAG, "tag " + std::to_string(tag) + " is above MPI_TAG_UB, " + std::to_string(foreign_tag_bound_) +
                                  ", the least tag bound of the clients of this IMPI job");
  }
  SendRequest* send = NewSend(&link, count, type, comm, mode);
  send->length = static_cast<size_t>(ExternalSize(count, type));
  if (IsSameInExternal(type)) {
    send->payload = Payload(buffer, send->length);
  } else {
    send->packed.reset(new uint8_t[send->length]);  // not zeroed: it will be written first
    if (send->length != 0) PackExternal(buffer, count, type, send->packed.get());
    send->payload = Payload(send->packed.get(), send->length);
  }
  *request = send;
  SendOrAnnounce(*send, {comm.send_context + static_cast<uint32_t>(channel), comm.rank, tag});
  return {};
}

Request* Engine::ContinueSend(Link& link, const FrameHeader& header, const Payload& payload, size_t written, const Datatype& type,
                              Comm& comm) {
  SendRequest* send = Pool<SendRequest>::Take();
  send->engine = this;
  send->link = &link;
  send->comm = Ref<Comm>(&comm);
  SetType(type, &send->type, &send->type_reference);
  send->length = header.length;
  if (payload.fine_grained()) {
    send->fine_grained = payload;
    send->PackNext(send->length);
  } else {
    send->payload = payload;
  }
  if (written > FrameHeader::kLength) send->payload.Advance(written - FrameHeader::kLength);
  send->frame.flow = Link::FlowOf(comm, header.context, header.tag);
  send->eager = true;
  send->stage = SendRequest::Stage::kQueued;
  send->frame.send = send;
  send->frame.body = send->payload.left();
  send->AddRef();
  ++unfinished_sends_;
  ++link.unfinished_sends;
  link.EnqueueRest(send->frame, header, written);
  return send;
}

namespace {

uint8_t UnusualData(const SendRequest& send) {
  return static_cast<uint8_t>((send.excuse ? kFlagExcuse : 0) | (send.external ? kFlagExternal : 0));
}
uint8_t FlagsOf(const SendRequest& send) { return static_cast<uint8_t>((send.synchronous ? kFlagSynchronous : 0) | UnusualData(send)); }

}  // namespace

void Engine::SendEager(SendRequest& send, const MatchKey& envelope) {
  FrameHeader header = {.kind = FrameKind::kEager,
                        .flags = FlagsOf(send),
                        .context = envelope.context,
                        .tag = envelope.tag,
                        .source = envelope.source,
                        .length = send.length};
  send.PackNext(send.length);
  send.eager = true;
  send.stage = SendRequest::Stage::kQueued;
  if (send.synchronous) {
    send.id = sends_.Add(&send);
    header.send_id = send.id;
  }
  send.frame.send = &send;
  send.frame.body = send.payload.left();
  send.link->TakeCredit(Link::CostOf(header.length));
  send.link->Enqueue(send.frame, header);
}

void Engine::Announce(SendRequest& send, const MatchKey& envelope) {
  send.id = sends_.Add(&send);
  send.stage = SendRequest::Stage::kQueued;
  send.frame.send = &send;
  send.frame.body = 0;
  send.link->Enqueue(send.frame, {.kind = FrameKind::kRequest,
                                  .flags = UnusualData(send),
                                  .context = envelope.context,
                                  .tag = envelope.tag,
                                  .source = envelope.source,
                                  .send_id = send.id,
                                  .length = send.length});
}

void Engine::SendToSelf(SendRequest& send, const MatchKey& envelope) {
  const size_t length = send.payload.left();
  ReceiveRequest* receive = TakePosted(envelope);
  Message* message = Pool<Message>::Take();
  message->envelope = envelope;
  message->length = length;
  message->unusual = UnusualData(send);
  if (receive == nullptr && !send.synchronous && length <= limits_.eager && self_stored_ + length <= limits_.window) {
    send.payload.Take({message->Allocate(length), length});
    message->arrived = length;
    self_stored_ += length;
    Finish(send);
  } else {
    message->send = &send;
    send.self = message;
    send.stage = SendRequest::Stage::kAnnounced;
  }
  if (receive != nullptr) {
    Give(*message, *receive);
  } else {
    waiting_.Append(envelope, message->hooks, message);
    TellOfUnexpected(*message, unexpected());
    News::Tell();
  }
  RetryEarly();
}

void Engine::Finish(SendRequest& send) {
  if (send.id != 0) sends_.Remove(std::exchange(send.id, 0));
  send.stage = SendRequest::Stage::kDone;
  --unfinished_sends_;
  if (send.link != nullptr) --send.link->unfinished_sends;
  send.Complete();
  send.Release();
}

void Engine::Fail(SendRequest& send, const Error& error) {
  send.error = error;
  Finish(send);
}

void Engine::FinishCancelled(SendRequest& send) {
  SetCancelled(send.status, true);
  Finish(send);
}

bool Engine::CancelSend(SendRequest& send) {
  using Stage = SendRequest::Stage;
  if (send.stage == Stage::kQueued && send.link != nullptr && send.link->Dequeue(send.frame)) {
    if (send.eager) send.link->ReturnCredit(Link::CostOf(send.length));
    FinishCancelled(send);
    return true;
  }
  if (send.stage == Stage::kAnnounced && send.link == nullptr) {
    if (send.self->taken) return false;
    waiting_.Remove(send.self->hooks);
    send.self->Drop();
    FinishCancelled(send);
    return true;
  }
  // What is partly written goes out, and the question behind it. Without an id the other side need not match it for the send to complete.
  const bool asks = send.stage == Stage::kAnnounced || send.stage == Stage::kMatching || (send.stage == Stage::kQueued && send.id != 0);
  if (!send.cancelling && asks && send.link != nullptr) {
    send.cancelling = true;
    // On the stream of the message, which it must not overtake.
    send.link->SendControl({.kind = FrameKind::kCancel, .send_id = send.id}, send.frame.flow);
  }
  return false;
}

SendRequest* Engine::SendOf(const Link& link, uint32_t id) const {
  SendRequest* send = sends_.Find(id);
  return send != nullptr && send->link == &link ? send : nullptr;
}

// --- receives ---

Error Engine::StartReceive(void* buffer, MPI_Aint count, const Datatype& type, int source, int tag, Comm& comm, Channel channel,
                           Request** request) {
  if (comm.revoked) return RevokedError();
  const MatchKey key = ReceiveKey(source, tag, comm, channel);
  Message* message = FindWaiting(key);
  if (message == nullptr && (deaths_ != 0 || anyone_left_)) WEFT_MPI_TRY(NobodySends(source, comm));
  ReceiveRequest* receive = NewReceive(this, buffer, count, type, &comm);
  receive->key = key;
  receive->process = source == MPI_ANY_SOURCE ? MPI_ANY_SOURCE : comm.peer(source);
  *request = receive;
  if (message != nullptr) {
    TakeOut(*message);
    Give(*message, *receive);
  } else {
    receive->stage = ReceiveRequest::Stage::kPosted;
    receive->hook.owner = receive;
    posted_.Append(key, receive->hook);
  }
  return {};
}

Error Engine::NobodySends(int source, const Comm& comm) const {
  return source == MPI_ANY_SOURCE ? NobodyLeftError(comm) : GoneError(comm.peer(source));
}

Error Engine::MayReceive(int source, int tag, Comm& comm, Channel channel) const {
  if (comm.revoked) return RevokedError();
  if ((deaths_ == 0 && !anyone_left_) || FindWaiting(ReceiveKey(source, tag, comm, channel)) != nullptr) [[likely]] return {};
  return NobodySends(source, comm);
}

// --- messages that came before one that was sent earlier (arrivals.h) ---
//
// The missing one has another tag, since those of one tag keep their order; which, nobody knows. So an early message may
// have the earliest receive that matches it if that says the tag: the missing one does not match it. A receive of any
// tag is the missing one's, perhaps, and all that were posted behind it and match the early message wait with it.

ReceiveRequest* Engine::TakePostedForEarly(const MatchKey& envelope) {
  MatchHook* hook = posted_.Find(envelope);
  if (hook == nullptr || posted_.TakesAnyTag(*hook)) return nullptr;
  posted_.Remove(*hook);
  return static_cast<ReceiveRequest*>(hook->owner);
}

Message* Engine::FindWaiting(const MatchKey& key) const {
  auto* message = static_cast<Message*>(waiting_.Find(key));
  return message != nullptr || early_.size() == 0 ? message : FindEarly(key);
}

// The same for a receive that is posted now.
Message* Engine::FindEarly(const MatchKey& key) const {
  if (key.tag == MPI_ANY_TAG) return nullptr;
  return static_cast<Message*>(early_.FindIf(
      key, [this](void* owner) { return posted_.Find(static_cast<Message*>(owner)->envelope) == nullptr; }));
}

void Engine::RemoveWaiting(Message& message) {
  if (!message.early) return waiting_.Remove(message.hooks);
  early_.Remove(message.hooks);
  message.early = false;
  message.link->streams_->arrivals.Put(message.turn, nullptr);
}

void Engine::LookAtEarly(Link& link, uint32_t context) {
  if (link.has_streams() && link.streams_->arrivals.early() != 0) {
    while (const auto next = link.streams_->arrivals.TakeNext(Arrivals::GroupOf(context))) TakeTurn(*next);
  }
  RetryEarly();
}

// One that was early and waited, whose turn it is; null: it did not wait.
void Engine::TakeTurn(Message* message) {
  if (message == nullptr) return;
  early_.Remove(message->hooks);
  message->early = false;
  if (ReceiveRequest* receive = TakePosted(message->envelope)) {
    message->taken = true;
    Give(*message, *receive);
  } else {
    waiting_.Append(message->envelope, message->hooks, message);
    News::Tell();
  }
}

// Where a receive of any tag went there may be one now that an early message can have.
void Engine::RetryEarly() {
  if (!std::exchange(wild_taken_, false)) return;
  std::vector<Message*> early;
  early_.ForEach([&](void* owner) { early.push_back(static_cast<Message*>(owner)); });
  for (Message* message : early) {
    ReceiveRequest* receive = TakePostedForEarly(message->envelope);
    if (receive == nullptr) continue;
    TakeOut(*message);
    Give(*message, *receive);
  }
}

Message* Engine::Store(const FrameHeader& header, Link& link, const Arrivals::Early* turn) {
  Message* message = Pool<Message>::Take();
  message->envelope = {header.context, header.source, header.tag};
  message->length = header.length;
  message->link = &link;
  message->kind = header.kind;
  message->synchronous = (header.flags & kFlagSynchronous) != 0;
  message->unusual = header.flags & kUnusualData;
  message->send_id = header.send_id;
  if (header.kind == FrameKind::kEager) message->Allocate(header.length);
  message->early = turn != nullptr;
  if (turn != nullptr) {
    message->turn = *turn;
    link.streams_->arrivals.Put(*turn, message);
  }
  (message->early ? early_ : waiting_).Append(message->envelope, message->hooks, message);
  if (header.context == 2 * ContextPool::kPorts) ++knocks_;
  TellOfUnexpected(*message, unexpected());
  News::Tell();  // for probes
  return message;
}

Message* Engine::FindMessage(int source, int tag, Comm& comm) {
  return FindWaiting(ReceiveKey(source, tag, comm, Channel::kPointToPoint));
}

MPI_Status Engine::StatusOf(const Message& message) {
  MPI_Status status{};
  status.MPI_SOURCE = message.envelope.source;
  status.MPI_TAG = message.envelope.tag;
  const MPI_Count external = (message.unusual & kFlagExternal) != 0 ? kExternalCount : 0;
  SetCount(status, static_cast<MPI_Count>(message.length) | external);
  return status;
}

void Engine::TakeOut(Message& message) {
  RemoveWaiting(message);
  message.taken = true;
}

Error Engine::ReceiveTaken(void* buffer, MPI_Aint count, const Datatype& type, Message& message, Comm* comm, Request** request) {
  if (message.link != nullptr && message.link->is_gone() && (message.kind == FrameKind::kRequest || message.arrived < message.length)) {
    Error error = GoneError(message.link->peer());
    message.Drop();
    return error;
  }
  ReceiveRequest* receive = NewReceive(this, buffer, count, type, comm);
  *request = receive;
  Give(message, *receive);
  return {};
}

void Engine::Give(Message& message, ReceiveRequest& receive) {
  receive.Matched(message.envelope, message.length, message.unusual);
  if (message.send != nullptr) {
    SendRequest& send = *message.send;
    const uint64_t length = message.length;
    message.Drop();
    if (receive.external != nullptr) {
      send.payload.Take({receive.external, static_cast<size_t>(std::min(length, receive.capacity))});
    } else if (receive.capacity != 0 && receive.error.ok()) {
      receive.error = CopyTyped(send.buffer, send.count, *send.type, receive.buffer, receive.count, *receive.type);
    }
    Finish(send);
    Finish(receive);
    return;
  }
  if (message.kind == FrameKind::kRequest) {
    Link& link = *message.link;
    const Announced announced = {.send_id = message.send_id, .length = message.length, .offer = message.offer};
    message.Drop();
    Clear(receive, link, announced);
    return;
  }
  if (message.synchronous && !message.link->is_gone()) {
    message.link->SendControl({.kind = FrameKind::kMatched, .send_id = message.send_id});
  }
  receive.link = message.link;
  receive.stage = ReceiveRequest::Stage::kArriving;
  message.receive = &receive;
  if (message.arrived == message.length) FinishStored(message);
}

void Engine::FinishStored(Message& message) {
  if (message.kind == FrameKind::kNote) return FinishNote(message);
  if (message.receive == nullptr) return;
  ReceiveRequest& receive = *message.receive;
  receive.payload.Fill({message.data, static_cast<size_t>(std::min(message.length, receive.capacity))});
  if (message.link != nullptr) {
    message.link->GiveBack(Link::CostOf(message.length));
  } else {
    self_stored_ -= message.length;
  }
  message.Drop();
  Finish(receive);
}

// Not where a sender that polls, and whose data this process has time to copy (`sends`: it has sends of its own), sends them in less time; nor into so many
// small pieces that a system call over a list of them costs more than another copy.
bool Engine::IsFetched(const ReceiveRequest& receive, const Link& link, const Announced& announced, uint64_t wanted, bool sends) {
  if (announced.offer == 0 || wanted == 0 || link.lane() == nullptr || receive.payload.fine_grained()) return false;
  return sends || !link.lane()->PeerStays();
}

void Engine::Clear(ReceiveRequest& receive, Link& link, const Announced& announced) {
  const uint64_t wanted = std::min(announced.length, receive.capacity);
  receive.link = &link;
  if (!IsFetched(receive, link, announced, wanted, HasUnfinishedSends())) return AskFor(receive, announced.send_id, wanted);
  if (wanted > LibraryLock::kMostCopied && LibraryLock::threads_enabled()) {
    receive.stage = ReceiveRequest::Stage::kFetching;
    receive.ends_slowly = true;
    receive.expected = 0;  // the sender is not asked for any
    receive.id = receives_.Add(&receive);
    ++link.cleared;
    fetches_.push_back({.receive = &receive, .send_id = announced.send_id, .from = announced.offer, .left = wanted});
    return News::Tell();
  }
  Payload to = receive.payload;
  if (!link.lane()->Fetch(to, announced.offer, wanted)) return AskFor(receive, announced.send_id, wanted);
  link.SendControl({.kind = FrameKind::kFetched, .send_id = announced.send_id});
  Finish(receive);
}

void Engine::FetchPart() {
  Fetching& next = fetches_.front();
  ReceiveRequest& receive = *next.receive;
  Link& link = *receive.link;
  const uint64_t part = std::min(next.left, LibraryLock::kMostCopied);
  const bool fetched = link.lane() != nullptr && link.lane()->Fetch(receive.payload, next.from, part);
  next.from += part;
  next.left -= part;
  if (fetched && next.left != 0) return;
  const uint32_t send_id = next.send_id;
  const uint64_t wanted = std::min(receive.length, receive.capacity);
  if (fetched) {
    link.SendControl({.kind = FrameKind::kFetched, .send_id = send_id});
    return Finish(receive);
  }
  // From the begin, as the sender has it.
  StopFetching(receive);
  receive.payload = Payload(receive.buffer, receive.count, *receive.type);
  AskFor(receive, send_id, wanted);
}

void Engine::StopFetching(ReceiveRequest& receive) {
  std::erase_if(fetches_, [&](const Fetching& fetching) { return fetching.receive == &receive; });
  ForgetId(receive);
}

void Engine::ForgetId(ReceiveRequest& receive) {
  receives_.Remove(std::exchange(receive.id, 0));
  --receive.link->cleared;
}

void Engine::AskFor(ReceiveRequest& receive, uint32_t send_id, uint64_t wanted) {
  Link& link = *receive.link;
  receive.stage = ReceiveRequest::Stage::kCleared;
  receive.expected = wanted;
  if (wanted != 0) {
    receive.id = receives_.Add(&receive);
    ++link.cleared;
  }
  link.SendControl({.kind = FrameKind::kClear, .send_id = send_id, .receive_id = receive.id, .length = wanted});
  if (wanted == 0) Finish(receive);
}

void Engine::Finish(ReceiveRequest& receive) {
  if (receive.ends_slowly) [[unlikely]] EndSlowly(receive);
  if (receive.id != 0) ForgetId(receive);
  receive.stage = ReceiveRequest::Stage::kDone;
  if (receive.length > receive.capacity && receive.error.ok()) [[unlikely]] {
    receive.error = Error(MPI_ERR_TRUNCATE, "the message from rank " + std::to_string(receive.status.MPI_SOURCE) + " with tag " +
                                                std::to_string(receive.status.MPI_TAG) + " has " + std::to_string(receive.length) +
                                                " bytes, the receive has room for " + std::to_string(receive.capacity));
  }
  if (receive.length < receive.capacity && receive.type != nullptr && !receive.type->dense) [[unlikely]] CheckWholeElements(receive);
  receive.Complete();
  receive.Release();
}

void Engine::EndSlowly(ReceiveRequest& receive) {
  if (receive.stage == ReceiveRequest::Stage::kFetching) StopFetching(receive);
  if (receive.external != nullptr && receive.error.ok()) receive.Convert();
}

void Engine::Fail(ReceiveRequest& receive, const Error& error) {
  receive.error = error;
  receive.length = 0;
  Finish(receive);
}

void Engine::CancelReceive(ReceiveRequest& receive) {
  if (receive.stage != ReceiveRequest::Stage::kPosted) return;
  RemovePosted(receive.hook);
  receive.status = EmptyStatus();
  SetCancelled(receive.status, true);
  receive.length = 0;
  Finish(receive);
  RetryEarly();
}

ReceiveRequest* Engine::ReceiveOf(const Link& link, uint32_t id) const {
  ReceiveRequest* receive = receives_.Find(id);
  return receive != nullptr && receive->link == &link ? receive : nullptr;
}

bool Engine::WithdrawRequest(Link& link, uint32_t send_id) {
  Message* found = nullptr;
  ForEachWaiting([&](Message& message) {
    if (message.link == &link && message.send_id == send_id &&
        (message.kind == FrameKind::kRequest || (message.synchronous && message.arrived == message.length))) {
      found = &message;
    }
  });
  if (found == nullptr) return false;
  RemoveWaiting(*found);
  if (found->kind == FrameKind::kEager) link.GiveBack(Link::CostOf(found->length));
  found->Drop();
  return true;
}

}  // namespace weft::mpi
