#include "mpi_hybrid/coll/host/member.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace weft::mpi::host {
namespace {

constexpr int kSpins = 1500;  // looks, before others are asked; some 20 us
constexpr int kEager = 100;   // of these without a pause
constexpr int kMostAtOnce = 8;              // members of which each hears each
constexpr size_t kAtOnce = 4096;            // bytes that each of them reduces alone
constexpr size_t kPiece = 32 * 1024;        // of a broadcast
constexpr uint64_t kPieces = kArea / kPiece;
constexpr size_t kHalf = kArea / 2;         // of the area: vectors to be reduced, and results

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

uint64_t DoneWith(uint64_t turn) { return kStep * (turn + 1); }

}  // namespace

void CopyOut(const Block& from, uint8_t* to) {
  const size_t bytes = static_cast<size_t>(from.bytes());
  if (bytes == 0) return;
  if (from.type->dense) {
    std::memcpy(to, from.buffer, bytes);
    return;
  }
  TypeCursor cursor(from.buffer, from.count, *from.type);
  Pack(cursor, {to, bytes});
}

void CopyIn(const uint8_t* from, const Block& to) {
  const size_t bytes = static_cast<size_t>(to.bytes());
  if (bytes == 0) return;
  if (to.type->dense) {
    std::memcpy(to.buffer, from, bytes);
    return;
  }
  TypeCursor cursor(to.buffer, to.count, *to.type);
  Unpack(cursor, {from, bytes});
}

Member::Member(Memory memory, int me, int members, Waiter& waiter, bool spins)
    : memory_(memory), me_(me), members_(members), waiter_(waiter), spins_(spins), inputs_(static_cast<size_t>(members)) {}

// --- words ---

template <typename Look>
Error Member::Await(const Look& look) {
  if (spins_) {
    for (int i = 0; i < kSpins; ++i) {
      if (look() < 0) return {};
      if (i > kEager) Pause();
    }
  } else if (look() < 0) {
    return {};
  }
  Wake();
  return waiter_.Until({[](const void* it) { return (*static_cast<const Look*>(it))(); }, &look});
}

template <typename Has>
Error Member::AwaitEach(const Has& has) {
  int next = 0;  // those before have it
  return Await([&, this] {
    for (; next < members_; ++next) {
      if (next != me_ && !has(next)) return next;
    }
    return -1;
  });
}

// Whoever sleeps has looked again after it said so. Between the change and this look there is time for others' answers: a
// fence at once would wait for the line.
void Member::Wake() {
  if (!std::exchange(changed_, false)) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (memory_.head().sleepers.load(std::memory_order_seq_cst) == 0) [[likely]]
    return;
  for (int i = 0; i < members_; ++i) {
    if (memory_.lines(i).sleeps_for.load(std::memory_order_seq_cst) == static_cast<uint32_t>(me_) + 1) waiter_.Ring(i);
  }
}

bool Member::HasPassed(int member) const {
  const MemberLines& lines = memory_.lines(member);
  if (lines.taken.load(std::memory_order_acquire) >= DoneWith(turn_)) return true;
  return std::any_of(std::begin(lines.posts), std::end(lines.posts), [&](const Post& post) {
    return post.turn.load(std::memory_order_acquire) > turn_;
  });
}

void Member::NoteGone(int member) {
  uint32_t none = 0;
  memory_.head().gone.compare_exchange_strong(none, static_cast<uint32_t>(member) + 1);
  for (int i = 0; i < members_; ++i) {
    if (i != me_) waiter_.Ring(i);
  }
}

Error Member::Gone() const {
  const uint32_t gone = memory_.head().gone.load(std::memory_order_acquire);
  if (gone == 0) [[likely]]
    return {};
  return Error(MPI_ERR_PROC_ABORTED, "rank " + std::to_string(gone - 1) + " of the communicator is gone");
}

Error Member::Begin(What what, int root, MPI_Aint bytes) {
  ++turn_;
  what_ = static_cast<uint32_t>(what) << 24 | static_cast<uint32_t>(root);
  bytes_ = static_cast<uint64_t>(bytes);
  return Gone();
}

Error Member::End(Error error) {
  SetTaken(kStep);
  Wake();
  return error;
}

Error Member::EndInStep(Error error) {
  if (!error.ok()) [[unlikely]]
    return End(std::move(error));
  Wake();
  return {};
}

Error Member::Say(const void* data, size_t bytes) {
  if (turn_ > kTurns) WEFT_MPI_TRY(AwaitFinished(turn_ - kTurns));
  Post& post = PostOf(me_);
  post.what = what_;
  post.bytes = bytes_;
  if (bytes != 0 && bytes <= kInline) std::memcpy(post.data, data, bytes);
  post.turn.store(turn_, std::memory_order_release);
  changed_ = true;
  return {};
}

// The first member's word, for which the others wait, after it has heard theirs.
Error Member::SayAfter(const Error& heard) {
  if (!heard.ok()) {
    WEFT_MPI_TRY(Gone());
    bytes_ = ~uint64_t{0};  // those who hear this see that it has failed
  }
  return Say();
}

Error Member::Hear(int member) {
  const Post& post = PostOf(member);
  const uint64_t turn = post.turn.load(std::memory_order_acquire);
  const uint32_t what = post.what;
  const uint64_t bytes = post.bytes;
  if (turn == turn_ && what == what_ && bytes == bytes_) [[likely]]
    return {};
  const std::string rank = "rank " + std::to_string(member);
  if (turn != turn_ || what != what_) return Error(MPI_ERR_TRUNCATE, rank + " is in another collective: the calls at the two ranks do not match");
  return Error(MPI_ERR_TRUNCATE, rank + " has " + std::to_string(bytes) + " bytes in a collective of which this rank expects " +
                                     std::to_string(bytes_) + ": the calls at the two ranks do not match");
}

Error Member::HearAll() {
  WEFT_MPI_TRY(AwaitEach([this](int i) { return PostOf(i).turn.load(std::memory_order_acquire) >= turn_; }));
  for (int i = 0; i < members_; ++i) {
    if (i != me_) WEFT_MPI_TRY(Hear(i));
  }
  AllAreIn();
  return {};
}

// Nobody needs this member's word to finish a turn that is behind it.
Error Member::AwaitFinished(uint64_t turn) {
  if (all_finished_ >= turn) [[likely]]
    return {};
  WEFT_MPI_TRY(AwaitEach([&, this](int i) {
    return memory_.lines(i).taken.load(std::memory_order_acquire) >= DoneWith(turn);
  }));
  all_finished_ = turn;
  return {};
}

Error Member::AwaitReady(int member, uint64_t steps) {
  return Await([&, this] {
    return memory_.lines(member).ready.load(std::memory_order_acquire) >= kStep * turn_ + steps ? -1 : member;
  });
}

Error Member::AwaitAllReady(uint64_t steps) {
  return AwaitEach([&, this](int i) {
    return memory_.lines(i).ready.load(std::memory_order_acquire) >= kStep * turn_ + steps;
  });
}

Error Member::AwaitTaken(int member, uint64_t steps) {
  return Await([&, this] {
    return memory_.lines(member).taken.load(std::memory_order_acquire) >= kStep * turn_ + steps ? -1 : member;
  });
}

Error Member::AwaitAllTaken(uint64_t steps) {
  return AwaitEach([&, this](int i) {
    return memory_.lines(i).taken.load(std::memory_order_acquire) >= kStep * turn_ + steps;
  });
}

void Member::SetReady(uint64_t steps) {
  memory_.lines(me_).ready.store(kStep * turn_ + steps, std::memory_order_release);
  changed_ = true;
  Wake();
}

void Member::SetTaken(uint64_t steps) {
  memory_.lines(me_).taken.store(kStep * turn_ + steps, std::memory_order_release);
  changed_ = true;
}

Error Member::Room(size_t bytes, uint8_t** room) {
  if (bytes <= kSlot) {
    if (turn_ > kTurns) WEFT_MPI_TRY(AwaitFinished(turn_ - kTurns));
  } else {
    WEFT_MPI_TRY(AwaitFinished(area_used_));
    area_used_ = turn_;
  }
  *room = const_cast<uint8_t*>(RoomOf(me_, bytes));
  return {};
}

const uint8_t* Member::RoomOf(int member, size_t bytes) const {
  return bytes <= kSlot ? memory_.slot(member, turn_) : memory_.area(member);
}

// --- barrier and broadcast ---

Error Member::Barrier() {
  WEFT_MPI_TRY(Begin(What::kBarrier, 0, 0));
  if (members_ <= kMostAtOnce) {
    Error error = Say();
    if (error.ok()) error = HearAll();
    return EndInStep(std::move(error));
  }
  // The first waits for all, the others for it.
  Error error;
  if (me_ == 0) {
    error = HearAll();
    if (Error said = SayAfter(error); error.ok()) error = std::move(said);
  } else {
    error = Say();
    if (error.ok()) {
      error = Await([this] { return PostOf(0).turn.load(std::memory_order_acquire) >= turn_ ? -1 : 0; });
    }
    if (error.ok()) error = Hear(0);
    if (error.ok()) AllAreIn();
  }
  return EndInStep(std::move(error));
}

Error Member::Broadcast(const Block& data, int root) {
  const size_t bytes = static_cast<size_t>(data.bytes());
  WEFT_MPI_TRY(Begin(What::kBroadcast, root, data.bytes()));
  if (bytes > kSlot) return End(Pieces(data, root));
  if (me_ == root) {
    uint8_t packed[kInline];
    uint8_t* room = packed;
    Error error = bytes > kInline ? Room(bytes, &room) : Error();
    if (!error.ok()) return End(std::move(error));
    CopyOut(data, room);
    return End(Say(packed, bytes <= kInline ? bytes : 0));
  }
  Error error = Await([&, this] { return PostOf(root).turn.load(std::memory_order_acquire) >= turn_ ? -1 : root; });
  if (error.ok()) error = Hear(root);
  if (error.ok()) CopyIn(bytes <= kInline ? PostOf(root).data : memory_.slot(root, turn_), data);
  return End(std::move(error));
}

Error Member::Pieces(const Block& data, int root) {
  const size_t bytes = static_cast<size_t>(data.bytes());
  TypeCursor cursor(data.buffer, data.count, *data.type);
  auto length = [&](uint64_t piece) { return std::min(kPiece, bytes - piece * kPiece); };
  const uint64_t pieces = (bytes + kPiece - 1) / kPiece;
  if (me_ == root) {
    WEFT_MPI_TRY(AwaitFinished(area_used_));
    area_used_ = turn_;
    WEFT_MPI_TRY(Say());
    for (uint64_t i = 0; i < pieces; ++i) {
      if (i >= kPieces) WEFT_MPI_TRY(AwaitAllTaken(i - kPieces + 1));
      Pack(cursor, {memory_.area(me_) + i % kPieces * kPiece, length(i)});
      SetReady(i + 1);
    }
    return {};
  }
  WEFT_MPI_TRY(Await([&, this] { return PostOf(root).turn.load(std::memory_order_acquire) >= turn_ ? -1 : root; }));
  WEFT_MPI_TRY(Hear(root));
  for (uint64_t i = 0; i < pieces; ++i) {
    WEFT_MPI_TRY(AwaitReady(root, i + 1));
    Unpack(cursor, {memory_.area(root) + i % kPieces * kPiece, length(i)});
    if (i + 1 < pieces) SetTaken(i + 1);
  }
  return {};
}

// --- reductions ---

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
    std::memcpy(room, send, bytes);
    WEFT_MPI_TRY(Say());
  }
  WEFT_MPI_TRY(HearAll());
  for (int i = 0; i < members_; ++i) {
    inputs_[static_cast<size_t>(i)] = bytes <= kInline ? PostOf(i).data : memory_.slot(i, turn_);
  }
  fold_.Compute(0, count, inputs_, static_cast<uint8_t*>(receive));
  return {};
}

// The first does, and the others hear it: with many of them each would wake each.
Error Member::AllReduceByFirst(const void* send, void* receive, MPI_Aint count, const Datatype& type) {
  const size_t bytes = static_cast<size_t>(count * type.size);
  uint8_t* room = nullptr;
  WEFT_MPI_TRY(Room(bytes, &room));
  if (me_ != 0) {
    if (bytes != 0) std::memcpy(room, send, bytes);
    WEFT_MPI_TRY(Say());
    WEFT_MPI_TRY(Await([this] { return PostOf(0).turn.load(std::memory_order_acquire) >= turn_ ? -1 : 0; }));
    WEFT_MPI_TRY(Hear(0));
    AllAreIn();
    if (bytes != 0) std::memcpy(receive, memory_.slot(0, turn_), bytes);
    return {};
  }
  Error error = HearAll();
  if (error.ok()) {
    for (int i = 0; i < members_; ++i) inputs_[static_cast<size_t>(i)] = memory_.slot(i, turn_);
    inputs_[0] = static_cast<const uint8_t*>(send);
    fold_.Compute(0, count, inputs_, room);
  }
  if (Error said = SayAfter(error); error.ok()) error = std::move(said);
  if (error.ok() && bytes != 0) std::memcpy(receive, room, bytes);
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
    std::memcpy(mine, from, at(begin(me_)));
    std::memcpy(mine + at(begin(me_ + 1)), from + at(begin(me_ + 1)), at(here - begin(me_ + 1)));
    if (first == 0) WEFT_MPI_TRY(Say());
    SetReady(++steps);
    if (first == 0) WEFT_MPI_TRY(HearAll());
    WEFT_MPI_TRY(AwaitAllReady(steps));
    const size_t share = at(begin(me_));
    for (int i = 0; i < members_; ++i) inputs_[static_cast<size_t>(i)] = memory_.area(i) + share;
    inputs_[static_cast<size_t>(me_)] = from + share;
    fold_.Compute(first + begin(me_), begin(me_ + 1) - begin(me_), inputs_, mine + kHalf);
    SetReady(++steps);
    std::memcpy(to + share, mine + kHalf, at(begin(me_ + 1)) - share);
    WEFT_MPI_TRY(AwaitAllReady(steps));
    for (int i = 0; i < members_; ++i) {
      if (i != me_) std::memcpy(to + at(begin(i)), memory_.area(i) + kHalf, at(begin(i + 1)) - at(begin(i)));
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
    if (me_ != root) {
      uint8_t* room = nullptr;
      WEFT_MPI_TRY(Room(bytes, &room));
      if (bytes != 0) std::memcpy(room, send, bytes);
      return Say();
    }
    WEFT_MPI_TRY(HearAll());
    for (int i = 0; i < members_; ++i) inputs_[static_cast<size_t>(i)] = memory_.slot(i, turn_);
    inputs_[static_cast<size_t>(root)] = static_cast<const uint8_t*>(send);
    if (send == receive) {
      uint8_t* room = nullptr;
      WEFT_MPI_TRY(Room(bytes, &room));
      if (bytes != 0) std::memcpy(room, send, bytes);
      inputs_[static_cast<size_t>(root)] = room;
    }
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
      std::memcpy(memory_.area(me_) + half, from, at(here));
      SetReady(steps + 1);
      continue;
    }
    if (first == 0) WEFT_MPI_TRY(HearAll());
    WEFT_MPI_TRY(AwaitAllReady(steps + 1));
    for (int i = 0; i < members_; ++i) inputs_[static_cast<size_t>(i)] = memory_.area(i) + half;
    inputs_[static_cast<size_t>(root)] = from;
    if (send == receive) {
      std::memcpy(memory_.area(me_), from, at(here));
      inputs_[static_cast<size_t>(root)] = memory_.area(me_);
    }
    fold_.Compute(first, here, inputs_, static_cast<uint8_t*>(receive) + at(first));
    SetTaken(steps + 1);
  }
  return {};
}

// --- blocks ---

Error Member::Gather(const Block& mine, const Block& all, int root) {
  const MPI_Aint block = me_ == root ? all.bytes() : mine.bytes();
  WEFT_MPI_TRY(Begin(What::kGather, root, block));
  const size_t bytes = static_cast<size_t>(block);
  if (me_ != root) {
    uint8_t* room = nullptr;
    Error error = Room(bytes, &room);
    if (!error.ok()) return End(std::move(error));
    CopyOut(mine, room);
    return End(Say());
  }
  Error error = HearAll();
  for (int i = 0; i < members_ && error.ok(); ++i) {
    if (i != me_) CopyIn(RoomOf(i, bytes), {all.at(i), all.count, all.type});
  }
  if (error.ok() && !mine.in_place) error = CopyTyped(mine.buffer, mine.count, *mine.type, all.at(me_), all.count, *all.type);
  return End(std::move(error));
}

Error Member::Scatter(const Block& all, const Block& mine, int root) {
  const MPI_Aint block = me_ == root ? all.bytes() : mine.bytes();
  WEFT_MPI_TRY(Begin(What::kScatter, root, block));
  const size_t bytes = static_cast<size_t>(block), total = bytes * static_cast<size_t>(members_);
  if (me_ == root) {
    uint8_t* room = nullptr;
    Error error = Room(total, &room);
    if (!error.ok()) return End(std::move(error));
    CopyOut({all.buffer, all.count * members_, all.type}, room);
    error = Say();
    if (error.ok() && !mine.in_place) error = CopyTyped(all.at(me_), all.count, *all.type, mine.buffer, mine.count, *mine.type);
    return End(std::move(error));
  }
  Error error = Await([&, this] { return PostOf(root).turn.load(std::memory_order_acquire) >= turn_ ? -1 : root; });
  if (error.ok()) error = Hear(root);
  if (error.ok()) CopyIn(RoomOf(root, total) + static_cast<size_t>(me_) * bytes, mine);
  return End(std::move(error));
}

Error Member::AllGather(const Block& mine, const Block& all) {
  WEFT_MPI_TRY(Begin(What::kAllGather, 0, all.bytes()));
  const size_t bytes = static_cast<size_t>(all.bytes());
  uint8_t* room = nullptr;
  Error error = Room(bytes, &room);
  if (error.ok()) {
    CopyOut(mine.in_place ? Block{all.at(me_), all.count, all.type} : mine, room);
    error = Say();
  }
  if (error.ok()) error = HearAll();
  for (int i = 0; i < members_ && error.ok(); ++i) {
    if (i != me_ || !mine.in_place) CopyIn(RoomOf(i, bytes), {all.at(i), all.count, all.type});
  }
  return bytes <= kSlot ? EndInStep(std::move(error)) : End(std::move(error));
}

Error Member::AllToAll(const Block& from, const Block& to) {
  const Block& given = from.in_place ? to : from;
  WEFT_MPI_TRY(Begin(What::kAllToAll, 0, given.bytes()));
  const size_t bytes = static_cast<size_t>(given.bytes()), total = bytes * static_cast<size_t>(members_);
  if (total > kArea) return End(AllToAllInSteps(given, to));
  uint8_t* room = nullptr;
  Error error = Room(total, &room);
  if (error.ok()) {
    CopyOut({given.buffer, given.count * members_, given.type}, room);
    error = Say();
  }
  if (error.ok()) error = HearAll();
  for (int i = 0; i < members_ && error.ok(); ++i) {
    CopyIn(RoomOf(i, total) + static_cast<size_t>(me_) * bytes, {to.at(i), to.count, to.type});
  }
  return total <= kSlot ? EndInStep(std::move(error)) : End(std::move(error));
}

// A piece of each block after the other, in one half of the area while the others still read the last ones.
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
    if (steps >= 2) WEFT_MPI_TRY(AwaitAllTaken(steps - 1));
    for (int i = 0; i < members_; ++i) {
      if (i != me_) Pack(out[static_cast<size_t>(i)], {place(me_, i), here});
    }
    if (first == 0) WEFT_MPI_TRY(Say());
    SetReady(steps + 1);
    if (first == 0) WEFT_MPI_TRY(HearAll());
    WEFT_MPI_TRY(AwaitAllReady(steps + 1));
    for (int i = 0; i < members_; ++i) {
      if (i != me_) Unpack(in[static_cast<size_t>(i)], {place(i, me_), here});
    }
    SetTaken(steps + 1);
  }
  if (&from == &to) return {};  // in place
  return CopyTyped(from.at(me_), from.count, *from.type, to.at(me_), to.count, *to.type);
}

}  // namespace weft::mpi::host
