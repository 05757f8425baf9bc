// Member's reductions.
#include <algorithm>
#include <utility>

#include "base/copy.h"
#include "mpi_hybrid/coll/host/member.h"

namespace weft::mpi::coll {
namespace {

constexpr size_t kAtOnce = 4096;  // bytes that each member reduces alone

}  // namespace

Error Member::AllReduce(const void* send, void* receive, MPI_Aint count, const Datatype& type, const Op& op,
                        FoldOrder order) {
  WEFT_MPI_TRY(Begin(What::kAllReduce, static_cast<int>(type.size % 1024), count * type.size));
  fold_.Begin(order, members_, count, type, op);
  const size_t bytes = static_cast<size_t>(bytes_);
  Error error;
  if (members_ <= kMostAtOnce && (bytes <= kAtOnce || (bytes <= kSlot && members_ == 2))) {
    error = AllReduceAtOnce(send, receive, count, type);
  } else if (bytes <= kAtOnce) {
    error = AllReduceByFirst(send, receive, count, type);
  } else {
    return End(AllReduceInShares(send, receive, count, type));
  }
  return EndInStep(std::move(error));
}

// Each hears all, and does all of the work.
Error Member::AllReduceAtOnce(const void* send, void* receive, MPI_Aint count, const Datatype& type) {
  const size_t bytes = static_cast<size_t>(count * type.size);
  if (bytes <= kInline) {
    WEFT_MPI_TRY(Say(send, bytes));
  } else {
    uint8_t* room = nullptr;
    WEFT_MPI_TRY(Room(bytes, &room));
    CopyBytes(room, send, bytes);
    WEFT_MPI_TRY(Say());
  }
  WEFT_MPI_TRY(HearAll());
  for (int i = 0; i < members_; ++i) {
    inputs_[static_cast<size_t>(i)] = GivenBy(i, bytes);
  }
  fold_.Compute(0, count, inputs_, static_cast<uint8_t*>(receive));
  return {};
}

// The first does, and the others hear it: with many of them each would wake each.
Error Member::AllReduceByFirst(const void* send, void* receive, MPI_Aint count, const Datatype& type) {
  const size_t bytes = static_cast<size_t>(count * type.size), inside = bytes <= kInline ? bytes : 0;  // the post
  alignas(32) uint8_t for_post[kInline];
  uint8_t* room = for_post;
  if (inside != bytes) WEFT_MPI_TRY(Room(bytes, &room));
  if (me_ != 0) {
    if (bytes != 0) CopyBytes(room, send, bytes);
    WEFT_MPI_TRY(Say(room, inside));
    WEFT_MPI_TRY(AwaitPost(0));
    PassOn();
    WEFT_MPI_TRY(Hear(0));
    AllAreIn();
    if (bytes != 0) CopyBytes(receive, GivenBy(0, bytes), bytes);
    return {};
  }
  Error error = HearAll();
  if (error.ok()) {
    for (int i = 0; i < members_; ++i) inputs_[static_cast<size_t>(i)] = GivenBy(i, bytes);
    inputs_[0] = static_cast<const uint8_t*>(send);
    fold_.Compute(0, count, inputs_, room);
  }
  if (Error said = SayAfter(error, room, inside); error.ok()) error = std::move(said);
  if (error.ok()) PassOn();
  if (error.ok() && bytes != 0) CopyBytes(receive, room, bytes);
  return error;
}

// Each reduces a share of what is in the areas, and copies those of the others.
Error Member::AllReduceInShares(const void* send, void* receive, MPI_Aint count, const Datatype& type) {
  const MPI_Aint most = static_cast<MPI_Aint>(kHalf) / type.size;
  uint8_t* const mine = memory_.area(me_);
  WEFT_MPI_TRY(AwaitFinished(area_used_));
  area_used_ = turn_;
  uint64_t steps = 0;
  for (MPI_Aint first = 0; first < count; first += most) {
    const MPI_Aint here = std::min(most, count - first);
    auto begin = [&](int i) { return here / members_ * i + std::min<MPI_Aint>(i, here % members_); };
    auto at = [&](MPI_Aint element) { return static_cast<size_t>(element * type.size); };
    const uint8_t* const from = static_cast<const uint8_t*>(send) + at(first);
    uint8_t* const to = static_cast<uint8_t*>(receive) + at(first);
    // What this member reduces nobody else reads.
    CopyBytes(mine, from, at(begin(me_)));
    CopyBytes(mine + at(begin(me_ + 1)), from + at(begin(me_ + 1)), at(here - begin(me_ + 1)));
    if (first == 0) WEFT_MPI_TRY(Say());
    SetReady(++steps);
    if (first == 0) WEFT_MPI_TRY(HearAll());
    WEFT_MPI_TRY(AwaitAllReady(steps));
    const size_t share = at(begin(me_));
    for (int i = 0; i < members_; ++i) inputs_[static_cast<size_t>(i)] = memory_.area(i) + share;
    inputs_[static_cast<size_t>(me_)] = from + share;
    fold_.Compute(first + begin(me_), begin(me_ + 1) - begin(me_), inputs_, mine + kHalf);
    SetReady(++steps);
    CopyBytes(to + share, mine + kHalf, at(begin(me_ + 1)) - share);
    WEFT_MPI_TRY(AwaitAllReady(steps));
    for (int i = 0; i < members_; ++i) {
      if (i != me_) CopyBytes(to + at(begin(i)), memory_.area(i) + kHalf, at(begin(i + 1)) - at(begin(i)));
    }
  }
  return {};
}

Error Member::Reduce(const void* send, void* receive, MPI_Aint count, const Datatype& type, const Op& op, FoldOrder order,
                     int root) {
  WEFT_MPI_TRY(Begin(What::kReduce, root, count * type.size));
  fold_.Begin(order, members_, count, type, op);
  return End(ReduceInSteps(send, receive, count, type, root));
}

// The root reduces what is in the others' areas, of which each has two halves.
Error Member::ReduceInSteps(const void* send, void* receive, MPI_Aint count, const Datatype& type, int root) {
  const size_t bytes = static_cast<size_t>(count * type.size);
  if (bytes <= kSlot) {
    const size_t inside = bytes <= kInline ? bytes : 0;  // the post
    alignas(32) uint8_t for_post[kInline];
    uint8_t* room = for_post;
    if (inside != bytes && (me_ != root || send == receive)) WEFT_MPI_TRY(Room(bytes, &room));
    if (bytes != 0 && (me_ != root || send == receive)) CopyBytes(room, send, bytes);
    if (me_ != root) return Say(room, inside);
    WEFT_MPI_TRY(HearAll());
    for (int i = 0; i < members_; ++i) inputs_[static_cast<size_t>(i)] = GivenBy(i, bytes);
    inputs_[static_cast<size_t>(root)] = send == receive ? room : static_cast<const uint8_t*>(send);
    fold_.Compute(0, count, inputs_, static_cast<uint8_t*>(receive));
    return {};
  }
  const MPI_Aint most = static_cast<MPI_Aint>(kHalf) / type.size;
  auto at = [&](MPI_Aint element) { return static_cast<size_t>(element * type.size); };
  if (me_ != root || send == receive) {
    WEFT_MPI_TRY(AwaitFinished(area_used_));
    area_used_ = turn_;
  }
  if (me_ != root) WEFT_MPI_TRY(Say());
  uint64_t steps = 0;
  for (MPI_Aint first = 0; first < count; first += most, ++steps) {
    const MPI_Aint here = std::min(most, count - first);
    const uint8_t* const from = static_cast<const uint8_t*>(send) + at(first);
    const size_t half = steps % 2 * kHalf;
    if (me_ != root) {
      if (steps >= 2) WEFT_MPI_TRY(AwaitTaken(root, steps - 1));
      CopyBytes(memory_.area(me_) + half, from, at(here));
      SetReady(steps + 1);
      continue;
    }
    if (first == 0) WEFT_MPI_TRY(HearAll());
    WEFT_MPI_TRY(AwaitAllReady(steps + 1));
    for (int i = 0; i < members_; ++i) inputs_[static_cast<size_t>(i)] = memory_.area(i) + half;
    inputs_[static_cast<size_t>(root)] = from;
    if (send == receive) {
      CopyBytes(memory_.area(me_), from, at(here));
      inputs_[static_cast<size_t>(root)] = memory_.area(me_);
    }
    fold_.Compute(first, here, inputs_, static_cast<uint8_t*>(receive) + at(first));
    SetTaken(steps + 1);
  }
  return {};
}

}  // namespace weft::mpi::coll
