#include "mpi_hybrid/dynamic/ports.h"

#include <mpi.h>

#include <algorithm>
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
  open_.emplace(next_number_, Port{.name = std::move(port), .knocks = {}, .accepted = {}});
  next_number_ = (next_number_ + 1) % kMostPorts;
  return {};
}

Error Ports::FindOpen(const std::string& name, int32_t* number) const {
  const auto asked = PortName::Parse(name);
  if (!asked) return BadPort(PortName::WhyRefused(name));
  const auto found = asked->owner == Processes().own_name() ? open_.find(asked->number) : open_.end();
  if (found == open_.end() || found->second.name.secret != asked->secret)
    return BadPort("port " + std::to_string(asked->number) + " of " + asked->owner.ToString() + " is not open at this process");
  *number = asked->number;
  return {};
}

Ports::Port* Ports::Find(int32_t number) {
  const auto found = open_.find(number);
  return found == open_.end() ? nullptr : &found->second;
}

// Callers that wait are told, also those that have said go.
Error Ports::Close(const std::string& name) {
  int32_t number = 0;
  WEFT_MPI_TRY(FindOpen(name, &number));
  TakeMessages();
  const auto closed = open_.extract(number);
  for (const Knock& knock : closed.mapped().knocks) Answer(knock, Word::kClosed);
  for (const auto& caller : closed.mapped().accepted) Answer(caller->knock, Word::kClosed);
  Processes().CloseDoor(Bond::Of(closed.mapped().name.secret).id);
  return {};
}

// --- messages ---

Ports::Hearing::~Hearing() {
  if (receive == nullptr) return;
  if (!receive->complete) (void)receive->Cancel();
  Progress::Wait(*receive);
  receive->Release();
}

void Ports::ForgetSent() {
  std::erase_if(sending_, [](const std::unique_ptr<Sending>& one) {
    if (one->request != nullptr && !one->request->complete) return false;
    if (one->request != nullptr) one->request->Release();
    return true;
  });
}

Error Ports::Say(Comm& comm, int tag, const Said& said) {
  ForgetSent();
  auto one = std::make_unique<Sending>();
  ByteWriter writer(one->bytes);
  writer.U32(static_cast<uint32_t>(said.word));
  writer.U32(said.context);
  WEFT_MPI_TRY(StartSend(one->bytes, kMessage, Bytes(), 0, tag, comm, SendMode::kStandard, Channel::kPointToPoint,
                         &one->request));
  sending_.push_back(std::move(one));
  return {};
}

namespace {

std::optional<std::pair<uint32_t, ContextId>> ParseWords(std::span<const uint8_t> bytes) {
  ByteReader reader(bytes);
  const uint32_t word = reader.U32();
  const ContextId context = reader.U32();
  if (word < 1 || word > 6 || context >= ContextPool::kContexts || context % 2 != 0) return std::nullopt;
  return std::pair(word, context);
}

}  // namespace

Error Ports::StartHearing(Hearing& hearing) {
  if (hearing.receive != nullptr) hearing.receive->Release();
  hearing.receive = nullptr;
  return StartReceive(hearing.bytes, kMessage, Bytes(), 0, 0, *hearing.bridge, Channel::kPointToPoint, &hearing.receive);
}

// The next message on `comm`, tag 0. An error: the other is gone.
Error Ports::Hear(Comm& comm, Said* said, Deadline deadline, bool* heard) {
  Hearing hearing{.bridge = Ref<Comm>(&comm), .knock = {}};
  WEFT_MPI_TRY(StartHearing(hearing));
  WaitUntil([&] { return hearing.receive->complete; }, deadline);
  if (!hearing.receive->complete) (void)hearing.receive->Cancel();
  Progress::Wait(*hearing.receive);
  *heard = !IsCancelled(hearing.receive->status);
  if (!hearing.receive->error.ok() || !*heard) return std::move(hearing.receive->error);
  const auto words = ParseWords(hearing.bytes);
  if (!words) return Error(MPI_ERR_OTHER, "it sent an invalid message");
  *said = {.word = static_cast<Word>(words->first), .context = words->second};
  return {};
}

void Ports::Answer(const Knock& knock, Word word) {
  (void)Say(*knock.way, 0, {.word = word, .context = 0});
}

// Whether a message to a port has come. A caller that stops in the middle of one holds nobody up.
bool Ports::TakeMessages() {
  bool moved = false;
  for (;;) {
    bool found = false;
    Request* message = nullptr;
    MPI_Status status;
    if (!MatchedProbe(MPI_ANY_SOURCE, MPI_ANY_TAG, *knocks_, &found, &message, &status).ok() || !found) break;
    auto coming = std::make_unique<Hearing>();
    coming->knock.process = SourceOf(*message);
    if (StartMatchedReceive(coming->bytes, kMessage, Bytes(), message, &coming->receive).ok()) messages_.push_back(std::move(coming));
  }
  for (auto at = messages_.begin(); at != messages_.end();) {
    if (!(*at)->receive->complete) {
      ++at;
      continue;
    }
    const std::unique_ptr<Hearing> came = std::move(*at);
    at = messages_.erase(at);
    TakeMessage(*came);
    moved = true;
  }
  return moved;
}

void Ports::TakeMessage(const Hearing& message) {
  const MPI_Status& status = message.receive->status;
  const auto words = ParseWords(message.bytes);
  if (!message.receive->error.ok() || GetCount(status) != kMessage || !words || IsDead(message.knock.process)) return;
  const Knock knock{.process = message.knock.process, .context = words->second, .way = MakePair(message.knock.process, kPortContext, words->second)};
  if (status.MPI_TAG >= kWithdrawTag) return Withdraw(status.MPI_TAG - kWithdrawTag, knock);
  if (Port* const port = Find(status.MPI_TAG)) {
    std::erase_if(port->knocks, [](const Knock& other) { return IsDead(other.process); });
    port->knocks.push_back(knock);
  } else {
    Answer(knock, Word::kClosed);
  }
}

// One that is not there has been answered.
void Ports::Withdraw(int32_t number, const Knock& knock) {
  Port* const port = Find(number);
  if (port == nullptr) return;
  if (std::erase(port->knocks, knock) + port->accepted.remove_if([&](const auto& caller) { return caller->knock == knock; }) > 0)
    Answer(knock, Word::kClosed);
}

// What was said and has gone out no longer holds the other's process: it would outlive MPI_Comm_disconnect.
bool Ports::Poll() {
  ForgetSent();
  const bool moved = ForgetLeft();
  if (KnocksSoFar() == knocks_seen_ && messages_.empty()) return moved;
  knocks_seen_ = KnocksSoFar();
  return TakeMessages() || moved;
}

// --- meeting ---

// Accepts the first of the callers that wait and live; false: there is none.
Error Ports::AcceptNext(Port& port, bool* accepted) {
  *accepted = false;
  while (!port.knocks.empty()) {
    const Knock knock = port.knocks.front();
    port.knocks.pop_front();
    if (IsDead(knock.process)) continue;
    auto caller = std::make_unique<Hearing>();
    caller->knock = knock;
    if (Error error = MakeBridge(knock.process, knock.context, &caller->bridge); !error.ok()) {
      port.knocks.push_front(knock);
      return error;
    }
    if (!Say(*caller->bridge, 0, {.word = Word::kAccept, .context = caller->bridge->receive_context}).ok()) continue;
    if (!StartHearing(*caller).ok()) continue;
    port.accepted.push_back(std::move(caller));
    *accepted = true;
    return {};
  }
  return {};
}

// The bridge to a caller that has said go; null: none has. Those that have died are dropped.
Ref<Comm> Ports::TakeGo(Port& port) {
  for (auto at = port.accepted.begin(); at != port.accepted.end();) {
    if (!(*at)->receive->complete) {
      ++at;
      continue;
    }
    const std::unique_ptr<Hearing> caller = std::move(*at);
    at = port.accepted.erase(at);
    const auto words = ParseWords(caller->bytes);
    if (!caller->receive->error.ok() || !words || words->first != static_cast<uint32_t>(Word::kGo)) continue;
    if (!Say(*caller->bridge, 0, {.word = Word::kMet, .context = 0}).ok()) continue;
    return caller->bridge;
  }
  return {};
}

Error Ports::Accept(const std::string& name, Deadline deadline, Ref<Comm>* bridge) {
  int32_t number = 0;
  WEFT_MPI_TRY(FindOpen(name, &number));
  Deadline next;  // until then the caller that was accepted last comes first
  for (;;) {
    Port* const port = Find(number);
    if (port == nullptr) return BadPort("port " + std::to_string(number) + " was closed by another thread");
    *bridge = TakeGo(*port);
    if (*bridge) return {};
    const Clock::time_point now = Clock::now();
    if (deadline && now >= *deadline) return BadPort("no process connected to the port in time");
    if (next && now >= *next) next.reset();
    bool accepted = false;
    if (!next) WEFT_MPI_TRY(AcceptNext(*port, &accepted));
    if (accepted) next = now + kGoPatience;
    const bool may_accept = !next;
    WaitUntil(
        [&] {
          Port* const open = Find(number);
          if (open == nullptr || (may_accept && !open->knocks.empty())) return true;
          return std::any_of(open->accepted.begin(), open->accepted.end(), [](const auto& caller) { return caller->receive->complete; });
        },
        !next ? deadline : deadline ? std::min(*deadline, *next) : next);
  }
}

// The caller has withdrawn its knock. Nothing more comes in the bridge's context behind the answer, or the other's death.
void Ports::LeaveTo(Ref<Comm> bridge) {
  auto left = std::make_unique<Hearing>();
  left->bridge = std::move(bridge);
  if (StartHearing(*left).ok()) left_.push_back(std::move(left));
}

bool Ports::ForgetLeft() {
  const auto is_over = [&](const std::unique_ptr<Hearing>& left) {
    if (!left->receive->complete) return false;
    const auto words = ParseWords(left->bytes);
    const bool accepted = left->receive->error.ok() && words && words->first == static_cast<uint32_t>(Word::kAccept);
    return !accepted || !StartHearing(*left).ok();
  };
  return std::erase_if(left_, is_over) > 0;
}

Error Ports::Connect(const std::string& name, Deadline deadline, Ref<Comm>* bridge) {
  const auto port = PortName::Parse(name);
  if (!port) return BadPort(PortName::WhyRefused(name));
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
  const auto withdraw = [&] { (void)Say(*door, port->number + kWithdrawTag, {.word = Word::kWithdraw, .context = context}); };
  if (Error error = Hear(**bridge, &said, deadline, &heard); !error.ok()) return failed(error.message());
  if (!heard) {
    withdraw();
    LeaveTo(std::move(*bridge));
    return failed("it was not accepted in time");
  }
  if (said.word == Word::kClosed) return failed("it is closed");
  if (said.word != Word::kAccept) return failed("it sent an invalid message");
  (*bridge)->send_context = said.context;
  if (Error error = Say(**bridge, 0, {.word = Word::kGo, .context = 0}); !error.ok()) return failed(error.message());
  if (Error error = Hear(**bridge, &said, deadline, &heard); !error.ok()) return failed(error.message());
  if (!heard) {
    withdraw();
    if (Error error = Hear(**bridge, &said, std::nullopt, &heard); !error.ok()) return failed(error.message());
    if (said.word == Word::kClosed) return failed("it was not accepted in time");
  }
  if (said.word == Word::kClosed) return failed("it is closed");
  return said.word == Word::kMet ? Error() : failed("it sent an invalid message");
}

}  // namespace weft::mpi
