// Member's blocks that are read where they lie: one copy, which the kernel makes.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "mpi_hybrid/coll/host/member.h"

namespace weft::mpi::coll {

// By a turn of its own, before the first collective that asks: who is in another call sees that the calls do not match, and each has had one turn.
Error Member::AgreeOnReach() {
  if (reaches_ != Reaches::kNotAsked) [[likely]]
    return {};
  WEFT_MPI_TRY(Begin(What::kReach, 0, 0));
  Reaches all = !reach_.ReachesAll() ? Reaches::kNo : spins_ ? Reaches::kWithProcessors : Reaches::kYes;
  Error error = Say(&all, sizeof all);
  if (error.ok()) error = HearAll();
  for (int i = 0; i < members_ && error.ok(); ++i) {
    Reaches other;
    std::memcpy(&other, PostOf(i).data, sizeof other);
    all = std::clamp(other, Reaches::kNo, all);
  }
  if (error.ok()) reaches_ = all;
  return EndInStep(std::move(error));
}

// The owner leaves this turn when it is told that its data have been taken. One that leaves before, since it heard of a death or that the
// communicator is revoked, may have written over them: the wait for it finds out what it was.
Error Member::ReadFrom(int member, uint64_t address, void* to, size_t bytes, bool* read) {
  const Reach::Outcome outcome = reach_.Read(member, address, to, bytes);
  *read = outcome == Reach::Outcome::kRead;
  if (outcome == Reach::Outcome::kGone) NoteGone(member);
  WEFT_MPI_TRY(Gone());
  // Pairs with the fence in Wake, between the owner's last word and what its program writes then: if this copied any of that, it sees the word.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (!HasLeft(member)) [[likely]]
    return {};
  return waiter_.Until({[](const void* it) { return *static_cast<const int*>(it); }, &member});
}

// Who could not read has said so before it said that it has taken all it can, and stays in this turn until it has its data; others may be beyond it.
bool Member::IsRefused() const {
  for (int i = 0; i < members_; ++i) {
    if (i != me_ && memory_.lines(i).ready.value.load(std::memory_order_acquire) / kStep == turn_) return true;
  }
  return false;
}

uint64_t Member::AddressAt(int member) const {
  uint64_t address;
  std::memcpy(&address, PostOf(member).data, sizeof address);
  return address;
}

Error Member::WantsInPlace(size_t bytes, size_t blocks, Reaches least, bool* wants) {
  *wants = false;
  if (bytes < (bytes * blocks > kArea ? kInPlaceBeyondArea : kInPlace)) return {};
  WEFT_MPI_TRY(AgreeOnReach());
  *wants = reaches_ >= least;
  return {};
}

// Each says where its blocks are; if all do, each reads its own of each, `offset` bytes behind that, and waits for those that still read
// this member's.
Error Member::ExchangeInPlace(uint64_t mine, size_t offset, const Block& to, bool* done) {
  WEFT_MPI_TRY(Say(&mine, sizeof mine));
  WEFT_MPI_TRY(HearAll());
  for (int i = 0; i < members_; ++i) {
    if (AddressAt(i) == 0) return {};
  }
  bool read = true;
  for (int k = 1; k < members_ && read; ++k) {
    const int i = (me_ + k) % members_;
    WEFT_MPI_TRY(ReadFrom(i, AddressAt(i) + offset, to.at(i), static_cast<size_t>(to.bytes()), &read));
  }
  if (!read) SetReady(1);
  SetTaken(1);
  Wake();
  WEFT_MPI_TRY(AwaitAllTaken(1));
  *done = read && !IsRefused();
  return {};
}

// The root reads, and says whether it could.
Error Member::GatherInPlace(const Block& mine, const Block& all, int root, bool* done) {
  uint64_t word = 0;
  if (me_ != root) {
    if (mine.type->dense) word = reinterpret_cast<uintptr_t>(mine.buffer);
    WEFT_MPI_TRY(Say(&word, sizeof word));
    WEFT_MPI_TRY(AwaitPost(root));
    WEFT_MPI_TRY(Hear(root));
    AllAreIn();
    *done = AddressAt(root) != 0;
    return {};
  }
  Error heard = HearAll();
  if (heard.ok()) {
    bool read = all.type->dense;
    for (int i = 0; i < members_; ++i) read &= i == me_ || AddressAt(i) != 0;
    for (int i = 0; i < members_ && read; ++i) {
      if (i != me_) WEFT_MPI_TRY(ReadFrom(i, AddressAt(i), all.at(i), static_cast<size_t>(all.bytes()), &read));
    }
    *done = read;
    word = read ? 1 : 0;
  }
  Error said = SayAfter(heard, &word, sizeof word);
  return heard.ok() ? std::move(said) : std::move(heard);
}

// The root waits for those that still read its blocks.
Error Member::ScatterInPlace(const Block& all, const Block& mine, int root, bool* done) {
  if (me_ == root) {
    const uint64_t address = all.type->dense ? reinterpret_cast<uintptr_t>(all.buffer) : 0;
    WEFT_MPI_TRY(Say(&address, sizeof address));
    if (address == 0) return {};
    WEFT_MPI_TRY(AwaitAllTaken(1));
    *done = !IsRefused();
    return {};
  }
  WEFT_MPI_TRY(AwaitPost(root));
  WEFT_MPI_TRY(Hear(root));
  const uint64_t address = AddressAt(root);
  if (address == 0) return {};
  const size_t bytes = static_cast<size_t>(mine.bytes());
  if (mine.type->dense) WEFT_MPI_TRY(ReadFrom(root, address + static_cast<size_t>(me_) * bytes, mine.buffer, bytes, done));
  if (!*done) SetReady(1);
  SetTaken(1);
  Wake();
  return {};
}

}  // namespace weft::mpi::coll
