#include "rdmap/testing/workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "rdmap/testing/segments.h"

namespace weft::rdmap::testing {
namespace {

constexpr ddp::STag kTarget{0x1001};
constexpr ddp::STag kSink{0x2002};
constexpr ddp::STag kCounter{0x3003};
constexpr uint64_t kTargetBase = 0xfffffff000;  // crosses a 32-bit boundary
constexpr uint64_t kSinkBase = 0x123;
constexpr size_t kReadOnly = 20000;
constexpr size_t kMemory = 256 << 10;

}  // namespace

Workload::Workload(FakeHost& from, FakeHost& to, uint32_t seed, Streams streams, uint32_t targets)
    : from_(from),
      to_(to),
      random_(seed),
      seed_(seed),
      has_atomics_(streams != Streams::kAll),
      extended_(streams == Streams::kExtended),
      targets_(targets),
      target_(Pattern(kMemory, seed)),
      sink_(kMemory),
      target_used_(kReadOnly) {
  to_.AddRegion(kTarget, kTargetBase, kMemory).bytes = target_;
  from_.AddRegion(kSink, kSinkBase, kMemory);
  to_.AddRegion(kCounter, 0, sizeof(uint64_t));
  to_.targets = targets;
}

uint32_t Workload::RandomLength() {
  switch (Below(6)) {
    case 0:
      return 0;
    case 1:
      return 1 + Below(4);
    case 2:
      return 1400 + Below(100);
    case 3:
      return Below(20000);
    default:
      return Below(300);
  }
}

std::vector<size_t> Workload::RandomPieces(size_t length) {
  std::vector<size_t> pieces;
  for (uint32_t left = Below(8); left != 0; --left) pieces.push_back(Below(static_cast<uint32_t>(length) + 2));
  return pieces;
}

void Workload::PostWrite() {
  const Bytes payload = Pattern(RandomLength(), random_());
  Request request;
  request.opcode = Opcode::kWrite;
  request.target = RandomTarget();
  request.fence = Below(8) == 0;
  request.volatile_local = Below(4) == 0;
  request.remote_stag = kTarget;
  request.remote_offset = ddp::TaggedOffset(kTargetBase + target_used_);
  std::copy(payload.begin(), payload.end(), target_.begin() + static_cast<ptrdiff_t>(target_used_));
  target_used_ += payload.size() + Below(3);
  if (extended_ && Below(3) == 0) {
    request.has_immediate = true;
    request.immediate = random_();
    request.solicited = Below(2) == 0;
    PostReceive({});
    sends_.push_back({.length = payload.size(), .solicited = request.solicited, .immediate = request.immediate, .of_write = true, .bytes = {}, .target = request.target});
  }
  sent_.push_back(from_.Post(request, payload, RandomPieces(payload.size())).id);
}

void Workload::PostRead() {
  const uint32_t length = RandomLength();
  const size_t at = Below(static_cast<uint32_t>(target_used_ - std::min<size_t>(length, kReadOnly - 1)));
  std::copy_n(target_.begin() + static_cast<ptrdiff_t>(at), length, sink_.begin() + static_cast<ptrdiff_t>(sink_used_));
  FakeHost::Posted& posted = from_.PostRead(kTarget, kTargetBase + at, length, kSink, kSinkBase + sink_used_, Below(8) == 0);
  posted.request.target = RandomTarget();
  reads_.push_back(posted.id);
  sink_used_ += length + Below(3);
}

void Workload::PostSend() {
  Expected expected;
  expected.bytes = Pattern(RandomLength(), random_());
  expected.length = expected.bytes.size();
  Request request;
  request.opcode = static_cast<Opcode>(static_cast<uint32_t>(Opcode::kSend) + Below(4));
  request.fence = Below(8) == 0;
  request.target = expected.target = RandomTarget();
  expected.solicited = request.opcode == Opcode::kSendSolicited || request.opcode == Opcode::kSendSolicitedInvalidate;
  if (request.opcode == Opcode::kSendInvalidate || request.opcode == Opcode::kSendSolicitedInvalidate) {
    request.invalidate_stag = ddp::STag(++next_invalidated_);
    to_.AddRegion(request.invalidate_stag, 0, 1);
    expected.invalidated = request.invalidate_stag;
  }
  if (extended_ && !expected.invalidated && Below(3) == 0) {
    request.has_immediate = true;
    request.immediate = random_();
    expected.immediate = request.immediate;
  }
  std::vector<size_t> receive;
  size_t room = 0;
  for (size_t size : RandomPieces(expected.length)) {
    receive.push_back(size);
    room += size;
  }
  if (room < expected.length) receive.push_back(expected.length - room);
  PostReceive(receive);
  sent_.push_back(from_.Post(request, expected.bytes, RandomPieces(expected.length)).id);
  sends_.push_back(std::move(expected));
}

void Workload::PostAtomic() {
  Request request;
  request.opcode = Opcode::kAtomicRequest;
  request.target = RandomTarget();
  request.remote_stag = kCounter;
  FakeHost::Posted& posted = from_.Post(request, Bytes(sizeof(uint64_t)), {Below(9)});
  atomics_.push_back({&posted, counter_});
  reads_.push_back(posted.id);
  if (Below(2) == 0) {
    posted.request.atomic_code = AtomicCode::kFetchAdd;
    posted.request.add_or_swap = random_();
    counter_ += posted.request.add_or_swap;
  } else {
    posted.request.atomic_code = AtomicCode::kCompareSwap;
    posted.request.add_or_swap = random_();
    const bool equal = Below(2) == 0;
    posted.request.compare = equal ? counter_ : counter_ + 1;
    if (equal) counter_ = posted.request.add_or_swap;
  }
}

void Workload::PostReceive(const std::vector<size_t>& pieces) {
  if (extended_ && (!late_receives_.empty() || Below(3) == 0)) {
    late_receives_.push_back(pieces);
  } else {
    to_.PostReceive(pieces);
  }
}

bool Workload::PostLateReceives() {
  if (late_receives_.empty()) return false;
  for (uint32_t count = 1 + Below(3); count != 0 && !late_receives_.empty(); --count) {
    to_.PostReceive(late_receives_.front());
    late_receives_.pop_front();
  }
  return true;
}

void Workload::Post(int count) {
  for (int i = 0; i < count; ++i) {
    if (target_used_ + 30000 > kMemory || sink_used_ + 30000 > kMemory) return;
    switch (Below(has_atomics_ ? 4 : 3)) {
      case 0:
        PostWrite();
        break;
      case 1:
        PostRead();
        break;
      case 3:
        PostAtomic();
        break;
      default:
        PostSend();
    }
    ++posted_;
  }
}

void Workload::Verify() const {
  EXPECT_EQ(from_.started.size(), static_cast<size_t>(posted_));
  EXPECT_EQ(from_.sent, sent_);
  EXPECT_EQ(from_.reads_done, reads_);
  EXPECT_TRUE(to_.FindRegion(kTarget)->bytes == target_) << "target memory";
  EXPECT_TRUE(from_.FindRegion(kSink)->bytes == sink_) << "sink memory";
  ASSERT_EQ(to_.arrivals.size(), sends_.size());
  for (size_t i = 0; i < sends_.size(); ++i) {
    EXPECT_EQ(to_.arrivals[i].message.length, sends_[i].length) << i;
    EXPECT_EQ(to_.arrivals[i].message.solicited, sends_[i].solicited) << i;
    EXPECT_EQ(to_.arrivals[i].message.invalidated, sends_[i].invalidated) << i;
    EXPECT_EQ(to_.arrivals[i].message.immediate, sends_[i].immediate) << i;
    EXPECT_EQ(to_.arrivals[i].message.of_write, sends_[i].of_write) << i;
    EXPECT_EQ(to_.arrivals[i].target, sends_[i].target) << i;
    if (!sends_[i].of_write) {
      EXPECT_TRUE(to_.arrivals[i].bytes == sends_[i].bytes) << i;
    }
    if (sends_[i].invalidated) {
      EXPECT_EQ(to_.FindRegion(*sends_[i].invalidated), nullptr) << i;
    }
  }
  for (const ExpectedValue& atomic : atomics_) {
    Bytes found;
    for (const Bytes& piece : atomic.posted->pieces) found.insert(found.end(), piece.begin(), piece.end());
    uint64_t value;
    ASSERT_EQ(found.size(), sizeof(value));
    std::memcpy(&value, found.data(), sizeof(value));
    EXPECT_EQ(value, atomic.value) << atomic.posted->id;
  }
}

}  // namespace weft::rdmap::testing
