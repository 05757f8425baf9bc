// Member's alltoall of blocks that are read where they lie: one copy, which the kernel makes.
#include <algorithm>
#include <cstring>
#include <utility>

#include "mpi_hybrid/coll/host/member.h"

namespace weft::mpi::host {

// By a turn of its own, before the first alltoall that asks: who is in another call sees that the calls do not match, and each has had one turn.
Error Member::AgreeOnReach() {
  if (reaches_ != Reaches::kNotAsked) [[likely]]
    return {};
  WEFT_MPI_TRY(Begin(What::kReach, 0, 0));
  const uint64_t mine = reach_.ReachesAll() ? 1 : 0;
  Error error = Say(&mine, sizeof mine);
  if (error.ok()) error = HearAll();
  if (error.ok()) {
    bool all = mine != 0;
    for (int i = 0; i < members_; ++i) {
      uint64_t word;
      std::memcpy(&word, PostOf(i).data, sizeof word);
      all &= word != 0;
    }
    reaches_ = all ? Reaches::kYes : Reaches::kNo;
  }
  return EndInStep(std::move(error));
}

Error Member::ReadFrom(int member, uint64_t address, void* to, size_t bytes, bool* read) {
  const Reach::Outcome outcome = reach_.Read(member, address, to, bytes);
  *read = outcome == Reach::Outcome::kRead;
  if (outcome != Reach::Outcome::kGone) return {};
  NoteGone(member);
  return Gone();
}

// Who could not read has said so before it said that it has taken all it can, and stays in this turn until it has its data; others may be beyond it.
bool Member::IsRefused() const {
  for (int i = 0; i < members_; ++i) {
    if (i != me_ && memory_.lines(i).ready.load(std::memory_order_acquire) / kStep == turn_) return true;
  }
  return false;
}

// Each says where its blocks are; if all do, each reads its own of each, and waits for those that still read this member's.
Error Member::AllToAllInPlace(const Block& from, const Block& to, bool* done) {
  const bool in_place = &from != &to && from.type->dense && to.type->dense;
  const uint64_t mine = in_place ? reinterpret_cast<uintptr_t>(from.buffer) : 0;
  WEFT_MPI_TRY(Say(&mine, sizeof mine));
  WEFT_MPI_TRY(HearAll());
  const auto address_at = [this](int member) {
    uint64_t address;
    std::memcpy(&address, PostOf(member).data, sizeof address);
    return address;
  };
  for (int i = 0; i < members_; ++i) {
    if (address_at(i) == 0) return {};
  }
  const size_t bytes = static_cast<size_t>(to.bytes());
  bool read = true;
  for (int k = 1; k < members_ && read; ++k) {
    const int i = (me_ + k) % members_;
    WEFT_MPI_TRY(ReadFrom(i, address_at(i) + static_cast<size_t>(me_) * bytes, to.at(i), bytes, &read));
  }
  if (!read) SetReady(1);
  SetTaken(1);
  Wake();
  WEFT_MPI_TRY(CopyTyped(from.at(me_), from.count, *from.type, to.at(me_), to.count, *to.type));
  WEFT_MPI_TRY(AwaitAllTaken(1));
  *done = read && !IsRefused();
  return {};
}

}  // namespace weft::mpi::host
