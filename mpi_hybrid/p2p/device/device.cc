#include "mpi_hybrid/p2p/device/device.h"

#include <errno.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/file_limit.h"

namespace weft::mpi {
namespace {

// A receive from anyone watches those that follow in the communicator, no more: a connection to each member would take
// a descriptor for each at each. Every member is watched by as many.
constexpr size_t kMostWatchedOfAny = 16;
// Every wire has its turn in so many polls, however busy those before it are.
constexpr uint32_t kAllEvery = 4;

}  // namespace

Device::Device(Engine& engine)
    : engine_(engine),
      partings_(
          engine, [this](const Link& link) -> Transport& { return TransportOf(link); },
          [this](ProcessId process) {
            if (static_cast<size_t>(process) < routes_.size()) routes_[static_cast<size_t>(process)] = nullptr;
          }),
      told_dead_(engine, [this](const Link& link) -> Transport& { return TransportOf(link); }) {
  loop_.Add(partings_);
  loop_.Add(told_dead_);
}

Error Device::Listen() {
  for (const auto& transport : transports_) WEFT_MPI_TRY(transport->Listen());
  return {};
}

void Device::Add(std::unique_ptr<Transport> transport) {
  loop_.Add(*transport);
  transport->set_presence(&presence_);
  transports_.push_back(std::move(transport));
}

Error Device::Start() {
  RaiseFileLimit();
  if (!loop_.Open()) return Error(MPI_ERR_OTHER, "cannot create a descriptor for events: " + DescribeShortage(errno));
  for (const auto& transport : transports_) WEFT_MPI_TRY(transport->Start());
  return {};
}

Transport& Device::Choose(const Link& link) {
  const ProcessId process = link.peer();
  const auto chosen = std::find_if(transports_.begin(), transports_.end(),
                                   [&](const auto& transport) { return transport->Reaches(process); });
  WEFT_CHECK(chosen != transports_.end());
  const size_t at = static_cast<size_t>(process);
  if (at >= routes_.size()) routes_.resize(at + 1);
  routes_[at] = chosen->get();
  return **chosen;
}

bool Device::Poll() {
  bool moved = false;
  const bool all = ++polls_ % kAllEvery == 0;
  for (const auto& transport : transports_) {
    moved |= transport->Poll();
    // Who waits for what came is served before another wire is asked.
    if (moved && !all) break;
  }
  moved |= FetchPart();
  if (!partings_.empty()) moved |= partings_.Advance(Clock::now());
  if (!told_dead_.empty()) moved |= told_dead_.Advance(Clock::now(), moved);
  return Flush() | moved;
}

bool Device::FetchPart() {
  if (!engine_.has_fetches()) [[likely]] return false;
  engine_.FetchPart();
  return true;
}

bool Device::FlushAll() {
  bool moved = false;
  std::vector<Link*>& links = engine_.with_output();
  while (!links.empty()) {
    Link* link = links.back();
    links.pop_back();
    if (!link->is_gone() && link->has_output()) moved |= TransportOf(*link).Flush(*link);
  }
  return moved;
}

void Device::Leave() {
  for (const auto& transport : transports_) transport->OnLeaving();
}

bool Device::Sleep(int timeout_ms) {
  bool armed = !engine_.has_fetches();
  for (const auto& transport : transports_) armed &= transport->Arm();
  const bool ready = loop_.Sleep(armed ? timeout_ms : 0);
  for (const auto& transport : transports_) transport->OnAwake();
  if (!armed) {
    for (const auto& transport : transports_) transport->Poll();
  }
  if (!partings_.empty()) partings_.Advance(Clock::now());
  if (!told_dead_.empty()) told_dead_.Advance(Clock::now(), ready || !armed);
  Flush();
  return ready || !armed;
}

void Device::ConnectToAwaited() {
  std::vector<ProcessId> processes;
  engine_.ForEachAwaited([&](ProcessId process, const Comm& comm) {
    if (process != MPI_ANY_SOURCE) {
      processes.push_back(process);
      return;
    }
    const std::vector<ProcessId>& members = comm.remote->members;
    const size_t count = std::min(members.size(), kMostWatchedOfAny);
    for (size_t i = 1; i <= count; ++i)
      processes.push_back(members[(static_cast<size_t>(comm.rank) + i) % members.size()]);
  });
  std::sort(processes.begin(), processes.end());
  processes.erase(std::unique(processes.begin(), processes.end()), processes.end());
  for (ProcessId process : processes) ConnectTo(process);
}

void Device::OnToldDead(ProcessId process) {
  if (process == engine_.self()) return;
  Link& link = engine_.LinkTo(process);
  if (link.is_gone()) return;
  if (TransportOf(link).IsConnected(link)) return told_dead_.Add(process);
  engine_.OnGone(process, /*left=*/false);
}

void Device::ConnectTo(ProcessId process) {
  if (process == engine_.self()) return;
  Link& link = engine_.LinkTo(process);
  if (link.state() == Link::State::kFresh) TransportOf(link).Connect(link);
}

// --- the end ---

// The good-byes, to each peer as soon as it has what is for it.
class Device::Farewell {
 public:
  explicit Farewell(Device& device) : device_(device) {}

  // To those for whom and from whom nothing is under way (the sender of what a receive still gets, whose request the program freed, waits for the end of
  // it), or to all. Who said it first needs none.
  void Say(bool all) {
    ForEachOpen([&](Link& link, Stage& stage) {
      if (stage != Stage::kTalks || (!all && (link.unfinished_sends != 0 || link.cleared != 0 || link.has_output()))) return;
      if (!link.is_gone()) link.SendControl({.kind = FrameKind::kGoodbye});
      stage = Stage::kSaid;
    });
    device_.Flush();
    EndWritten(/*all=*/false);
  }
  // Ends the output to those who were sent the good-bye, or to all.
  void EndWritten(bool all) {
    ForEachOpen([&](Link& link, Stage& stage) {
      if (stage == Stage::kEnded || (!all && (stage != Stage::kSaid || link.has_output()))) return;
      device_.TransportOf(link).EndOutput(link);
      stage = Stage::kEnded;
    });
  }
  bool AllEnded() {
    bool all = true;
    ForEachOpen([&](Link&, Stage& stage) { all &= stage == Stage::kEnded; });
    return all;
  }

 private:
  enum class Stage : uint8_t { kTalks, kSaid, kEnded };

  template <typename Visit>
  void ForEachOpen(Visit visit) {
    device_.engine_.ForEachLink([&](Link& link) {
      const size_t at = static_cast<size_t>(link.peer());
      if (at >= stages_.size()) stages_.resize(at + 1);
      if (link.is_open() || link.state() == Link::State::kLeft) visit(link, stages_[at]);
    });
  }

  Device& device_;
  std::vector<Stage> stages_;  // by process
};

bool Device::HasConnections() const {
  return std::any_of(transports_.begin(), transports_.end(),
                     [](const auto& transport) { return transport->HasConnections(); });
}

// Polls until `done` or until nothing moved for `patience`.
template <typename Done>
void Device::PollUntil(Done done, std::chrono::milliseconds patience) {
  Clock::time_point last = Clock::now();
  while (!done()) {
    bool moved = FetchPart(), armed = true;
    for (const auto& transport : transports_) moved |= transport->Poll();
    for (const auto& transport : transports_) armed &= transport->Arm();
    moved |= loop_.Dispatch(armed && !moved ? 10 : 0);
    for (const auto& transport : transports_) transport->OnAwake();
    moved |= Flush();
    if (moved) {
      last = Clock::now();
    } else if (Clock::now() - last > patience) {
      return;
    }
  }
}

void Device::Stop(std::chrono::milliseconds patience) {
  Flush();
  Farewell farewell(*this);
  PollUntil(
      [&] {
        farewell.Say(/*all=*/false);
        return !engine_.HasUnfinishedSends() && farewell.AllEnded();
      },
      patience);
  for (const auto& transport : transports_) transport->StopConnecting();
  farewell.Say(/*all=*/true);
  PollUntil(
      [&] {
        farewell.EndWritten(/*all=*/false);
        return farewell.AllEnded();
      },
      patience);
  farewell.EndWritten(/*all=*/true);
  // A connection closed with data unread would take back what the other has not read yet. Who connects now is told,
  // too.
  PollUntil(
      [&] {
        farewell.Say(/*all=*/true);
        return !HasConnections();
      },
      patience);
  for (const auto& transport : transports_) transport->Close();
}

}  // namespace weft::mpi
