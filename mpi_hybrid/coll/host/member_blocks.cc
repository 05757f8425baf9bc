// Member's collectives of one block for each member.
#include <algorithm>
#include <utility>

#include "mpi_hybrid/coll/host/member.h"

namespace weft::mpi::coll {
namespace {

uint64_t AddressOf(const Block& data) { return data.type->dense ? reinterpret_cast<uintptr_t>(data.buffer) : 0; }

}  // namespace

Error Member::Gather(const Block& mine, const Block& all, int root) {
  const Block& given = me_ == root ? all : mine;
  const size_t bytes = static_cast<size_t>(given.bytes());
  bool in_place = false;
  if (bytes <= kMostAtRoot) WEFT_MPI_TRY(WantsInPlace(bytes, 1, Reaches::kWithProcessors, &in_place));
  WEFT_MPI_TRY(Begin(What::kGather, root, given.bytes()));
  Error error = in_place || bytes > kArea ? GatherLong(mine, all, root, in_place) : GatherShort(mine, all, root);
  if (error.ok() && me_ == root && !mine.in_place) error = CopyTyped(mine.buffer, mine.count, *mine.type, all.at(me_), all.count, *all.type);
  return End(std::move(error));
}

Error Member::GatherShort(const Block& mine, const Block& all, int root) {
  if (me_ != root) return Give(mine, static_cast<size_t>(mine.bytes()));
  WEFT_MPI_TRY(HearAll());
  for (int i = 0; i < members_; ++i) {
    if (i != me_) CopyIn(GivenBy(i, static_cast<size_t>(all.bytes())), {all.at(i), all.count, all.type});
  }
  return {};
}

Error Member::GatherLong(const Block& mine, const Block& all, int root, bool in_place) {
  bool done = false;
  if (in_place) {
    WEFT_MPI_TRY(GatherInPlace(mine, all, root, &done));
  } else if (me_ != root) {
    WEFT_MPI_TRY(Say());
  }
  if (done) return {};
  if (me_ == root) return InSteps({static_cast<size_t>(all.bytes()), 1, kAll, root}, {}, CursorsAt(all));
  return InSteps({static_cast<size_t>(mine.bytes()), 1, kAll, root}, {TypeCursor(mine.buffer, mine.count, *mine.type)}, {});
}

Error Member::Scatter(const Block& all, const Block& mine, int root) {
  const Block& given = me_ == root ? all : mine;
  const size_t bytes = static_cast<size_t>(given.bytes()), total = bytes * static_cast<size_t>(members_);
  bool in_place;
  WEFT_MPI_TRY(WantsInPlace(bytes, static_cast<size_t>(members_), Reaches::kYes, &in_place));
  WEFT_MPI_TRY(Begin(What::kScatter, root, given.bytes()));
  Error error = in_place || total > kArea ? ScatterLong(all, mine, root, in_place) : ScatterShort(all, mine, root);
  if (error.ok() && me_ == root && !mine.in_place) error = CopyTyped(all.at(me_), all.count, *all.type, mine.buffer, mine.count, *mine.type);
  return End(std::move(error));
}

Error Member::ScatterShort(const Block& all, const Block& mine, int root) {
  const size_t members = static_cast<size_t>(members_);
  if (me_ == root) return Give({all.buffer, all.count * members_, all.type}, static_cast<size_t>(all.bytes()) * members);
  WEFT_MPI_TRY(AwaitPost(root));
  WEFT_MPI_TRY(Hear(root));
  const size_t bytes = static_cast<size_t>(mine.bytes());
  CopyIn(GivenBy(root, bytes * members) + static_cast<size_t>(me_) * bytes, mine);
  return {};
}

Error Member::ScatterLong(const Block& all, const Block& mine, int root, bool in_place) {
  bool done = false;
  if (in_place) {
    WEFT_MPI_TRY(ScatterInPlace(all, mine, root, &done));
  } else if (me_ == root) {
    WEFT_MPI_TRY(Say());
  } else {
    WEFT_MPI_TRY(AwaitPost(root));
    WEFT_MPI_TRY(Hear(root));
  }
  if (done) return {};
  const size_t members = static_cast<size_t>(members_);
  if (me_ == root) return InSteps({static_cast<size_t>(all.bytes()), members, root, kAll}, CursorsAt(all), {});
  return InSteps({static_cast<size_t>(mine.bytes()), members, root, kAll}, {}, {TypeCursor(mine.buffer, mine.count, *mine.type)});
}

Error Member::AllGather(const Block& mine, const Block& all) {
  const Block given = mine.in_place ? Block{all.at(me_), all.count, all.type} : mine;
  const size_t bytes = static_cast<size_t>(all.bytes());
  bool in_place;
  WEFT_MPI_TRY(WantsInPlace(bytes, 1, Reaches::kWithProcessors, &in_place));
  WEFT_MPI_TRY(Begin(What::kAllGather, 0, all.bytes()));
  if (in_place || bytes > kArea) {
    const uint64_t address = all.type->dense ? AddressOf(given) : 0;
    return End(Exchange({bytes, 1}, in_place, address, given, mine, all));
  }
  Error error = Give(given, bytes);
  if (error.ok()) error = HearAll();
  for (int i = 0; i < members_ && error.ok(); ++i) {
    if (i != me_ || !mine.in_place) CopyIn(GivenBy(i, bytes), {all.at(i), all.count, all.type});
  }
  return bytes <= kSlot ? EndInStep(std::move(error)) : End(std::move(error));
}

Error Member::AllToAll(const Block& from, const Block& to) {
  const Block& given = from.in_place ? to : from;
  const size_t members = static_cast<size_t>(members_), bytes = static_cast<size_t>(given.bytes()), total = bytes * members;
  bool in_place;
  WEFT_MPI_TRY(WantsInPlace(bytes, members, Reaches::kYes, &in_place));
  WEFT_MPI_TRY(Begin(What::kAllToAll, 0, given.bytes()));
  if (in_place || total > kArea) {
    const uint64_t address = !from.in_place && to.type->dense ? AddressOf(from) : 0;
    const Block own = from.in_place ? from : Block{from.at(me_), from.count, from.type};
    return End(Exchange({bytes, members}, in_place, address, given, own, to));
  }
  Error error = Give({given.buffer, given.count * members_, given.type}, total);
  if (error.ok()) error = HearAll();
  for (int i = 0; i < members_ && error.ok(); ++i) {
    CopyIn(GivenBy(i, total) + static_cast<size_t>(me_) * bytes, {to.at(i), to.count, to.type});
  }
  return total <= kSlot ? EndInStep(std::move(error)) : End(std::move(error));
}

// Long blocks of all for all: read at the `address` of each, or in steps. `given` are this member's, `own` is that for itself.
Error Member::Exchange(const Streams& way, bool in_place, uint64_t address, const Block& given, const Block& own, const Block& to) {
  bool done = false;
  if (in_place) {
    const size_t offset = way.streams == 1 ? 0 : static_cast<size_t>(me_) * way.bytes;
    WEFT_MPI_TRY(ExchangeInPlace(address, offset, to, &done));
  } else {
    WEFT_MPI_TRY(Say());
  }
  if (!done) {
    std::vector<TypeCursor> out = way.streams == 1 ? std::vector{TypeCursor(given.buffer, given.count, *given.type)} : CursorsAt(given);
    WEFT_MPI_TRY(InSteps(way, std::move(out), CursorsAt(to)));
  }
  return own.in_place ? Error() : CopyTyped(own.buffer, own.count, *own.type, to.at(me_), to.count, *to.type);
}

// A piece of each stream after the other, in one half of the area while the others still read the last ones. Step 1 is that of blocks in place.
Error Member::InSteps(const Streams& way, std::vector<TypeCursor> out, std::vector<TypeCursor> in) {
  const auto is = [this](int one, int other) { return one == kAll ? other != me_ : one == me_; };
  const bool gives = is(way.giver, way.taker), takes = is(way.taker, way.giver), one = way.streams == 1;
  const size_t most = kHalf / way.streams;
  if (gives) {
    WEFT_MPI_TRY(AwaitFinished(area_used_));
    area_used_ = turn_;
  }
  uint64_t steps = 0;
  for (size_t first = 0; first < way.bytes; first += most, ++steps) {
    const size_t here = std::min(most, way.bytes - first), half = steps % 2 * kHalf;
    auto place = [&](int member, int stream) { return memory_.area(member) + half + (one ? 0 : static_cast<size_t>(stream) * most); };
    if (gives) {
      if (steps >= 2) WEFT_MPI_TRY(way.taker == kAll ? AwaitAllTaken(steps) : AwaitTaken(way.taker, steps));
      for (int i = 0; i < static_cast<int>(way.streams); ++i) {
        if (one || i != me_) Pack(out[static_cast<size_t>(i)], {place(me_, i), here});
      }
      SetReady(steps + 2);
    }
    if (!takes) continue;
    if (way.giver != kAll) {
      WEFT_MPI_TRY(AwaitReady(way.giver, steps + 2));
      Unpack(in[0], {place(way.giver, me_), here});
    } else {
      if (first == 0) WEFT_MPI_TRY(HearAll());
      WEFT_MPI_TRY(AwaitAllReady(steps + 2));
      for (int i = 0; i < members_; ++i) {
        if (i != me_) Unpack(in[static_cast<size_t>(i)], {place(i, me_), here});
      }
    }
    SetTaken(steps + 2);
  }
  return {};
}

std::vector<TypeCursor> Member::CursorsAt(const Block& blocks) const {
  std::vector<TypeCursor> cursors;
  cursors.reserve(static_cast<size_t>(members_));
  for (int i = 0; i < members_; ++i) cursors.emplace_back(blocks.at(i), blocks.count, *blocks.type);
  return cursors;
}

}  // namespace weft::mpi::coll
