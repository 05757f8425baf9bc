#include <algorithm>

#include "mpi_hybrid/coll/algorithms.h"
#include "mpi_hybrid/coll/halving.h"

namespace weft::mpi {

void* Accumulator::Free() {
  if (a_ != nullptr && a_ != value_) return a_;
  if (a_ == nullptr) return a_ = schedule_.TemporaryFor(reduction_.count, *reduction_.type);
  if (b_ == nullptr) b_ = schedule_.TemporaryFor(reduction_.count, *reduction_.type);
  return b_;
}

void Accumulator::CombineWithHigher() {
  void* higher = Free();
  schedule_.Reduce(value_, higher, reduction_.count, *reduction_.type, *reduction_.op);
  value_ = higher;
}

void Accumulator::CombineWithLower() {
  void* lower = Free();
  if (value_ != a_ && value_ != b_) {  // the send buffer
    if (b_ == nullptr) b_ = schedule_.TemporaryFor(reduction_.count, *reduction_.type);
    schedule_.Copy(value_, b_, reduction_.count, *reduction_.type);
    value_ = b_;
  }
  schedule_.Reduce(lower, const_cast<void*>(value_), reduction_.count, *reduction_.type, *reduction_.op);
}

void Accumulator::CombineCommutative() {
  if (value_ != a_) return CombineWithHigher();
  schedule_.Reduce(Free(), a_, reduction_.count, *reduction_.type, *reduction_.op);
}

void Accumulator::MoveTo(void* target) {
  schedule_.Copy(value_, target, reduction_.count, *reduction_.type);
  value_ = target;
}

namespace {

// In the order of ranks from `top`; when the operation is not commutative that is rank 0, and the root gets the result
// from it.
void ReduceAlongTree(Schedule& schedule, Place place, const Reduction& reduction, int root) {
  const int top = reduction.op->commutative ? root : 0;
  const int relative = (place.rank - top + place.size) % place.size;
  Accumulator accumulator(schedule, reduction, place.rank == root ? reduction.receive : nullptr);
  int mask = 1;
  for (; mask < place.size && (relative & mask) == 0; mask *= 2) {
    if (relative + mask >= place.size) continue;
    schedule.Receive(accumulator.Free(), reduction.count, *reduction.type, (relative + mask + top) % place.size);
    schedule.EndRound();
    if (reduction.op->commutative)
      accumulator.CombineCommutative();
    else
      accumulator.CombineWithHigher();
  }
  if (relative != 0) {
    schedule.Send(accumulator.value(), reduction.count, *reduction.type, (relative - mask + top) % place.size);
    schedule.EndRound();
  }
  if (top != root && place.rank == top) {
    schedule.Send(accumulator.value(), reduction.count, *reduction.type, root);
  } else if (place.rank == root) {
    if (top == root)
      accumulator.MoveTo(reduction.receive);
    else
      schedule.Receive(reduction.receive, reduction.count, *reduction.type, top);
  }
  schedule.EndRound();
}

// The holders of the blocks send them together again, towards `root`.
void CollectHalves(Schedule& schedule, const Halving& halving, const Reduction& reduction, void* full, int root) {
  const int target = halving.Virtual(root);
  for (int mask = 1; mask < halving.participants(); mask *= 2) {
    const int me = halving.me();
    if (((me ^ target) & (mask - 1)) != 0) break;  // has sent
    const int mine = me & ~(mask - 1), theirs = mine ^ mask;
    if (((me ^ target) & mask) != 0) {
      schedule.Send(At(full, halving.Begin(mine), *reduction.type), halving.Length(mine, mask), *reduction.type,
                    halving.Real(me ^ mask));
    } else {
      schedule.Receive(At(full, halving.Begin(theirs), *reduction.type), halving.Length(theirs, mask), *reduction.type,
                       halving.Real(me ^ mask));
    }
    schedule.EndRound();
  }
}

void Distribute(Schedule& schedule, const Halving& halving, const Reduction& reduction, void* full) {
  for (int mask = 1; mask < halving.participants(); mask *= 2) {
    const int mine = halving.me() & ~(mask - 1), theirs = mine ^ mask;
    const int partner = halving.Real(halving.me() ^ mask);
    schedule.Receive(At(full, halving.Begin(theirs), *reduction.type), halving.Length(theirs, mask), *reduction.type,
                     partner);
    schedule.Send(At(full, halving.Begin(mine), *reduction.type), halving.Length(mine, mask), *reduction.type, partner);
    schedule.EndRound();
  }
}

void RabenseifnerReduce(Schedule& schedule, Place place, const Reduction& reduction, int root) {
  void* full = place.rank == root ? reduction.receive : schedule.TemporaryFor(reduction.count, *reduction.type);
  Halving halving(place, root, reduction.count);
  halving.ReduceBlocks(schedule, reduction, full);
  if (halving.takes_part()) CollectHalves(schedule, halving, reduction, full, root);
}

void RabenseifnerAllReduce(Schedule& schedule, Place place, const Reduction& reduction) {
  Halving halving(place, 0, reduction.count);
  halving.ReduceBlocks(schedule, reduction, reduction.receive);
  if (halving.takes_part()) Distribute(schedule, halving, reduction, reduction.receive);
  halving.GiveToOthers(schedule, reduction, reduction.receive);
}

// Works for any operation: neighbours are merged to a power of two, and operands are always put in the order of ranks.
void DoublingAllReduce(Schedule& schedule, Place place, const Reduction& reduction) {
  const int participants = PowerOfTwoBelow(place.size), extra = place.size - participants;
  const MPI_Aint count = reduction.count;
  const Datatype& type = *reduction.type;
  Accumulator accumulator(schedule, reduction, reduction.receive);
  int me = place.rank - extra;
  if (place.rank < 2 * extra) {
    if (place.rank % 2 == 0) {
      schedule.Send(reduction.send, count, type, place.rank + 1);
      schedule.EndRound();
      schedule.Receive(reduction.receive, count, type, place.rank + 1);
      schedule.EndRound();
      return;
    }
    schedule.Receive(accumulator.Free(), count, type, place.rank - 1);
    schedule.EndRound();
    accumulator.CombineWithLower();
    me = place.rank / 2;
  }
  for (int mask = 1; mask < participants; mask *= 2) {
    const int partner = me ^ mask;
    const int real = partner < extra ? 2 * partner + 1 : partner + extra;
    schedule.Receive(accumulator.Free(), count, type, real);
    schedule.Send(accumulator.value(), count, type, real);
    schedule.EndRound();
    if (partner < me)
      accumulator.CombineWithLower();
    else
      accumulator.CombineWithHigher();
  }
  accumulator.MoveTo(reduction.receive);
  if (place.rank < 2 * extra) {
    schedule.Send(reduction.receive, count, type, place.rank - 1);
    schedule.EndRound();
  }
}

// Block b is summed up on its way from rank b + 1 round to rank b, and then goes round again.
void RingAllReduce(Schedule& schedule, Place place, const Reduction& reduction) {
  const Datatype& type = *reduction.type;
  const int left = (place.rank - 1 + place.size) % place.size, right = (place.rank + 1) % place.size;
  auto begin = [&](int block) {
    return reduction.count / place.size * block + std::min<MPI_Aint>(block, reduction.count % place.size);
  };
  auto length = [&](int block) { return begin(block + 1) - begin(block); };
  const bool in_place = reduction.send == reduction.receive;
  void* aside = in_place ? schedule.TemporaryFor(length(0), type) : nullptr;
  for (int step = 0; step < place.size - 1; ++step) {
    const int sent = (place.rank - 1 - step + 2 * place.size) % place.size;
    const int received = (sent - 1 + place.size) % place.size;
    const void* outgoing = step == 0 ? At(reduction.send, begin(sent), type) : At(reduction.receive, begin(sent), type);
    uint8_t* block = At(reduction.receive, begin(received), type);
    schedule.Receive(in_place ? aside : block, length(received), type, left);
    schedule.Send(outgoing, length(sent), type, right);
    schedule.EndRound();
    if (in_place)
      schedule.Reduce(aside, block, length(received), type, *reduction.op);
    else
      schedule.Reduce(At(reduction.send, begin(received), type), block, length(received), type, *reduction.op);
  }
  for (int step = 0; step < place.size - 1; ++step) {
    const int sent = (place.rank - step + place.size) % place.size;
    const int received = (sent - 1 + place.size) % place.size;
    schedule.Receive(At(reduction.receive, begin(received), type), length(received), type, left);
    schedule.Send(At(reduction.receive, begin(sent), type), length(sent), type, right);
    schedule.EndRound();
  }
}

}  // namespace

void BuildReduce(Schedule& schedule, Place place, Algorithm algorithm, const Reduction& reduction, int root) {
  if (algorithm == Algorithm::kRabenseifner && place.size > 1)
    return RabenseifnerReduce(schedule, place, reduction, root);
  ReduceAlongTree(schedule, place, reduction, root);
}

void BuildAllReduce(Schedule& schedule, Place place, Algorithm algorithm, const Reduction& reduction) {
  if (place.size == 1) return schedule.Copy(reduction.send, reduction.receive, reduction.count, *reduction.type);
  if (algorithm == Algorithm::kRabenseifner) return RabenseifnerAllReduce(schedule, place, reduction);
  if (algorithm == Algorithm::kRing) return RingAllReduce(schedule, place, reduction);
  DoublingAllReduce(schedule, place, reduction);
}

void BuildScan(Schedule& schedule, Place place, const Reduction& reduction, bool exclusive) {
  const MPI_Aint count = reduction.count;
  const Datatype& type = *reduction.type;
  // The reduction over all ranks of the aligned group of `mask` ranks around this one.
  Reduction group = reduction;
  group.receive = nullptr;
  if (reduction.send == reduction.receive) {
    void* copy = schedule.TemporaryFor(count, type);
    schedule.Copy(reduction.send, copy, count, type);
    group.send = copy;
  } else if (!exclusive) {
    schedule.Copy(reduction.send, reduction.receive, count, type);
  }
  Accumulator accumulator(schedule, group, nullptr);
  bool has_result = !exclusive;
  for (int mask = 1; mask < place.size; mask *= 2) {
    const int partner = place.rank ^ mask;
    if (partner >= place.size) continue;
    schedule.Receive(accumulator.Free(), count, type, partner);
    schedule.Send(accumulator.value(), count, type, partner);
    schedule.EndRound();
    if (partner > place.rank) {
      accumulator.CombineWithHigher();
      continue;
    }
    if (has_result)
      schedule.Reduce(accumulator.Free(), reduction.receive, count, type, *reduction.op);
    else
      schedule.Copy(accumulator.Free(), reduction.receive, count, type);
    has_result = true;
    accumulator.CombineWithLower();
  }
}

}  // namespace weft::mpi
