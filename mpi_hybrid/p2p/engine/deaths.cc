#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"
#include "mpi_hybrid/core/tool_events.h"
#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/request/news.h"

// Processes that go: they die, or leave in order.
namespace weft::mpi {

bool Engine::IsDead(ProcessId process) const {
  const Link* link = FindLink(process);
  return link != nullptr && link->state() == Link::State::kDead;
}

Error Engine::GoneError(ProcessId process) const {
  const Link* link = FindLink(process);
  if (link == nullptr || !link->is_gone()) return {};
  if (link->state() == Link::State::kDead) return Error(MPIX_ERR_PROC_FAILED, Describe(process) + " died");
  return Error(MPI_ERR_PROC_ABORTED, Describe(process) + " has called MPI_Finalize");
}

std::optional<ProcessId> Engine::Unacknowledged(const Comm& comm) const {
  if (deaths_ == 0) return std::nullopt;
  // Asked at each poll of a receive from anyone: the dead are few, the members may be many.
  for (const ProcessId process : dead_) {
    if (comm.remote->RankOf(process) != MPI_UNDEFINED && !std::binary_search(comm.acknowledged.begin(), comm.acknowledged.end(), process)) return process;
  }
  return std::nullopt;
}

Error Engine::Hindrance(const ReceiveRequest& receive) const {
  if (receive.stage != ReceiveRequest::Stage::kPosted || receive.process != MPI_ANY_SOURCE) return {};
  const std::optional<ProcessId> dead = Unacknowledged(*receive.comm);
  if (!dead) return {};
  return Error(MPIX_ERR_PROC_FAILED_PENDING, GoneError(*dead).message() + "; the receive stays posted for the other processes");
}

std::vector<ProcessId> Engine::GoneOf(const Group& group) const {
  std::vector<ProcessId> gone;
  for (const ProcessId process : group.members) {
    const Link* link = process == self_ ? nullptr : FindLink(process);
    if (link != nullptr && link->is_gone()) gone.push_back(process);
  }
  return gone;
}

bool Engine::NobodyLeft(const Comm& comm) const {
  if (gone_ + 1 < comm.remote->members.size()) return false;  // this process, and all that have gone so far, are fewer
  bool anyone_else = false;
  for (ProcessId process : comm.remote->members) {
    if (process == self_) continue;
    anyone_else = true;
    const Link* link = FindLink(process);
    if (link == nullptr || !link->is_gone()) return false;
  }
  return anyone_else;
}

Error Engine::SourceError(int source, Comm& comm) {
  if (source != MPI_ANY_SOURCE) return GoneError(comm.peer(source));
  if (const std::optional<ProcessId> dead = Unacknowledged(comm)) return GoneError(*dead);
  return NobodyLeftError(comm);
}

Error Engine::NobodyLeftError(const Comm& comm) const {
  if (!NobodyLeft(comm)) return {};
  Error gone;
  for (ProcessId process : comm.remote->members) {
    if (process != self_ && (gone.ok() || IsDead(process))) gone = GoneError(process);
  }
  return gone;
}

void Engine::OnGone(ProcessId process, bool left) {
  Link& link = LinkTo(process);
  if (link.is_gone()) {
    return;  // an end of the connection behind a goodbye
  }
  link.set_gone(left);
  if (on_gone_) on_gone_(process);
  if (!left) ToolEvents::Tell({.kind = ToolEvent::Kind::kProcessDied, .process = process});
  if (left) {
    anyone_left_ = true;
  } else {
    ++deaths_;
    dead_.push_back(process);
    Request::NoteHindrances();
  }
  const Error error = GoneError(process);
  ++gone_;
  std::vector<Message*> arriving, notes;
  link.ForEachInbound([&](Link::Inbound& in) {
    if (in.message != nullptr && in.message->receive != nullptr) arriving.push_back(in.message);
    if (in.message != nullptr && in.message->kind == FrameKind::kNote) notes.push_back(in.message);
  });
  link.Abandon(error);
  for (Message* note : notes) note->Drop();
  for (Message* message : arriving) {
    Fail(*message->receive, error);
    message->Drop();
  }
  sends_.ForEach([&](SendRequest& send) {
    if (send.link == &link) Fail(send, error);
  });
  receives_.ForEach([&](ReceiveRequest& receive) {
    if (receive.link == &link) Fail(receive, error);
  });
  // Messages that cannot be had any more.
  std::vector<Message*> lost;
  ForEachWaiting([&](Message& message) {
    if (message.link == &link && (message.kind == FrameKind::kRequest || message.arrived < message.length)) lost.push_back(&message);
  });
  for (Message* message : lost) {
    RemoveWaiting(*message);
    message->Drop();
  }
  // What is missing before the others will not come.
  while (link.has_streams()) {
    const auto next = link.streams_->arrivals.TakeAny();
    if (!next) break;
    TakeTurn(*next);
  }
  FailPosted(process, error);
  News::Tell();
}

void Engine::Forget(ProcessId process) {
  Link* link = FindLink(process);
  if (link == nullptr) return;
  if (!link->is_gone()) OnGone(process, /*left=*/true);
  std::vector<Message*> unreceived;
  ForEachWaiting([&](Message& message) {
    if (message.link == link) unreceived.push_back(&message);
  });
  for (Message* message : unreceived) {
    RemoveWaiting(*message);
    message->Drop();
  }
  std::erase(with_output_, link);
  std::erase(dead_, process);
  links_[static_cast<size_t>(process)].reset();
}

void Engine::StartAwaiting(const AwaitedProbe& probe) { probes_.push_back(&probe); }

void Engine::StopAwaiting(const AwaitedProbe& probe) { std::erase(probes_, &probe); }

void Engine::OnUnreachable(ProcessId process, const Error& error) {
  ++unreached_;
  Link& link = LinkTo(process);
  if (link.is_gone() || !link.has_output()) return;
  WEFT_CHECK(link.state() == Link::State::kFresh);
  const std::vector<SendRequest*> notes = link.TakeNotes();
  link.credit_ = static_cast<int64_t>(limits_.window);  // nothing was ever sent
  const bool any_message = link.has_output();
  link.Abandon(error);
  // Nobody sends these again: whoever else waits for them would do so for ever.
  for (SendRequest* note : notes) link.Enqueue(note->frame, {.kind = FrameKind::kNote, .length = note->length});
  if (!any_message) return;
  FailPosted(process, error);
  News::Tell();
}

void Engine::FailPosted(ProcessId process, const Error& error) {
  std::vector<ReceiveRequest*> failed;
  posted_.ForEach([&](MatchHook& hook) {
    auto* receive = static_cast<ReceiveRequest*>(hook.owner);
    if (receive->process == process || (receive->process == MPI_ANY_SOURCE && receive->comm->remote->RankOf(process) != MPI_UNDEFINED &&
                                        NobodyLeft(*receive->comm))) {
      failed.push_back(receive);
    }
  });
  std::sort(failed.begin(), failed.end(), [](const auto* a, const auto* b) { return a->hook.sequence < b->hook.sequence; });
  for (ReceiveRequest* receive : failed) {
    RemovePosted(receive->hook);
    Fail(*receive, error);
  }
  RetryEarly();
}

}  // namespace weft::mpi
