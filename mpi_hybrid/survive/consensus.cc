#include "mpi_hybrid/survive/consensus.h"

#include "base/check.h"

namespace weft::mpi::survive {

using Kind = Message::Kind;

Consensus::Consensus(int self, int size, Outbox& outbox, int fan_out)
    : self_(self),
      size_(size),
      fan_out_(fan_out),
      outbox_(outbox),
      subtree_(Subtree(self)),
      dead_(size),
      gathered_{.words = {}, .voters = RankSet(size)},
      accepted_(size),
      spoke_(size),
      heard_(size),
      proposed_to_(size) {}

RankSet Consensus::Subtree(int root) const {
  RankSet below(size_);
  below.Add(root);
  for (int rank = root + 1; rank < size_; ++rank) {
    if (below.Has(ParentOf(rank))) below.Add(rank);
  }
  return below;
}

void Consensus::Vote(const std::vector<uint64_t>& words) {
  WEFT_CHECK(!own_);
  own_ = words;
  gathered_.Count(self_, words);
  Step();
}

void Consensus::OnDead(int rank) {
  if (rank == self_ || dead_.Has(rank)) return;
  dead_.Add(rank);
  Step();
}

void Consensus::OnMessage(int from, const Message& message) {
  if (message.kind == Kind::kDecide) return Decide(message.ballot);
  if (decision_) return outbox_.Send(from, {.kind = Kind::kDecide, .ballot = *decision_});
  switch (message.kind) {
    case Kind::kVote:
      spoke_.Add(from);
      gathered_.Merge(message.ballot);
      if (self_ == 0) {
        heard_.AddAll(message.ballot.voters);
        NoteDetour(from, message.ballot.voters);
      } else {
        heard_.Add(from);
      }
      break;
    case Kind::kAdopted:
      spoke_.Add(from);
      heard_.Add(from);
      if (!latest_ || latest_->proposer < message.proposer) latest_ = {message.proposer, message.ballot};
      break;
    case Kind::kAccept:
      spoke_.Add(from);
      if (message.proposer == accepted_of_) accepted_.AddAll(message.ballot.voters);
      NoteDetour(from, message.ballot.voters);
      break;
    case Kind::kAsk:
    case Kind::kPropose:
      OnCall(from, message);
      break;
    case Kind::kDecide:
      break;
  }
  Step();
}

// Of a coordinator, or what rank 0 says passed on. Whoever coordinates knows that all before it are dead. One that is dead itself has been asked about already,
// perhaps: what it proposes comes too late.
void Consensus::OnCall(int from, const Message& message) {
  const int coordinator = message.kind == Kind::kAsk ? from : message.proposer;
  if (coordinator < Coordinator() || (coordinator != from && coordinator != 0)) return;
  for (int rank = 0; rank < coordinator; ++rank) {
    if (rank != self_) dead_.Add(rank);
  }
  if (message.kind == Kind::kAsk) is_asked_ = true;
  if (message.kind == Kind::kPropose && own_ && coordinator < self_) Adopt(coordinator, message.ballot);
}

void Consensus::Adopt(int proposer, const Ballot& ballot) {
  if (adopted_ && adopted_->proposer == proposer) return;
  adopted_ = {proposer, ballot};
  if (accepted_of_ != proposer) accepted_ = RankSet(size_);
  accepted_of_ = proposer;
  accepted_.Add(self_);
  if (proposer == 0) {
    SendToLiving({.kind = Kind::kPropose, .proposer = 0, .ballot = ballot}, [&](int rank) { return IsChild(rank); });
  }
}

void Consensus::NoteDetour(int from, const RankSet& spoken_for) {
  if (self_ == 0 && (!IsChild(from) || !spoken_for.HasAll(Subtree(from)))) speaks_to_each_ = true;
}

void Consensus::Step() {
  if (decision_ || !own_) return;
  const int coordinator = Coordinator();
  if (coordinator == self_) return Coordinate();
  if (adopted_ && adopted_->proposer != coordinator) {
    return Say(coordinator, {.kind = Kind::kAdopted, .proposer = adopted_->proposer, .ballot = adopted_->ballot}, 1);
  }
  const RankSet& counted = Counted();
  if (!IsBesideTree() && !counted.HasAll(subtree_)) return;
  const int to = IsBesideTree() ? coordinator : ParentOf(self_);
  if (adopted_) {
    Say(to, {.kind = Kind::kAccept, .proposer = coordinator, .ballot = {.words = {}, .voters = counted}}, counted.Count());
  } else {
    Say(to, {.kind = Kind::kVote, .ballot = gathered_}, counted.Count());
  }
}

void Consensus::Say(int to, const Message& message, int ranks) {
  const Said now{.to = to, .kind = message.kind, .proposer = message.proposer, .ranks = ranks};
  if (now == said_) return;
  said_ = now;
  outbox_.Send(to, message);
}

void Consensus::Coordinate() {
  if (self_ != 0 || KnowsOfDeaths()) speaks_to_each_ = true;
  if (speaks_to_each_ && !asked_) {
    asked_ = true;
    // Who has nobody below it and rank 0 above speaks to that one anyway.
    SendToLiving({.kind = Kind::kAsk}, [&](int rank) { return self_ == 0 ? !IsChild(rank) || !IsLeaf(rank) : !heard_.Has(rank); });
  }
  if (!proposed_) {
    heard_.Add(self_);
    if (adopted_ && (!latest_ || latest_->proposer < adopted_->proposer)) latest_ = adopted_;
    if (!AllLivingIn(heard_)) return;
    proposed_ = true;
    adopted_ = {self_, latest_ ? latest_->ballot : Choose()};
    accepted_of_ = self_;
    accepted_ = RankSet(size_);
    accepted_.Add(self_);
  }
  Propose();
  if (AllLivingIn(accepted_)) Decide(adopted_->ballot);
}

// To whoever is not known to have heard it.
void Consensus::Propose() {
  SendToLiving({.kind = Kind::kPropose, .proposer = self_, .ballot = adopted_->ballot}, [&](int rank) {
    if (proposed_to_.Has(rank) || accepted_.Has(rank) || (!speaks_to_each_ && !IsChild(rank))) return false;
    proposed_to_.Add(rank);
    return true;
  });
}

// Who voted and died is no voter.
Ballot Consensus::Choose() const {
  Ballot ballot = gathered_;
  ballot.voters.Remove(dead_);
  return ballot;
}

void Consensus::Decide(const Ballot& ballot) {
  if (decision_) return;
  decision_ = ballot;
  // Others wait for this one where it coordinates, where they are below it, or where they spoke to it; whoever finds later that they should asks.
  const bool to_all = own_ && Coordinator() == self_ && speaks_to_each_;
  SendToLiving({.kind = Kind::kDecide, .ballot = ballot}, [&](int rank) { return to_all || IsChild(rank) || spoke_.Has(rank); });
}

bool Consensus::Awaits(int rank) const {
  if (decision_ || !own_ || rank == self_ || dead_.Has(rank)) return false;
  const int coordinator = Coordinator();
  const RankSet& counted = coordinator == self_ && !proposed_ ? heard_ : Counted();
  if (coordinator == self_ && speaks_to_each_) return !counted.Has(rank);
  if (IsBesideTree()) return rank == coordinator;
  if (IsChild(rank)) return !counted.HasAll(Subtree(rank));
  return self_ != 0 && rank == ParentOf(self_);
}

template <typename Wanted>
void Consensus::SendToLiving(const Message& message, Wanted wanted) {
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != self_ && !dead_.Has(rank) && wanted(rank)) outbox_.Send(rank, message);
  }
}

bool Consensus::AllLivingIn(const RankSet& set) const {
  for (int rank = 0; rank < size_; ++rank) {
    if (!dead_.Has(rank) && !set.Has(rank)) return false;
  }
  return true;
}

}  // namespace weft::mpi::survive
