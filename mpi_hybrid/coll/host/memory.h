#ifndef MPI_HYBRID_COLL_HOST_MEMORY_H_
#define MPI_HYBRID_COLL_HOST_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft::mpi::coll {

// The memory that the ranks of a communicator on one host share for their collectives: a head; the words of all members,
// side by side, since each member reads those of all others; their short data of a turn, side by side for the same
// reason; a block of longer data per member. Only a member writes its words and its data. It starts as zeros; pages that are never touched take no memory. It grows with the number of members,
// not with the number of pairs.
//
// All members go through the same collectives, their turns 1, 2, ... A member posts that it has come to a turn,
// together with a description of the call, and with the data if it is short enough. A member that reads a word of
// another member copies it and checks the copy: it never uses a length or an address from there unchecked.

inline constexpr int kMostMembers = 1024;
inline constexpr int kTurns = 4;  // number of posts and slots: one member may be this far ahead of another
inline constexpr size_t kInline = 32;              // bytes of data in a post
inline constexpr size_t kShort = 1024;             // bytes of data for one turn that are short
inline constexpr size_t kSlot = 16 * 1024;         // ... at most
inline constexpr size_t kArea = 256 * 1024;        // bytes of the area; longer data passes through it in pieces

// One cache line.
struct alignas(64) Post {
  // written last, with release: publishes the rest of the post and the slot. Others load it with acquire
  std::atomic<uint64_t> turn;
  uint32_t what;               // the collective and its root
  uint64_t bytes;              // bytes of data that follow from the arguments of the call
  // written right before `turn`, in the same way: another process has overwritten `turn` if they differ
  std::atomic<uint64_t> same_turn;
  alignas(32) uint8_t data[kInline];
};
static_assert(sizeof(Post) == 64);

// A word that its owner counts up, and a copy, which it writes first. Both publish what the owner wrote before. If the
// copy is behind, another process has overwritten the word.
struct alignas(64) Word {
  std::atomic<uint64_t> value;  // written with release
  std::atomic<uint64_t> same_value;

  void Store(uint64_t to) {
    same_value.store(to, std::memory_order_release);
    value.store(to, std::memory_order_release);
  }
  // What was overwritten is not.
  bool IsAtLeast(uint64_t least) const {
    const uint64_t now = value.load(std::memory_order_acquire);
    return now >= least && same_value.load(std::memory_order_acquire) >= now;
  }
};

struct MemberLines {
  Post posts[kTurns];
  // Both are kStep * turn + steps within that turn. `ready`: how much data is in the area. `taken`: how much of the
  // others' data this member no longer needs. The member stores both with release: `ready` publishes the data, `taken`
  // returns the others' memory. The others load `taken` with acquire before they overwrite that memory.
  Word ready;
  Word taken;
  // The member whose next word this one sleeps for, plus one; 0: none. Pairs with `turn`, `ready` and `taken` of that
  // member. This member stores it and then checks those words (HostGroup::Arm). The other member stores those words and
  // then checks it (Member::Wake). Each side has a full fence between the two.
  alignas(64) std::atomic<uint32_t> sleeps_for;
  // An address in the member's own memory, where it has stored `cookie` before the others use this field. A process
  // that can read the cookie there may read the rest of the memory.
  alignas(64) uint64_t cookie_address;
  uint8_t cookie[16];
  uint64_t mark;  // its AddressSpaceMark
};

inline constexpr uint64_t kStep = uint64_t{1} << 24;
static_assert(sizeof(MemberLines) % 128 == 0);  // processors fetch two lines at a time; no member's words come with another's

struct Head {
  // a member that died before its turn, plus one; 0: none. Every sleeping member is woken for it
  std::atomic<uint32_t> gone;
  alignas(64) std::atomic<uint32_t> sleepers;  // number of members that may sleep; part of the pair of `sleeps_for`
  // By member: 1 if it has freed the communicator. Sequentially consistent: of two members that leave last, at least
  // one sees that all have left.
  alignas(64) std::atomic<uint8_t> left[kMostMembers];
};
inline constexpr size_t kHeadBytes = 4096;
static_assert(sizeof(Head) <= kHeadBytes);

class Memory {
 public:
  static constexpr size_t Bytes(int members) { return BlocksStart(members) + static_cast<size_t>(members) * kBlockBytes; }

  // `base`: Bytes(members) bytes of memory, aligned to a page.
  Memory(uint8_t* base, int members)
      : base_(base), shorts_(base + ShortsStart(members)), blocks_(base + BlocksStart(members)), turn_bytes_(static_cast<size_t>(members) * kShort) {}

  Head& head() const { return *reinterpret_cast<Head*>(base_); }
  MemberLines& lines(int member) const { return reinterpret_cast<MemberLines*>(base_ + kHeadBytes)[member]; }
  // The data of a member in a turn in which each has `bytes`, kSlot at most. Short ones have their places by that length:
  // few pages, of which each member touches all. So that memory of a turn is free for another one as a whole or not at
  // all.
  uint8_t* data(int member, uint64_t turn, size_t bytes) const {
    if (bytes > kShort) return Block(member) + turn % kTurns * kSlot;
    return shorts_ + turn % kTurns * turn_bytes_ + static_cast<size_t>(member) * RoundUp(bytes, kTwoLines);
  }
  uint8_t* area(int member) const { return Block(member) + kTurns * kSlot; }

 private:
  static constexpr size_t kPage = 4096, kTwoLines = 128;
  // Not a power of two: what all members have at one offset is then in different sets of a cache.
  static constexpr size_t kBlockBytes = kTurns * kSlot + kArea;
  static constexpr size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }
  static constexpr size_t ShortsStart(int members) { return RoundUp(kHeadBytes + static_cast<size_t>(members) * sizeof(MemberLines), kPage); }
  static constexpr size_t BlocksStart(int members) { return RoundUp(ShortsStart(members) + kTurns * static_cast<size_t>(members) * kShort, kPage); }
  uint8_t* Block(int member) const { return blocks_ + static_cast<size_t>(member) * kBlockBytes; }

  uint8_t* base_;
  uint8_t* shorts_;
  uint8_t* blocks_;
  size_t turn_bytes_;  // of short data
};

}  // namespace weft::mpi::coll

#endif  // MPI_HYBRID_COLL_HOST_MEMORY_H_
