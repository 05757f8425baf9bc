#include "mpi_hybrid/coll/schedule_request.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "mpi_hybrid/coll/spanning.h"
#include "mpi_hybrid/coll/tags.h"
#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/p2p/progress.h"

namespace weft::mpi {
namespace {

constexpr size_t kMostIdle = 16;  // schedules in the pool

std::vector<ScheduleRequest*>& Pool() {
  static auto* pool = new std::vector<ScheduleRequest*>;  // outlives every static destructor
  return *pool;
}

// Progress of nonblocking collectives. Registered while there are any.
class Stage final : public ProgressStage {
 public:
  void Add(ScheduleRequest* request) {
    active_.push_back(request);
    if (registered_) return;
    registered_ = true;
    Progress::AddStage(this);
  }

  bool Poll() override {
    if (polling_) return false;  // a schedule's own step polls
    polling_ = true;
    bool moved = false;
    for (size_t i = 0; i < active_.size();) {  // Advance may add
      if (!active_[i]->CanAdvance()) {
        ++i;
        continue;
      }
      moved = true;
      ScheduleRequest* request = active_[i];
      request->Advance();
      if (!request->complete) {
        ++i;
        continue;
      }
      active_.erase(active_.begin() + static_cast<ptrdiff_t>(i));
      request->Release();
    }
    polling_ = false;
    if (active_.empty()) {
      registered_ = false;
      Progress::RemoveStage(this);
    }
    return moved;
  }

  bool Arm() override {
    return std::none_of(active_.begin(), active_.end(),
                        [](const ScheduleRequest* request) { return request->CanAdvance(); });
  }
  int fd() const override { return -1; }

 private:
  std::vector<ScheduleRequest*> active_;  // a reference each
  bool registered_ = false;
  bool polling_ = false;
};

Stage& TheStage() {
  static auto* stage = new Stage;
  return *stage;
}

}  // namespace

ScheduleRequest* ScheduleRequest::Make(Comm& comm) {
  ScheduleRequest* request;
  if (Pool().empty()) {
    request = new ScheduleRequest;
  } else {
    request = Pool().back();
    Pool().pop_back();
    request->AddRef();
  }
  request->comm = Ref<Comm>(&comm);
  request->status = EmptyStatus();
  request->tag_ = tags::TakeNext(comm);
  return request;
}

void ScheduleRequest::Recycle() {
  schedule.Clear();
  if (persistent || Pool().size() >= kMostIdle) {
    delete this;
    return;
  }
  complete = false;
  active = true;
  error = Error();
  first_error_ = Error();
  spoiled_ = excused_ = false;
  sends_count_ = true;
  comm = nullptr;
  next_ = 0;
  pending_.clear();
  Pool().push_back(this);
}

void ScheduleRequest::MakePersistent() {
  persistent = true;
  active = false;
  tag_ = tags::Persistent(tag_);
}

Error ScheduleRequest::Start() {
  if (!persistent) return Request::Start();
  active = true;
  complete = false;
  error = Error();
  first_error_ = Error();
  spoiled_ = excused_ = false;
  next_ = 0;
  Launch();
  return {};
}

void ScheduleRequest::Launch() {
  Advance();
  if (complete) return;
  AddRef();
  TheStage().Add(this);
}

bool ScheduleRequest::Advance() {
  bool moved = false;
  while (true) {
    while (!pending_.empty() && pending_.back().request->complete) {
      const Pending done = pending_.back();
      pending_.pop_back();
      Collect(done);
      moved = true;
    }
    if (!pending_.empty()) return moved;
    if (AtEnd()) break;
    StartRound();
    moved = true;
  }
  error = std::move(first_error_);
  Complete();
  return true;
}

void ScheduleRequest::StartRound() {
  const std::vector<Step>& steps = schedule.steps();
  while (next_ < steps.size()) {
    const Step& step = steps[next_++];
    if (step.kind == Step::Kind::kEndOfRound) return;
    if (step.kind == Step::Kind::kSend || step.kind == Step::Kind::kReceive)
      Begin(step);
    else
      Local(step);
  }
}

Error ScheduleRequest::RunToEnd() {
  const std::vector<Step>& steps = schedule.steps();
  while (!AtEnd()) {
    const Step& step = steps[next_++];
    const bool last = AtEnd() || steps[next_].kind == Step::Kind::kEndOfRound;
    if (step.kind == Step::Kind::kSend || step.kind == Step::Kind::kReceive) {
      if (last)
        Direct(step);
      else
        Begin(step);
    } else if (step.kind != Step::Kind::kEndOfRound) {
      Local(step);
    }
    if (last || step.kind == Step::Kind::kEndOfRound) WaitForRound();
  }
  return std::move(first_error_);
}

void ScheduleRequest::WaitForRound() {
  while (!pending_.empty()) {
    const Pending pending = pending_.back();
    Progress::Wait(*pending.request);
    pending_.pop_back();
    Collect(pending);
  }
}

int ScheduleRequest::TagOf(const Step& step) const {
  if (step.tag != 0) [[unlikely]]
    return step.tag;
  return step.local ? tags::Local(tag_) : tag_;
}

Channel ScheduleRequest::ChannelOf(const Step& step) {
  return step.tag == 0 ? Channel::kCollective : ChannelBetweenClients(CommOf(step), step.peer, step.tag);
}

MPI_Aint ScheduleRequest::CountToSend(const Step& step) const { return spoiled_ ? 0 : step.count; }

SendMode ScheduleRequest::ModeToSend() const { return excused_ ? SendMode::kExcuse : SendMode::kStandard; }

void ScheduleRequest::Begin(const Step& step) {
  Request* request = nullptr;
  Error failed = step.kind == Step::Kind::kSend
                     ? StartSend(step.from, CountToSend(step), *step.type, step.peer, TagOf(step), CommOf(step),
                                 ModeToSend(), ChannelOf(step), &request)
                     : StartReceive(step.to, step.count, *step.type, step.peer, TagOf(step), CommOf(step),
                                    ChannelOf(step), &request);
  if (!failed.ok()) [[unlikely]]
    return step.kind == Step::Kind::kReceive ? NoteReceive(std::move(failed)) : NoteSend(std::move(failed));
  if (request->complete)
    Collect({request, &step});
  else
    pending_.push_back({request, &step});
}

void ScheduleRequest::Direct(const Step& step) {
  if (step.kind == Step::Kind::kSend) {
    NoteSend(Send(step.from, CountToSend(step), *step.type, step.peer, TagOf(step), CommOf(step), ModeToSend(),
                  ChannelOf(step)));
    return;
  }
  MPI_Status message{};
  Error failed =
      Receive(step.to, step.count, *step.type, step.peer, TagOf(step), CommOf(step), ChannelOf(step), &message);
  if (failed.ok()) return CheckLength(step, message);
  NoteReceive(std::move(failed));
}

void ScheduleRequest::Local(const Step& step) {
  if (step.kind == Step::Kind::kReduce) {
    // Nobody uses what would come of data that did not come, and the program's own function might not bear it.
    if (!spoiled_) [[likely]]
      step.op->Apply(step.from, step.to, step.count, *step.type);
    return;
  }
  if (step.type->dense && step.to_type->dense && step.count * step.type->size <= step.to_count * step.to_type->size) {
    std::memcpy(step.to, step.from, static_cast<size_t>(step.count * step.type->size));
    return;
  }
  Note(CopyTyped(step.from, step.count, *step.type, step.to, step.to_count, *step.to_type));
}

void ScheduleRequest::Collect(const Pending& pending) {
  if (!pending.request->error.ok()) [[unlikely]] {
    if (pending.step->kind == Step::Kind::kReceive)
      NoteReceive(std::move(pending.request->error));
    else
      NoteSend(std::move(pending.request->error));
  } else if (pending.step->kind == Step::Kind::kReceive) {
    CheckLength(*pending.step, pending.request->status);
  }
  pending.request->Release();
}

void ScheduleRequest::CheckLength(const Step& step, const MPI_Status& message) {
  const MPI_Aint expected = step.count * step.type->size;
  if (!step.exact || GetCount(message) == expected) [[likely]]
    return;
  const char* why = GetCount(message) == 0
                        ? ": its part of the collective failed, or the calls at the two ranks do not match"
                        : ": the calls at the two ranks do not match";
  NoteReceive(Error(MPI_ERR_TRUNCATE,
                    "rank " + std::to_string(step.peer) + " sent " + std::to_string(GetCount(message)) +
                        " bytes of a collective of which this rank expects " + std::to_string(expected) + why));
}

void ScheduleRequest::NoteSend(Error error) {
  if (sends_count_) Note(std::move(error));
}

void ScheduleRequest::NoteReceive(Error error) {
  spoiled_ = true;
  const int why = error.mpi_class();
  if (why == MPIX_ERR_PROC_FAILED || why == MPI_ERR_PROC_ABORTED) excused_ = true;
  Note(std::move(error));
}

void ScheduleRequest::Note(Error error) {
  if (!error.ok() && first_error_.ok()) first_error_ = std::move(error);
}

}  // namespace weft::mpi
