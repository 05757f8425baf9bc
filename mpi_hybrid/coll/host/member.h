#ifndef MPI_HYBRID_COLL_HOST_MEMBER_H_
#define MPI_HYBRID_COLL_HOST_MEMBER_H_

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "mpi_hybrid/coll/host/fold.h"
#include "mpi_hybrid/coll/host/memory.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/datatype/op.h"

namespace weft::mpi::host {

// What a wait is for: the member whose next word has not come, -1 when all have. Only looks.
struct Missing {
  int (*look)(const void*);
  const void* it;
  int operator()() const { return look(it); }
};

// How a member waits for others, and wakes them.
class Waiter {
 public:
  virtual ~Waiter() = default;
  // Until nobody is missing. An error: the one that is missing is dead (it calls Member::NoteGone), has noted another
  // that is, or made another call.
  virtual Error Until(Missing missing) = 0;
  // Wakes the member, which sleeps.
  virtual void Ring(int member) = 0;
};

// The memory of the other members' processes.
class Reach {
 public:
  enum class Outcome : uint8_t { kRead, kRefused, kGone };  // kRefused: not all of it; kGone: the member's process is

  virtual ~Reach() = default;
  // Whether this member can read that of each other one.
  virtual bool ReachesAll() = 0;
  virtual Outcome Read(int member, uint64_t address, void* to, size_t bytes) = 0;
};

// `count` elements of each member, or for each.
struct Block {
  void* buffer = nullptr;
  MPI_Aint count = 0;
  const Datatype* type = nullptr;
  bool in_place = false;  // the data are where the result goes; the rest is of no meaning

  MPI_Aint bytes() const { return count * type->size; }
  void* at(int i) const { return static_cast<uint8_t*>(buffer) + i * count * type->extent; }
};

// A member of a communicator on one host, in its collectives through the memory of all (memory.h). Every member makes
// the same calls in the same order; where the calls do not match, those that see it get MPI_ERR_TRUNCATE. No I/O: the
// Waiter sleeps, the Reach reads. Not safe for several threads.
class Member {
 public:
  // `spins`: each member has a processor.
  Member(Memory memory, int me, int members, Waiter& waiter, Reach& reach, bool spins);

  Error Barrier();
  Error Broadcast(const Block& data, int root);
  // The type is dense, of at most kMostElement bytes. `send` may be `receive`.
  Error AllReduce(const void* send, void* receive, MPI_Aint count, const Datatype& type, const Op& op, FoldOrder order);
  Error Reduce(const void* send, void* receive, MPI_Aint count, const Datatype& type, const Op& op, FoldOrder order, int root);
  Error Gather(const Block& mine, const Block& all, int root);
  Error Scatter(const Block& all, const Block& mine, int root);
  Error AllGather(const Block& mine, const Block& all);
  Error AllToAll(const Block& from, const Block& to);

  // From here on a block is read where it lies, by one copy, where each member can read each; and from there on, if not all that a member
  // gives have room in the area. Blocks of a gather not beyond kMostAtRoot: then the root and the others copy at the same time.
  static constexpr size_t kInPlace = 64 * 1024, kInPlaceBeyondArea = 8 * 1024, kMostAtRoot = 1024 * 1024 - 1;

  static constexpr MPI_Aint kMostElement = kSlot;

  int me() const { return me_; }
  int members() const { return members_; }
  uint64_t turn() const { return turn_; }
  // Whether it has gone beyond our turn without the word that it is waited for: its calls are others.
  bool HasPassed(int member) const;
  // Whether the words of this member are what it wrote last.
  bool HasItsWords() const;
  // A member died: all learn of it, and no collective of them works any more.
  void NoteGone(int member);
  Error Gone() const;  // ok: nobody did

 private:
  static constexpr int kMostAtOnce = 8;        // members of which each hears each
  static constexpr size_t kHalf = kArea / 2;  // bytes of the area that are written while the other half is read

  enum class What : uint32_t { kBarrier = 1, kBroadcast, kAllReduce, kReduce, kGather, kScatter, kAllGather, kAllToAll, kReach };

  static constexpr uint64_t DoneWith(uint64_t turn) { return kStep * (turn + 1); }

  // A turn: the words that it has are checked against it.
  Error Begin(What what, int root, MPI_Aint bytes);
  Error End(Error error);  // of a turn after which data in the others' slots and areas are of no use to this member
  // ... after which others know that from this member's next post: it has heard all of them.
  Error EndInStep(Error error);
  // Says that this member has come to the turn. Of `data`, a first part goes along.
  Error Say(const void* data = nullptr, size_t bytes = 0);
  Error SayAfter(const Error& heard, const void* data = nullptr, size_t bytes = 0);
  Error AwaitPost(int member);
  Error Hear(int member);
  Error HearAll();
  void AllAreIn() { all_finished_ = turn_ - 1; }

  // Until this member may write into what it used in `turn`.
  Error AwaitFinished(uint64_t turn);
  Error AwaitReady(int member, uint64_t steps);
  Error AwaitAllReady(uint64_t steps);
  Error AwaitTaken(int member, uint64_t steps);
  Error AwaitAllTaken(uint64_t steps);
  // Before this member writes a word of its own, whose last value it knows. Another process of the user may have written there: then others went on, or
  // will, where they must not.
  void Check(const std::atomic<uint64_t>& word, uint64_t mine) {
    if (word.load(std::memory_order_relaxed) != mine) [[unlikely]] NoteOverwritten();
  }
  void NoteOverwritten();
  void SetReady(uint64_t steps);
  void SetTaken(uint64_t steps);
  void Wake();
  template <typename Look>
  Error Await(const Look& look);
  template <typename Has>
  Error AwaitEach(const Has& has);

  // Room for so many bytes that others read in this turn: the slot or the area.
  Error Room(size_t bytes, uint8_t** room);
  const uint8_t* RoomOf(int member, size_t bytes) const;
  // Says it with `bytes`, those of `data`, for who hears it: in the post, the slot or the area.
  Error Give(const Block& data, size_t bytes);
  const uint8_t* GivenBy(int member, size_t bytes) const { return bytes <= kInline ? PostOf(member).data : RoomOf(member, bytes); }

  Error ReduceInSteps(const void* send, void* receive, MPI_Aint count, const Datatype& type, int root);
  Error AllReduceAtOnce(const void* send, void* receive, MPI_Aint count, const Datatype& type);
  Error AllReduceByFirst(const void* send, void* receive, MPI_Aint count, const Datatype& type);
  Error AllReduceInShares(const void* send, void* receive, MPI_Aint count, const Datatype& type);
  Error Pieces(const Block& data, int root);

  // Data of any length, through the areas of those who give: of each a stream for each member, or one for all.
  static constexpr int kAll = -1;
  struct Streams {
    size_t bytes;  // of each
    size_t streams;
    int giver = kAll, taker = kAll;  // the only one, who has none for itself
  };
  Error InSteps(const Streams& way, std::vector<TypeCursor> out, std::vector<TypeCursor> in);
  std::vector<TypeCursor> CursorsAt(const Block& blocks) const;
  Error GatherShort(const Block& mine, const Block& all, int root);
  Error GatherLong(const Block& mine, const Block& all, int root, bool in_place);
  Error ScatterShort(const Block& all, const Block& mine, int root);
  Error ScatterLong(const Block& all, const Block& mine, int root, bool in_place);
  Error Exchange(const Streams& way, bool in_place, uint64_t address, const Block& given, const Block& own, const Block& to);

  enum class Reaches : uint8_t { kNotAsked, kNo, kYes, kWithProcessors };  // each member reaches each, and has a processor of its own
  // Whether blocks, of which one gives so many, are to be read where they lie: if `least` is so.
  Error WantsInPlace(size_t bytes, size_t blocks, Reaches least, bool* wants);
  // What is read where it lies. The owners' addresses are in their posts, 0 where that cannot be.
  Error AgreeOnReach();
  uint64_t AddressAt(int member) const;
  Error ExchangeInPlace(uint64_t mine, size_t offset, const Block& to, bool* done);
  Error GatherInPlace(const Block& mine, const Block& all, int root, bool* done);
  Error ScatterInPlace(const Block& all, const Block& mine, int root, bool* done);
  Error ReadFrom(int member, uint64_t address, void* to, size_t bytes, bool* read);
  bool IsRefused() const;  // to some other member, in this turn

  // Has ended this turn for itself.
  bool HasLeft(int member) const { return memory_.lines(member).taken.load(std::memory_order_acquire) >= DoneWith(turn_); }
  bool HasPosted(int member) const { return PostOf(member).turn.load(std::memory_order_acquire) >= turn_; }
  Post& PostOf(int member) const { return memory_.lines(member).posts[turn_ % kTurns]; }

  const Memory memory_;
  const int me_, members_;
  Waiter& waiter_;
  Reach& reach_;
  const bool spins_;
  Reaches reaches_ = Reaches::kNotAsked;
  uint64_t turn_ = 0;
  uint32_t what_ = 0;            // of this turn
  uint64_t bytes_ = 0;           // of this turn
  bool overwritten_ = false;     // a word of this member was
  bool changed_ = false;         // a word of this member, and nobody was woken yet
  uint64_t posted_[kTurns] = {}, ready_ = 0, taken_ = 0;  // the words of this member
  uint64_t all_finished_ = 0;    // the last turn that all are known to have finished
  uint64_t area_used_ = 0;       // the last turn in which this member wrote into its area
  Fold fold_;
  std::vector<const uint8_t*> inputs_;
};

// Of data, between the program's memory and bytes.
void CopyOut(const Block& from, uint8_t* to);
void CopyIn(const uint8_t* from, const Block& to);

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_COLL_HOST_MEMBER_H_
