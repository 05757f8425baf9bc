#include "mpi_hybrid/coll/halving.h"

#include <algorithm>

namespace weft::mpi {

Halving::Halving(Place place, int keeper, MPI_Aint count)
    : place_(place),
      participants_(PowerOfTwoBelow(place.size)),
      extra_(place.size - participants_),
      is_reversed_(true),
      keeper_(keeper) {
  begin_.resize(static_cast<size_t>(participants_) + 1);
  for (int i = 0; i <= participants_; ++i) {
    begin_[static_cast<size_t>(i)] = count / participants_ * i + std::min<MPI_Aint>(i, count % participants_);
  }
  SetMe();
}

Halving::Halving(Place place, std::span<const MPI_Aint> counts)
    : place_(place), participants_(PowerOfTwoBelow(place.size)), extra_(place.size - participants_) {
  begin_.resize(static_cast<size_t>(participants_) + 1);
  size_t rank = 0;
  for (int i = 0; i < participants_; ++i) {
    MPI_Aint length = counts[rank++];
    if (i < extra_) length += counts[rank++];
    begin_[static_cast<size_t>(i) + 1] = begin_[static_cast<size_t>(i)] + length;
  }
  SetMe();
}

void Halving::SetMe() {
  const int candidate = Virtual(place_.rank);
  me_ = Real(candidate) == place_.rank ? candidate : -1;
}

int Halving::Real(int virtual_rank) const {
  const int in_order = InOrder(virtual_rank);
  if (in_order >= extra_) return in_order + extra_;
  return 2 * in_order + (keeper_ == 2 * in_order + 1 ? 1 : 0);
}

int Halving::Virtual(int rank) const { return InOrder(rank < 2 * extra_ ? rank / 2 : rank - extra_); }

void Halving::ReduceBlocks(Schedule& schedule, const Reduction& reduction, void* full) const {
  const Datatype& type = *reduction.type;
  if (!takes_part()) {
    schedule.Send(reduction.send, reduction.count, type, other());
    return schedule.EndRound();
  }
  // Where the value is: the send buffer until something was combined with it.
  const void* value = reduction.send;
  void* aside = nullptr;
  // Elements [begin, begin + length) arrive from `peer`; those at [sent, sent + sent_length) go there.
  auto exchange = [&](int peer, MPI_Aint begin, MPI_Aint length, MPI_Aint sent, MPI_Aint sent_length, bool sends) {
    const bool direct = value != full;  // into `full`, which holds nothing yet
    if (!direct && aside == nullptr) aside = schedule.TemporaryFor(reduction.count, type);
    uint8_t* target = At(direct ? full : aside, begin, type);
    schedule.Receive(target, length, type, peer);
    if (sends) schedule.Send(At(value, sent, type), sent_length, type, peer);
    schedule.EndRound();
    if (direct)
      schedule.Reduce(At(value, begin, type), target, length, type, *reduction.op);
    else
      schedule.Reduce(target, At(full, begin, type), length, type, *reduction.op);
    value = full;
  };
  if (other() >= 0) exchange(other(), 0, reduction.count, 0, 0, false);
  for (int mask = participants_ / 2; mask > 0; mask /= 2) {
    const int mine = me_ & ~(mask - 1), theirs = mine ^ mask;
    exchange(Real(me_ ^ mask), Begin(mine), Length(mine, mask), Begin(theirs), Length(theirs, mask), true);
  }
  if (value != full) schedule.Copy(value, full, reduction.count, type);  // one rank alone
}

void Halving::GiveToOthers(Schedule& schedule, const Reduction& reduction, void* full) const {
  if (other() < 0) return;
  if (takes_part())
    schedule.Send(full, reduction.count, *reduction.type, other());
  else
    schedule.Receive(full, reduction.count, *reduction.type, other());
  schedule.EndRound();
}

}  // namespace weft::mpi
