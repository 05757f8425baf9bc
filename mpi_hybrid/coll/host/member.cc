#include "mpi_hybrid/coll/host/member.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/copy.h"
#include "mpi_hybrid/core/pause.h"

namespace weft::mpi::coll {
namespace {

constexpr int kSpins = 300;           // looks, before the Waiter is asked; some 3 us
constexpr int kEager = 100;           // of these without a pause
constexpr size_t kPiece = 32 * 1024;  // of a broadcast
constexpr uint64_t kPieces = kArea / kPiece;

Error OverwrittenError(const std::string& rank) {
  const std::string what = "a counter of " + rank + " in the collectives of a communicator was overwritten";
  return Error(MPI_ERR_OTHER, what + ": another process wrote into the memory of the host's ranks");
}

}  // namespace

void CopyOut(const Block& from, uint8_t* to) {
  const size_t bytes = static_cast<size_t>(from.bytes());
  if (bytes == 0) return;
  if (from.type->dense) {
    CopyBytes(to, from.buffer, bytes);
    return;
  }
  TypeCursor cursor(from.buffer, from.count, *from.type);
  Pack(cursor, {to, bytes});
}

void CopyIn(const uint8_t* from, const Block& to) {
  const size_t bytes = static_cast<size_t>(to.bytes());
  if (bytes == 0) return;
  if (to.type->dense) {
    CopyBytes(to.buffer, from, bytes);
    return;
  }
  TypeCursor cursor(to.buffer, to.count, *to.type);
  Unpack(cursor, {from, bytes});
}

Member::Member(Memory memory, int me, int members, Waiter& waiter, Reach& reach, bool spins)
    : memory_(memory), me_(me), members_(members), waiter_(waiter), reach_(reach), spins_(spins), inputs_(static_cast<size_t>(members)) {}

// --- words ---

template <typename Look>
Error Member::Await(const Look& look) {
  if (spins_) {
    for (int i = 0; i < kSpins; ++i) {
      if (look() < 0) return Came();
      if (i > kEager) Pause();
    }
  } else if (look() < 0) {
    return Came();
  }
  Wake();
  WEFT_MPI_TRY(waiter_.Until({[](const void* it) { return (*static_cast<const Look*>(it))(); }, &look}));
  return Came();
}

// What was waited for is there; or only seems to be.
Error Member::Came() {
  if (misled_by_ < 0) [[likely]]
    return {};
  NoteGone(misled_by_);
  return OverwrittenError("rank " + std::to_string(misled_by_));
}

// An owner cannot find this at no cost: to read its own word again takes it as long as a change takes to reach another processor.
bool Member::HasCome(int member, const Word& word, uint64_t awaited) {
  const uint64_t value = word.value.load(std::memory_order_acquire);
  if (value < awaited) return false;
  if (word.same_value.load(std::memory_order_acquire) < value) [[unlikely]] misled_by_ = member;
  return true;
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

// Pairs with HostGroup::Arm: a member that falls asleep checks once more after it has announced that. The fence comes
// late, so that it need not wait for the cache line of the change. It also orders the program's writes after the call
// (ReadFrom).
void Member::Wake() {
  if (!std::exchange(changed_, false)) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (memory_.head().sleepers.load(std::memory_order_seq_cst) == 0) [[likely]]
    return;
  for (int i = 0; i < members_; ++i) {
    if (memory_.lines(i).sleeps_for.load(std::memory_order_seq_cst) == static_cast<uint32_t>(me_) + 1) waiter_.Ring(i);
  }
}

// Pairs with HostGroup::Arm as Wake does: this member has seen the first one's post, or has written it.
void Member::PassOn() {
  changed_ = false;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (memory_.head().sleepers.load(std::memory_order_seq_cst) == 0) return;
  for (int i = 2 * me_ + 1; i <= 2 * me_ + 2 && i < members_; ++i) {
    if (memory_.lines(i).sleeps_for.load(std::memory_order_seq_cst) == 1) waiter_.Ring(i);
  }
}

bool Member::HasPassed(int member) const {
  if (HasLeft(member)) return true;
  const MemberLines& lines = memory_.lines(member);
  return std::any_of(std::begin(lines.posts), std::end(lines.posts), [&](const Post& post) {
    const uint64_t turn = post.turn.load(std::memory_order_acquire);
    return turn > turn_ && post.same_turn.load(std::memory_order_relaxed) >= turn;
  });
}

bool Member::HasItsWords() const {
  const MemberLines& lines = memory_.lines(me_);
  const auto as_posted = [](const Post& post, uint64_t turn) { return post.turn.load(std::memory_order_acquire) == turn; };
  return std::equal(std::begin(lines.posts), std::end(lines.posts), std::begin(posted_), as_posted) &&
         lines.ready.value.load(std::memory_order_acquire) == ready_ && lines.taken.value.load(std::memory_order_acquire) == taken_;
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
  if (gone == static_cast<uint32_t>(me_) + 1) return OverwrittenError("this rank");
  if (gone > static_cast<uint32_t>(members_)) {
    return Error(MPI_ERR_OTHER, "the word of a dead rank was overwritten: another process wrote into the memory of the host's ranks");
  }
  return Error(MPIX_ERR_PROC_FAILED, "rank " + std::to_string(gone - 1) + " of the communicator is gone");
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
  post.same_turn.store(turn_, std::memory_order_release);
  post.turn.store(posted_[turn_ % kTurns] = turn_, std::memory_order_release);
  changed_ = true;
  return {};
}

// A member's word, for which the others wait, after it has heard theirs.
Error Member::SayAfter(const Error& heard, const void* data, size_t bytes) {
  if (!heard.ok()) {
    WEFT_MPI_TRY(Gone());
    bytes_ = ~uint64_t{0};  // those who hear this see that it has failed
  }
  return Say(data, bytes);
}

Error Member::Hear(int member) {
  const Post& post = PostOf(member);
  const uint64_t turn = post.turn.load(std::memory_order_acquire);
  if (post.same_turn.load(std::memory_order_acquire) != turn) [[unlikely]] {
    NoteGone(member);
    return OverwrittenError("rank " + std::to_string(member));
  }
  const uint32_t what = post.what;
  const uint64_t bytes = post.bytes;
  if (turn == turn_ && what == what_ && bytes == bytes_) [[likely]]
    return {};
  const std::string rank = "rank " + std::to_string(member);
  if (turn != turn_ || what != what_) return Error(MPI_ERR_TRUNCATE, rank + " is in another collective: the calls at the two ranks do not match");
  return Error(MPI_ERR_TRUNCATE, rank + " has " + std::to_string(bytes) + " bytes in a collective of which this rank expects " +
                                     std::to_string(bytes_) + ": the calls at the two ranks do not match");
}

Error Member::AwaitPost(int member) {
  return Await([&, this] { return HasPosted(member) ? -1 : member; });
}

Error Member::HearAll() {
  WEFT_MPI_TRY(AwaitEach([this](int i) { return HasPosted(i); }));
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
    return HasCome(i, memory_.lines(i).taken, DoneWith(turn));
  }));
  all_finished_ = turn;
  return {};
}

Error Member::AwaitReady(int member, uint64_t steps) {
  return Await([&, this] {
    return HasCome(member, memory_.lines(member).ready, kStep * turn_ + steps) ? -1 : member;
  });
}

Error Member::AwaitAllReady(uint64_t steps) {
  return AwaitEach([&, this](int i) {
    return HasCome(i, memory_.lines(i).ready, kStep * turn_ + steps);
  });
}

Error Member::AwaitTaken(int member, uint64_t steps) {
  return Await([&, this] {
    return HasCome(member, memory_.lines(member).taken, kStep * turn_ + steps) ? -1 : member;
  });
}

Error Member::AwaitAllTaken(uint64_t steps) {
  return AwaitEach([&, this](int i) {
    return HasCome(i, memory_.lines(i).taken, kStep * turn_ + steps);
  });
}

void Member::SetReady(uint64_t steps) {
  memory_.lines(me_).ready.Store(ready_ = kStep * turn_ + steps);
  changed_ = true;
  Wake();
}

void Member::SetTaken(uint64_t steps) {
  memory_.lines(me_).taken.Store(taken_ = kStep * turn_ + steps);
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
  return bytes <= kSlot ? memory_.data(member, turn_, bytes) : memory_.area(member);
}

Error Member::Give(const Block& data, size_t bytes) {
  uint8_t packed[kInline];
  uint8_t* room = packed;
  if (bytes > kInline) WEFT_MPI_TRY(Room(bytes, &room));
  CopyOut(data, room);
  return Say(packed, bytes <= kInline ? bytes : 0);
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
    if (error.ok()) PassOn();
  } else {
    error = Say();
    if (error.ok()) error = AwaitPost(0);
    if (error.ok()) PassOn();
    if (error.ok()) error = Hear(0);
    if (error.ok()) AllAreIn();
  }
  return EndInStep(std::move(error));
}

Error Member::Broadcast(const Block& data, int root) {
  const size_t bytes = static_cast<size_t>(data.bytes());
  WEFT_MPI_TRY(Begin(What::kBroadcast, root, data.bytes()));
  if (bytes > kSlot) return End(Pieces(data, root));
  if (me_ == root) return End(Give(data, bytes));
  Error error = AwaitPost(root);
  if (error.ok()) error = Hear(root);
  if (error.ok()) CopyIn(GivenBy(root, bytes), data);
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
  WEFT_MPI_TRY(AwaitPost(root));
  WEFT_MPI_TRY(Hear(root));
  for (uint64_t i = 0; i < pieces; ++i) {
    WEFT_MPI_TRY(AwaitReady(root, i + 1));
    Unpack(cursor, {memory_.area(root) + i % kPieces * kPiece, length(i)});
    if (i + 1 < pieces) SetTaken(i + 1);
  }
  return {};
}

}  // namespace weft::mpi::coll
