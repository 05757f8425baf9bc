#include "mpi_hybrid/survive/consensus.h"

#include "base/check.h"

namespace weft::mpi::survive {

using Kind = Message::Kind;

Consensus::Consensus(int self, int size, Outbox& outbox)
    : self_(self),
      size_(size),
      outbox_(outbox),
      dead_(size),
      heard_(size),
      accepted_(size),
      votes_(static_cast<size_t>(size)) {}

void Consensus::Vote(const std::vector<uint64_t>& words) {
  WEFT_CHECK(!own_);
  own_ = words;
  Step();
}

void Consensus::OnDead(int rank) {
  if (rank == self_ || dead_.Has(rank)) return;
  dead_.Add(rank);
  Step();
}

void Consensus::OnMessage(int from, const Message& message) {
  if (message.kind == Kind::kDecide) {
    Decide(message.ballot);
    return;
  }
  if (decision_) {
    // An acceptance needs no answer: the decision is on its way already.
    if (message.kind != Kind::kAccept) outbox_.Send(from, {.kind = Kind::kDecide, .ballot = *decision_});
    return;
  }
  switch (message.kind) {
    case Kind::kVote:
      heard_.Add(from);
      votes_[static_cast<size_t>(from)] = message.ballot.words;
      break;
    case Kind::kAdopted:
      heard_.Add(from);
      if (!latest_ || latest_->proposer < message.proposer) latest_ = {message.proposer, message.ballot};
      break;
    case Kind::kAsk:
    case Kind::kPropose:
      // Whoever coordinates knows that all before it are dead. One that is dead itself has been asked about already, perhaps: what it proposes comes too late.
      if (from < Coordinator()) return;
      for (int rank = 0; rank < from; ++rank) {
        if (rank != self_) dead_.Add(rank);
      }
      if (message.kind == Kind::kPropose && own_ && from < self_) {
        adopted_ = {from, message.ballot};
        outbox_.Send(from, {.kind = Kind::kAccept});
      }
      break;
    case Kind::kAccept:
      if (proposed_) accepted_.Add(from);
      break;
    case Kind::kDecide:
      break;
  }
  Step();
}

void Consensus::Step() {
  if (decision_ || !own_) return;
  const int coordinator = Coordinator();
  if (coordinator == self_) return Coordinate();
  if (told_ == coordinator) return;
  told_ = coordinator;
  if (adopted_) {
    outbox_.Send(coordinator, {.kind = Kind::kAdopted, .proposer = adopted_->proposer, .ballot = adopted_->ballot});
  } else {
    outbox_.Send(coordinator, {.kind = Kind::kVote, .ballot = {.words = *own_, .voters = RankSet(size_)}});
  }
}

void Consensus::Coordinate() {
  if (!asked_) {
    asked_ = true;
    heard_.Add(self_);
    votes_[static_cast<size_t>(self_)] = *own_;
    if (adopted_ && (!latest_ || latest_->proposer < adopted_->proposer)) latest_ = adopted_;
    // With nobody before this one all know whose turn it is.
    if (self_ != 0) SendToLiving({.kind = Kind::kAsk}, [&](int rank) { return !heard_.Has(rank); });
  }
  if (!proposed_) {
    if (!AllLivingIn(heard_)) return;
    proposed_ = true;
    adopted_ = {self_, latest_ ? latest_->ballot : *Choose()};
    accepted_.Add(self_);
    SendToLiving({.kind = Kind::kPropose, .ballot = adopted_->ballot}, [](int) { return true; });
  }
  if (AllLivingIn(accepted_)) Decide(adopted_->ballot);
}

// Who voted and died has no part in it.
std::optional<Ballot> Consensus::Choose() const {
  Ballot ballot{.words = {}, .voters = RankSet(size_)};
  for (int rank = 0; rank < size_; ++rank) {
    if (!dead_.Has(rank)) ballot.Count(rank, votes_[static_cast<size_t>(rank)]);
  }
  return ballot;
}

void Consensus::Decide(const Ballot& ballot) {
  if (decision_) return;
  decision_ = ballot;
  // Others wait for this one where it coordinates, or where they know already that it is its turn; whoever finds that later asks.
  const bool coordinates = own_ && Coordinator() == self_;
  SendToLiving({.kind = Kind::kDecide, .ballot = ballot}, [&](int rank) { return coordinates || heard_.Has(rank); });
}

bool Consensus::Awaits(int rank) const {
  if (decision_ || !own_ || rank == self_ || dead_.Has(rank)) return false;
  const int coordinator = Coordinator();
  if (coordinator != self_) return rank == coordinator;
  return !(proposed_ ? accepted_ : heard_).Has(rank);
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
