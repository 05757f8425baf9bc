#ifndef MPI_HYBRID_COLL_HOST_MEMBER_H_
#define MPI_HYBRID_COLL_HOST_MEMBER_H_

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "mpi_hybrid/coll/host/fold.h"
#include "mpi_hybrid/coll/host/memory.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/datatype/op.h"

namespace weft::mpi::coll {

// Tells what a wait is for. Returns the member whose next word has not come yet; -1: all have come. It only reads.
struct Missing {
  int (*look)(const void*);
  const void* it;
  int operator()() const { return look(it); }
};

// Lets a member wait for others, and wakes other members.
class Waiter {
 public:
  virtual ~Waiter() = default;
  // Returns when no member is missing. An error: the missing member is dead (Until then calls Member::NoteGone), has
  // reported another death, or made a different call.
  virtual Error Until(Missing missing) = 0;
  // Wakes the member, which sleeps.
  virtual void Ring(int member) = 0;
};

// Access to the memory of the other members' processes.
class Reach {
 public:
  // kRefused: not all bytes could be read; kGone: the member's process has died
  enum class Outcome : uint8_t { kRead, kRefused, kGone };

  virtual ~Reach() = default;
  // Whether this member can read the memory of every other member.
  virtual bool ReachesAll() = 0;
  virtual Outcome Read(int member, uint64_t address, void* to, size_t bytes) = 0;
};

// `count` elements of each member, or for each member.
struct Block {
  void* buffer = nullptr;
  MPI_Aint count = 0;
  const Datatype* type = nullptr;
  bool in_place = false;  // the data is already at the place of the result; the other fields have no meaning

  MPI_Aint bytes() const { return count * type->size; }
  void* at(int i) const { return static_cast<uint8_t*>(buffer) + i * count * type->extent; }
};

// A member of a communicator whose ranks are all on one host. It carries out the collectives through shared memory
// (memory.h). Every member makes the same calls in the same order. If calls do not match, the members that notice get
// MPI_ERR_TRUNCATE. It does no I/O itself: the Waiter sleeps, the Reach reads other processes' memory. Not thread-safe.
class Member {
 public:
  // `spins`: each member has a processor of its own, so that it may spin.
  Member(Memory memory, int me, int members, Waiter& waiter, Reach& reach, bool spins);

  Error Barrier();
  Error Broadcast(const Block& data, int root);
  // The type is dense, and an element has at most kMostElement bytes. `send` may be equal to `receive`.
  Error AllReduce(const void* send, void* receive, MPI_Aint count, const Datatype& type, const Op& op, FoldOrder order);
  Error Reduce(const void* send, void* receive, MPI_Aint count, const Datatype& type, const Op& op, FoldOrder order, int root);
  Error Gather(const Block& mine, const Block& all, int root);
  Error Scatter(const Block& all, const Block& mine, int root);
  Error AllGather(const Block& mine, const Block& all);
  Error AllToAll(const Block& from, const Block& to);

  // Blocks of at least kInPlace bytes are read directly from the owner's memory, with one copy, if every member can
  // read every other's memory. The limit is kInPlaceBeyondArea if a member's blocks do not all fit into its area.
  // Blocks of a gather larger than kMostAtRoot are not read directly by the root: the root and the other members then
  // copy at the same time.
  static constexpr size_t kInPlace = 64 * 1024, kInPlaceBeyondArea = 8 * 1024, kMostAtRoot = 1024 * 1024 - 1;

  static constexpr MPI_Aint kMostElement = kSlot;

  int me() const { return me_; }
  int members() const { return members_; }
  uint64_t turn() const { return turn_; }
  // Whether the member has gone past our turn without having written the word that we wait for: its calls differ from
  // ours.
  bool HasPassed(int member) const;
  // Whether the words of this member still have the values that it wrote last.
  bool HasItsWords() const;
  // Reports that a member died. All members learn of it, and none of their collectives works any more.
  void NoteGone(int member);
  Error Gone() const;  // ok: no member has died

 private:
  static constexpr int kMostAtOnce = 8;        // up to so many members, each one reads from each other one
  static constexpr size_t kHalf = kArea / 2;  // bytes of the area; one half is written while the other is read

  enum class What : uint32_t { kBarrier = 1, kBroadcast, kAllReduce, kReduce, kGather, kScatter, kAllGather, kAllToAll, kReach };

  static constexpr uint64_t DoneWith(uint64_t turn) { return kStep * (turn + 1); }

  // Begins a turn. Posts of other members are checked against these arguments.
  Error Begin(What what, int root, MPI_Aint bytes);
  Error End(Error error);  // ends a turn after which this member needs no data in the others' slots and areas
  // The same, where the others learn of the end by this member's next post, because this member has heard from all of
  // them.
  Error EndInStep(Error error);
  // Posts that this member has come to the turn, with as much of the beginning of `data` as fits into the post.
  Error Say(const void* data = nullptr, size_t bytes = 0);
  Error SayAfter(const Error& heard, const void* data = nullptr, size_t bytes = 0);
  Error AwaitPost(int member);
  Error Hear(int member);
  Error HearAll();
  void AllAreIn() { all_finished_ = turn_ - 1; }

  // Waits until this member may overwrite the memory that it used in `turn`.
  Error AwaitFinished(uint64_t turn);
  Error AwaitReady(int member, uint64_t steps);
  Error AwaitAllReady(uint64_t steps);
  Error AwaitTaken(int member, uint64_t steps);
  Error AwaitAllTaken(uint64_t steps);
  // Whether the word of the member has come to `awaited`. If its copy has not, another process of the user has
  // overwritten the word: the wait then ends with an error.
  bool HasCome(int member, const Word& word, uint64_t awaited);
  Error Came();
  void SetReady(uint64_t steps);
  void SetTaken(uint64_t steps);
  void Wake();
  // All have posted, and wait for the first one's post. It wakes those below it in a binary tree, and each of them those
  // below itself, when it has seen that post: one member that wakes all would do so for longer than all the rest takes.
  void PassOn();
  template <typename Look>
  Error Await(const Look& look);
  template <typename Has>
  Error AwaitEach(const Has& has);

  // Space for `bytes` bytes that others read in this turn: in the slot or in the area.
  Error Room(size_t bytes, uint8_t** room);
  const uint8_t* RoomOf(int member, size_t bytes) const;
  // Posts this member's turn together with `bytes` bytes of `data`, for the members that read them: in the post, the
  // slot or the area.
  Error Give(const Block& data, size_t bytes);
  const uint8_t* GivenBy(int member, size_t bytes) const { return bytes <= kInline ? PostOf(member).data : RoomOf(member, bytes); }

  Error ReduceInSteps(const void* send, void* receive, MPI_Aint count, const Datatype& type, int root);
  Error AllReduceAtOnce(const void* send, void* receive, MPI_Aint count, const Datatype& type);
  Error AllReduceByFirst(const void* send, void* receive, MPI_Aint count, const Datatype& type);
  Error AllReduceInShares(const void* send, void* receive, MPI_Aint count, const Datatype& type);
  Error Pieces(const Block& data, int root);

  // Exchanges data of any length through the areas of the givers. A giver has one stream for each member, or one for
  // all.
  static constexpr int kAll = -1;
  struct Streams {
    size_t bytes;  // of each stream
    size_t streams;
    int giver = kAll, taker = kAll;  // the only giver or taker, which has no stream for itself
  };
  Error InSteps(const Streams& way, std::vector<TypeCursor> out, std::vector<TypeCursor> in);
  std::vector<TypeCursor> CursorsAt(const Block& blocks) const;
  Error GatherShort(const Block& mine, const Block& all, int root);
  Error GatherLong(const Block& mine, const Block& all, int root, bool in_place);
  Error ScatterShort(const Block& all, const Block& mine, int root);
  Error ScatterLong(const Block& all, const Block& mine, int root, bool in_place);
  Error Exchange(const Streams& way, bool in_place, uint64_t address, const Block& given, const Block& own, const Block& to);

  // whether each member can read each other's memory; kWithProcessors: and each has a processor of its own
  enum class Reaches : uint8_t { kNotAsked, kNo, kYes, kWithProcessors };
  // Whether blocks are to be read directly from the owner's memory: they are long enough, and the members' reach is at
  // least `least`. A member gives `blocks` blocks of `bytes` bytes.
  Error WantsInPlace(size_t bytes, size_t blocks, Reaches least, bool* wants);
  // Exchanges that read directly from the owner's memory. The owners' addresses are in their posts; 0: it cannot be
  // read there.
  Error AgreeOnReach();
  uint64_t AddressAt(int member) const;
  Error ExchangeInPlace(uint64_t mine, size_t offset, const Block& to, bool* done);
  Error GatherInPlace(const Block& mine, const Block& all, int root, bool* done);
  Error ScatterInPlace(const Block& all, const Block& mine, int root, bool* done);
  Error ReadFrom(int member, uint64_t address, void* to, size_t bytes, bool* read);
  bool IsRefused() const;  // to another member, in this turn

  // Whether the member has finished this turn.
  bool HasLeft(int member) const { return memory_.lines(member).taken.IsAtLeast(DoneWith(turn_)); }
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
  int misled_by_ = -1;           // a member, a word of which was overwritten
  bool changed_ = false;         // this member wrote a word and has not woken the waiting members yet
  uint64_t posted_[kTurns] = {}, ready_ = 0, taken_ = 0;  // the words of this member
  uint64_t all_finished_ = 0;    // the last turn that all members are known to have finished
  uint64_t area_used_ = 0;       // the last turn in which this member wrote into its area
  Fold fold_;
  std::vector<const uint8_t*> inputs_;
};

// Copy data between the program's memory and packed bytes.
void CopyOut(const Block& from, uint8_t* to);
void CopyIn(const uint8_t* from, const Block& to);

}  // namespace weft::mpi::coll

#endif  // MPI_HYBRID_COLL_HOST_MEMBER_H_
