#ifndef MPI_HYBRID_COLL_HOST_MEMORY_H_
#define MPI_HYBRID_COLL_HOST_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft::mpi::host {

// The memory that the ranks of a communicator on one host have in common for their collectives: a head, and a block for
// each member, which only that one writes. Zero at the start; what is not touched takes none. It grows with the members,
// not with their pairs.
//
// Members go through the same collectives, their turns 1, 2, ... Each says in one of its posts that it has come to a
// turn, together with what it thinks that one is, and with data that are short enough. Who reads a word of another
// member copies it and checks the copy: lengths and addresses never come from there.

inline constexpr int kMostMembers = 1024;
inline constexpr int kTurns = 4;                   // posts, and slots: so far may one member be ahead of another
inline constexpr size_t kInline = 32;              // bytes of data in a post
inline constexpr size_t kSlot = 16 * 1024;         // of data for one turn
inline constexpr size_t kArea = 256 * 1024;        // ... that go through it in pieces

// A cache line.
struct alignas(64) Post {
  std::atomic<uint64_t> turn;  // written last, with release: publishes the rest of the post, and the slot. Others load it with acquire
  uint32_t what;               // the collective and its root
  uint64_t bytes;              // of data, by the arguments of the call
  alignas(32) uint8_t data[kInline];
};
static_assert(sizeof(Post) == 64);

struct MemberLines {
  Post posts[kTurns];
  // Both kStep * turn + steps of that turn: which data are there in the area, and what of others' data it needs no more. Stored with
  // release by the member: `ready` publishes the data, `taken` gives those of others back, who load it with acquire before they write there.
  alignas(64) std::atomic<uint64_t> ready;
  alignas(64) std::atomic<uint64_t> taken;
  // The member whose next word it sleeps for, plus one; 0: none. Pairs with `turn`, `ready` and `taken` of that member: this one stores it and
  // looks at them (HostGroup::Arm), that one stores them and looks at it (Member::Wake), a full fence between the two at each side.
  alignas(64) std::atomic<uint32_t> sleeps_for;
  // In the member's own memory, written before all use this one: who can read it there may read the rest.
  alignas(64) uint64_t cookie_address;
  uint8_t cookie[16];
  uint64_t mark;  // its AddressSpaceMark
};

inline constexpr uint64_t kStep = uint64_t{1} << 24;
inline constexpr size_t kLinesBytes = 4096;
inline constexpr size_t kMemberBytes = kLinesBytes + kTurns * kSlot + kArea;
static_assert(sizeof(MemberLines) <= kLinesBytes);

struct Head {
  std::atomic<uint32_t> gone;                  // a member that died before its turn, plus one; 0: none. Every sleeper is rung for it
  alignas(64) std::atomic<uint32_t> sleepers;  // members that may sleep; part of the pair of `sleeps_for`
  // By member: 1, it has freed the communicator. Sequentially consistent: of two that leave last at least one sees that all have left.
  alignas(64) std::atomic<uint8_t> left[kMostMembers];
};
static_assert(sizeof(Head) <= kLinesBytes);

class Memory {
 public:
  static constexpr size_t Bytes(int members) { return kLinesBytes + static_cast<size_t>(members) * kMemberBytes; }

  // `base`: Bytes(members) of memory, aligned to a page.
  explicit Memory(uint8_t* base) : base_(base) {}

  Head& head() const { return *reinterpret_cast<Head*>(base_); }
  MemberLines& lines(int member) const { return *reinterpret_cast<MemberLines*>(Block(member)); }
  uint8_t* slot(int member, uint64_t turn) const { return Block(member) + kLinesBytes + turn % kTurns * kSlot; }
  uint8_t* area(int member) const { return Block(member) + kLinesBytes + kTurns * kSlot; }

 private:
  uint8_t* Block(int member) const { return base_ + kLinesBytes + static_cast<size_t>(member) * kMemberBytes; }

  uint8_t* base_;
};

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_COLL_HOST_MEMORY_H_
