// Member's collectives of one block for each member.
#include <algorithm>
#include <utility>

#include "mpi_hybrid/coll/host/member.h"

namespace weft::mpi::host {

Error Member::Gather(const Block& mine, const Block& all, int root) {
  const MPI_Aint block = me_ == root ? all.bytes() : mine.bytes();
  WEFT_MPI_TRY(Begin(What::kGather, root, block));
  const size_t bytes = static_cast<size_t>(block);
  if (me_ != root) return End(Give(mine, bytes));
  Error error = HearAll();
  for (int i = 0; i < members_ && error.ok(); ++i) {
    if (i != me_) CopyIn(GivenBy(i, bytes), {all.at(i), all.count, all.type});
  }
  if (error.ok() && !mine.in_place) error = CopyTyped(mine.buffer, mine.count, *mine.type, all.at(me_), all.count, *all.type);
  return End(std::move(error));
}

Error Member::Scatter(const Block& all, const Block& mine, int root) {
  const MPI_Aint block = me_ == root ? all.bytes() : mine.bytes();
  WEFT_MPI_TRY(Begin(What::kScatter, root, block));
  const size_t bytes = static_cast<size_t>(block), total = bytes * static_cast<size_t>(members_);
  if (me_ == root) {
    Error error = Give({all.buffer, all.count * members_, all.type}, total);
    if (error.ok() && !mine.in_place) error = CopyTyped(all.at(me_), all.count, *all.type, mine.buffer, mine.count, *mine.type);
    return End(std::move(error));
  }
  Error error = AwaitPost(root);
  if (error.ok()) error = Hear(root);
  if (error.ok()) CopyIn(GivenBy(root, total) + static_cast<size_t>(me_) * bytes, mine);
  return End(std::move(error));
}

Error Member::AllGather(const Block& mine, const Block& all) {
  WEFT_MPI_TRY(Begin(What::kAllGather, 0, all.bytes()));
  const size_t bytes = static_cast<size_t>(all.bytes());
  Error error = Give(mine.in_place ? Block{all.at(me_), all.count, all.type} : mine, bytes);
  if (error.ok()) error = HearAll();
  for (int i = 0; i < members_ && error.ok(); ++i) {
    if (i != me_ || !mine.in_place) CopyIn(GivenBy(i, bytes), {all.at(i), all.count, all.type});
  }
  return bytes <= kSlot ? EndInStep(std::move(error)) : End(std::move(error));
}

Error Member::AllToAll(const Block& from, const Block& to) {
  const Block& given = from.in_place ? to : from;
  const size_t bytes = static_cast<size_t>(given.bytes()), total = bytes * static_cast<size_t>(members_);
  const bool is_long = bytes >= (total > kArea ? kInPlaceBeyondArea : kInPlace);
  if (is_long) WEFT_MPI_TRY(AgreeOnReach());
  WEFT_MPI_TRY(Begin(What::kAllToAll, 0, given.bytes()));
  if (is_long && reaches_ == Reaches::kYes) {
    bool done = false;
    Error error = AllToAllInPlace(given, to, &done);
    if (error.ok() && !done) error = AllToAllInSteps(given, to);
    return End(std::move(error));
  }
  if (total > kArea) {
    Error error = Say();
    return End(error.ok() ? AllToAllInSteps(given, to) : std::move(error));
  }
  Error error = Give({given.buffer, given.count * members_, given.type}, total);
  if (error.ok()) error = HearAll();
  for (int i = 0; i < members_ && error.ok(); ++i) {
    CopyIn(GivenBy(i, total) + static_cast<size_t>(me_) * bytes, {to.at(i), to.count, to.type});
  }
  return total <= kSlot ? EndInStep(std::move(error)) : End(std::move(error));
}

// A piece of each block after the other, in one half of the area while the others still read the last ones. Step 1 is that of blocks in place.
Error Member::AllToAllInSteps(const Block& from, const Block& to) {
  const size_t bytes = static_cast<size_t>(from.bytes()), most = kHalf / static_cast<size_t>(members_);
  std::vector<TypeCursor> out, in;
  for (int i = 0; i < members_; ++i) {
    out.emplace_back(from.at(i), from.count, *from.type);
    in.emplace_back(to.at(i), to.count, *to.type);
  }
  WEFT_MPI_TRY(AwaitFinished(area_used_));
  area_used_ = turn_;
  uint64_t steps = 0;
  for (size_t first = 0; first < bytes; first += most, ++steps) {
    const size_t here = std::min(most, bytes - first), half = steps % 2 * kHalf;
    auto place = [&](int member, int block) { return memory_.area(member) + half + static_cast<size_t>(block) * most; };
    if (steps >= 2) WEFT_MPI_TRY(AwaitAllTaken(steps));
    for (int i = 0; i < members_; ++i) {
      if (i != me_) Pack(out[static_cast<size_t>(i)], {place(me_, i), here});
    }
    SetReady(steps + 2);
    if (first == 0) WEFT_MPI_TRY(HearAll());
    WEFT_MPI_TRY(AwaitAllReady(steps + 2));
    for (int i = 0; i < members_; ++i) {
      if (i != me_) Unpack(in[static_cast<size_t>(i)], {place(i, me_), here});
    }
    SetTaken(steps + 2);
  }
  if (&from == &to) return {};  // in place
  return CopyTyped(from.at(me_), from.count, *from.type, to.at(me_), to.count, *to.type);
}

}  // namespace weft::mpi::host
