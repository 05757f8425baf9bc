#include "mpi_hybrid/dynamic/ports.h"

#include <mpi.h>

#include <optional>
#include <span>
#include <utility>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "mpi_hybrid/comm/context_pool.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/dynamic/parting.h"
#include "mpi_hybrid/p2p/message.h"

namespace weft::mpi {
namespace {

constexpr ContextId kPortContext = 2 * ContextPool::kPorts;
constexpr int32_t kMostPorts = 1 << 28;  // numbers; tags of their own

const Datatype& Bytes() { return *Datatype::Find(MPI_BYTE); }
ProcessTable& Processes() { return ThisJob().processes; }

Error BadPort(const std::string& why) { return Error(MPI_ERR_PORT, why); }

// Between this process and `process`; kept connected for as long as it is there.
Ref<Comm> MakePair(ProcessId process, ContextId receive, ContextId send) {
  Ref<Comm> pair = MakeRef<Comm>();
  pair->local = MakeGroup({Processes().self()});
  pair->remote = MakeGroup({process});
  pair->inter = true;
  pair->receive_context = receive;
  pair->send_context = send;
  pair->HoldMembers();
  return pair;
}

// With a context of its own to receive by.
Error MakeBridge(ProcessId process, ContextId send, Ref<Comm>* bridge) {
  const auto id = TheContextPool().Take();
  if (!id) return Error(MPI_ERR_OTHER, "no context id is free; free some communicators");
  *bridge = MakePair(process, ContextPool::ContextOf(*id), send);
  (*bridge)->owns_context = true;
  return {};
}

template <typename Done>
void WaitUntil(Done done, Ports::Deadline deadline) {
  if (deadline) {
    Progress::WaitUntil(done, *deadline);
  } else {
    Progress::WaitUntil(done);
  }
}

}  // namespace

Ports& Ports::Instance() {
  static Ports& ports = *new Ports;
  return ports;
}

Ports::Ports() : knocks_(MakeRef<Comm>()) {
  knocks_->local = MakeGroup({Processes().self()});
  knocks_->remote = MakeGroup({});
  knocks_->inter = true;
  knocks_->receive_context = kPortContext;
  StartParting();
  Progress::AddStage(this);
}

Error Ports::Open(std::string* name) {
  WEFT_MPI_TRY(ListenForOthers());
  Cards cards;
  WEFT_MPI_TRY(ThisJob().CardsOf(Processes().self(), &cards));
  if (cards.empty()) return Error(MPI_ERR_OTHER, "no other process can reach this one");
  while (open_.contains(next_number_)) next_number_ = (next_number_ + 1) % kMostPorts;
  PortName port{.owner = Processes().own_name(),
                .number = next_number_,
                .secret = JobSecret::Random(),
                .key = cards.begin()->first,
                .card = cards.begin()->second};
  *name = port.ToString();
  if (name->size() > PortName::kLongest) return Error(MPI_ERR_INTERN, "the address of this process is too long for a port's name: " + port.card);
  Processes().OpenDoor(Bond::Of(port.secret));
  open_.emplace(next_number_, std::move(port));
  next_number_ = (next_number_ + 1) % kMostPorts;
  return {};
}

Error Ports::FindOpen(const std::string& name, PortName* port) const {
  const auto asked = PortName::Parse(name);
  if (!asked) return BadPort("'" + name + "' is not the name of a port");
  const auto found = asked->owner == Processes().own_name() ? open_.find(asked->number) : open_.end();
  if (found == open_.end() || found->second.secret != asked->secret)
    return BadPort("port " + std::to_string(asked->number) + " of " + asked->owner.ToString() + " is not open at this process");
  *port = found->second;
  return {};
}

Error Ports::Close(const std::string& name) {
  PortName port{.owner = {}, .number = 0, .secret = JobSecret::Random(), .key = {}, .card = {}};
  WEFT_MPI_TRY(FindOpen(name, &port));
  open_.erase(port.number);
  closed_.push_back(port.number);
  if (closed_.size() > kMostClosed) closed_.pop_front();
  Processes().CloseDoor(Bond::Of(port.secret).id);
  knocks_seen_ = 0;  // those who wait are looked for
  Poll();
  return {};
}

// --- messages ---

void Ports::ForgetSent() {
  std::erase_if(sending_, [](const std::unique_ptr<Sending>& one) {
    if (one->request != nullptr && !one->request->complete) return false;
    if (one->request != nullptr) one->request->Release();
    return true;
  });
}

Error Ports::Say(Comm& comm, int tag, const Said& said, Sending** sending) {
  ForgetSent();
  auto one = std::make_unique<Sending>();
  ByteWriter writer(one->bytes);
  writer.U32(static_cast<uint32_t>(said.word));
  writer.U32(said.context);
  WEFT_MPI_TRY(StartSend(one->bytes, kMessage, Bytes(), 0, tag, comm, SendMode::kStandard, Channel::kPointToPoint,
                         &one->request));
  if (sending != nullptr) *sending = one.get();
  sending_.push_back(std::move(one));
  return {};
}

namespace {

std::optional<std::pair<uint32_t, ContextId>> ParseWords(std::span<const uint8_t> bytes) {
  ByteReader reader(bytes);
  const uint32_t word = reader.U32();
  const ContextId context = reader.U32();
  if (word < 1 || word > 5 || context >= ContextPool::kContexts || context % 2 != 0) return std::nullopt;
  return std::pair(word, context);
}

}  // namespace

// The next message on `comm`, tag 0. An error: the other is gone.
Error Ports::Hear(Comm& comm, Said* said, Deadline deadline, bool* heard) {
  uint8_t bytes[kMessage] = {};
  Request* receive = nullptr;
  WEFT_MPI_TRY(StartReceive(bytes, kMessage, Bytes(), 0, 0, comm, Channel::kPointToPoint, &receive));
  WaitUntil([&] { return receive->complete; }, deadline);
  if (!receive->complete) (void)receive->Cancel();
  Progress::Wait(*receive);
  *heard = !IsCancelled(receive->status);
  const Error error = std::move(receive->error);
  receive->Release();
  if (!error.ok() || !*heard) return error;
  const auto words = ParseWords(bytes);
  if (!words) return Error(MPI_ERR_OTHER, "it says something that does not belong there");
  *said = {.word = static_cast<Word>(words->first), .context = words->second};
  return {};
}

std::optional<Ports::Knock> Ports::TakeKnock(int tag) {
  for (;;) {
    bool found = false;
    Request* message = nullptr;
    MPI_Status status;
    if (!MatchedProbe(MPI_ANY_SOURCE, tag, *knocks_, &found, &message, &status).ok() || !found) return std::nullopt;
    const ProcessId process = SourceOf(*message);
    uint8_t bytes[kMessage] = {};
    Request* receive = nullptr;
    Error error = StartMatchedReceive(bytes, kMessage, Bytes(), message, &receive);
    if (!error.ok()) continue;
    Progress::Wait(*receive);
    const bool whole = receive->error.ok() && GetCount(receive->status) == kMessage;
    receive->Release();
    const auto words = ParseWords(bytes);
    if (whole && words && !IsDead(process)) return Knock{.process = process, .context = words->second};
  }
}

void Ports::TakeWithdrawals(int32_t number) {
  while (const auto knock = TakeKnock(number + kWithdrawTag)) withdrawn_.emplace(knock->process, knock->context);
}

void Ports::TellClosed(const Knock& knock) {
  const Ref<Comm> way = MakePair(knock.process, kPortContext, knock.context);
  (void)Say(*way, 0, {.word = Word::kClosed, .context = 0});
}

// Who knocks at a port that is closed learns so. What was said and has gone out no longer holds the other's process: it would outlive MPI_Comm_disconnect.
bool Ports::Poll() {
  ForgetSent();
  if (KnocksSoFar() == knocks_seen_) return false;
  knocks_seen_ = KnocksSoFar();
  bool moved = false;
  for (const int32_t number : closed_) {
    while (const auto knock = TakeKnock(number)) {
      TellClosed(*knock);
      moved = true;
    }
    TakeWithdrawals(number);
  }
  return moved;
}

// --- meeting ---

bool Ports::IsThere(int tag) {
  bool found = false;
  MPI_Status status;
  return Probe(MPI_ANY_SOURCE, tag, *knocks_, &found, &status).ok() && found;
}

// Whether the one who knocked is still there.
Error Ports::AwaitGo(int32_t number, const Knock& knock, Comm& bridge, Deadline deadline, bool* came) {
  uint8_t bytes[kMessage] = {};
  Request* receive = nullptr;
  WEFT_MPI_TRY(StartReceive(bytes, kMessage, Bytes(), 0, 0, bridge, Channel::kPointToPoint, &receive));
  for (;;) {
    WaitUntil([&] { return receive->complete || IsThere(number + kWithdrawTag); }, deadline);
    if (receive->complete || (deadline && Clock::now() >= *deadline)) break;
    TakeWithdrawals(number);
    if (withdrawn_.contains({knock.process, knock.context})) break;
  }
  if (!receive->complete) (void)receive->Cancel();
  Progress::Wait(*receive);
  const auto words = ParseWords(bytes);
  *came = receive->error.ok() && words && words->first == static_cast<uint32_t>(Word::kGo);
  receive->Release();
  withdrawn_.erase({knock.process, knock.context});
  return {};
}

Error Ports::Accept(const std::string& name, Deadline deadline, Ref<Comm>* bridge) {
  PortName port{.owner = {}, .number = 0, .secret = JobSecret::Random(), .key = {}, .card = {}};
  WEFT_MPI_TRY(FindOpen(name, &port));
  for (;;) {
    WaitUntil([&] { return IsThere(port.number); }, deadline);
    TakeWithdrawals(port.number);
    const auto knock = TakeKnock(port.number);
    if (!knock && deadline && Clock::now() >= *deadline) return BadPort("nobody connected to the port in time");
    if (!knock || withdrawn_.erase({knock->process, knock->context}) != 0) continue;
    WEFT_MPI_TRY(MakeBridge(knock->process, knock->context, bridge));
    bool came = false;
    Error met = Say(**bridge, 0, {.word = Word::kAccept, .context = (*bridge)->receive_context});
    if (met.ok()) met = AwaitGo(port.number, *knock, **bridge, deadline, &came);
    if (met.ok() && came) return {};
    *bridge = nullptr;
  }
}

Error Ports::Connect(const std::string& name, Deadline deadline, Ref<Comm>* bridge) {
  const auto port = PortName::Parse(name);
  if (!port) return BadPort("'" + name + "' is not the name of a port");
  if (port->owner == Processes().own_name()) return BadPort("the port is this process's own");
  WEFT_MPI_TRY(ListenForOthers());
  const auto known = Processes().Find(port->owner);
  const ProcessId process = known ? *known : Processes().Add(port->owner, Bond::Of(port->secret), {{port->key, port->card}});
  WEFT_MPI_TRY(MakeBridge(process, kPortContext, bridge));
  const Ref<Comm> door = MakePair(process, kPortContext, kPortContext);
  const ContextId context = (*bridge)->receive_context;
  const auto failed = [&](const std::string& why) {
    *bridge = nullptr;
    return BadPort("port " + std::to_string(port->number) + " of " + port->owner.ToString() + ": " + why);
  };
  if (Error error = Say(*door, port->number, {.word = Word::kKnock, .context = context}); !error.ok())
    return failed(error.message());
  Said said;
  bool heard = false;
  if (Error error = Hear(**bridge, &said, deadline, &heard); !error.ok()) return failed(error.message());
  if (!heard) {
    // What may still come is not for who gets the context next.
    (*bridge)->owns_context = false;
    (void)Say(*door, port->number + kWithdrawTag, {.word = Word::kWithdraw, .context = context});
    return failed("nobody accepted in time");
  }
  if (said.word == Word::kClosed) return failed("it is closed");
  if (said.word != Word::kAccept) return failed("it says something that does not belong there");
  (*bridge)->send_context = said.context;
  return Say(**bridge, 0, {.word = Word::kGo, .context = 0});
}

}  // namespace weft::mpi
