#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "mpi_hybrid/coll/make_comm.h"
#include "mpi_hybrid/coll/make_comm_agreement.h"
#include "mpi_hybrid/coll/spanning.h"
#include "mpi_hybrid/p2p/progress.h"

namespace weft::mpi {
namespace {

// A duplication under way: the agreement, over the local group; of intercommunicators then the exchange of the
// contexts.
class DuplicateRequest : public Request {
 public:
  DuplicateRequest(Comm& parent, bool willing)
      : Request(Kind::kCollective),
        agreement_(parent.inter ? *parent.local_comm : parent, parent.inter ? 2 : 1, willing) {
    comm = Ref<Comm>(&parent);
    status = EmptyStatus();
    if (parent.inter) exchange_tag_ = std::make_unique<ReservedTag>(parent);
    const ProcessId self = parent.local->members[static_cast<size_t>(parent.rank)];
    made_ = parent.inter ? MakeInter(parent, parent.local, parent.remote, self) : MakeIntra(parent, parent.local, self);
    made_->is_local_first = parent.is_local_first;
    if (parent.topology != nullptr) made_->topology = std::make_unique<Topology>(*parent.topology);
  }

  const Ref<Comm>& made() const { return made_; }

  // Whether Advance() would do something.
  bool Ready() const {
    const Request* step = waiting_for();
    return step == nullptr || step->complete;
  }
  // As far as possible; completes the request at the end.
  void Advance() {
    bool ended = false;
    error = Step(&ended);
    if (ended || !error.ok()) Complete();
  }

 private:
  const Request* waiting_for() const { return exchange_ != nullptr ? exchange_ : agreement_.waiting_for(); }

  Error Step(bool* ended) {
    if (exchange_ == nullptr) {
      Error agreed = agreement_.Advance();
      if (agreed.ok() && !agreement_.done()) return {};
      if (agreed.ok()) ids_ = agreement_.Take();
      if (!comm->inter) {
        WEFT_MPI_TRY(std::move(agreed));
        ids_.GiveTo(*made_);
        *ended = true;
        return {};
      }
      // Everyone of the other group says the same: the context that this one is to send by.
      words_ = {agreed.ok() ? ids_.context(0) : kNoContext, kNoContext};
      failure_ = std::move(agreed);
      WEFT_MPI_TRY(exchange_tag_->StartAnd(&words_[0], std::span(words_).subspan(1), &exchange_));
    }
    if (!exchange_->complete) return {};
    WEFT_MPI_TRY(Finish({}, exchange_));
    WEFT_MPI_TRY(std::move(failure_));
    if (words_[1] == kNoContext) return RemoteFailed();
    GiveContexts(*made_, std::move(ids_), static_cast<ContextId>(words_[1]),
                 comm->IdentityOfChild(exchange_tag_->tag()));
    *ended = true;
    return {};
  }

  Agreement agreement_;
  std::unique_ptr<ReservedTag> exchange_tag_;
  OwnedIds ids_;
  std::array<uint64_t, 2> words_{};
  Request* exchange_ = nullptr;
  Error failure_;  // of the agreement
  Ref<Comm> made_;
};

// Carries duplications on when one of their operations has ended.
class DuplicateStage : public ProgressStage {
 public:
  static DuplicateStage& Instance() {
    static DuplicateStage* stage = [] {
      auto* made = new DuplicateStage;
      Progress::AddStage(made);
      return made;
    }();
    return *stage;
  }

  // Takes a reference until the request completes.
  void Add(DuplicateRequest* request) {
    request->AddRef();
    active_.push_back(request);
  }

  bool Poll() override {
    if (polling_) return false;  // the start of an operation polls
    polling_ = true;
    bool moved = false;
    for (size_t i = 0; i < active_.size();) {
      DuplicateRequest* request = active_[i];
      if (!request->Ready()) {
        ++i;
        continue;
      }
      moved = true;
      request->Advance();
      if (!request->complete) {
        ++i;
        continue;
      }
      active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
      request->Release();
    }
    polling_ = false;
    return moved;
  }
  bool Arm() override {
    return std::none_of(active_.begin(), active_.end(),
                        [](const DuplicateRequest* request) { return request->Ready(); });
  }
  int fd() const override { return -1; }

 private:
  std::vector<DuplicateRequest*> active_;
  bool polling_ = false;
};

}  // namespace

Error StartDuplicate(Comm& comm, Ref<Comm>* made, Request** request, const Error& refusal) {
  if (comm.clients != nullptr) return CheckWithinClient(comm, "nonblocking duplications");
  auto* duplicate = new DuplicateRequest(comm, refusal.ok());
  *made = duplicate->made();
  duplicate->Advance();
  if (!duplicate->complete) DuplicateStage::Instance().Add(duplicate);
  if (!refusal.ok()) {
    duplicate->Release();
    *made = nullptr;
    return refusal;
  }
  *request = duplicate;
  return {};
}

Error Duplicate(Comm& comm, Ref<Comm>* made, const Error& refusal) {
  if (comm.clients != nullptr) {
    // The protocol cannot say that this process does not take part.
    Error duplicated = DuplicateSpanning(comm, made);
    if (!refusal.ok()) *made = nullptr;
    return refusal.ok() ? std::move(duplicated) : refusal;
  }
  auto* duplicate = new DuplicateRequest(comm, refusal.ok());
  while (duplicate->Advance(), !duplicate->complete) Progress::WaitUntil([&] { return duplicate->Ready(); });
  const Error error = refusal.ok() ? duplicate->error : refusal;
  if (error.ok()) *made = duplicate->made();
  duplicate->Release();
  return error;
}

}  // namespace weft::mpi
