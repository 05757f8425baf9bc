// Two streams, random requests both ways, random segment sizes, room and timing, against a model of memory and
// completions. A failure names its seed; SEED=n runs that one alone.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>

#include "rdmap/testing/wire.h"
#include "rdmap/testing/workload.h"

namespace weft::rdmap {
namespace {

using testing::Deliver;
using testing::Endpoint;
using testing::Workload;

// `targeted`: one end's requests name a target.
struct Mode {
  Delivery delivery;
  bool targeted = false;
  bool atomics = false;
};

class Session {
 public:
  Session(uint32_t seed, Mode mode) : reliable_(mode.delivery == Delivery::kReliable), random_(seed) {
    const Delivery delivery = mode.delivery;
    const uint32_t depth_a = 1 + Below(4);
    const uint32_t depth_b = 1 + Below(4);
    const auto rtr = static_cast<llp::Rtr>(Below(4));
    a_ = std::make_unique<Endpoint>(
        StreamOptions{.ird = depth_b, .ord = depth_a, .delivery = delivery, .atomics = mode.atomics, .scatter_reads = delivery == Delivery::kReliable});
    b_ = std::make_unique<Endpoint>(
        StreamOptions{.ird = depth_a, .ord = depth_b, .expected_rtr = rtr, .delivery = delivery, .atomics = mode.atomics, .targeted = mode.targeted});
    if (rtr != llp::Rtr::kNone) a_->stream.SendRtr(rtr);
    const Streams streams = delivery != Delivery::kPlain ? Streams::kExtended : mode.atomics ? Streams::kWithAtomics : Streams::kAll;
    to_b_ = std::make_unique<Workload>(a_->host, b_->host, seed * 2, streams, mode.targeted ? 3 : 0);
    // Their regions have the same names, but live in different hosts.
    to_a_ = std::make_unique<Workload>(b_->host, a_->host, seed * 2 + 1, streams);
  }

  void Go(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      to_b_->Post(static_cast<int>(Below(4)));
      to_a_->Post(static_cast<int>(Below(4)));
      for (uint32_t step = Below(60); step != 0; --step) Step();
    }
    for (int quiet = 0; quiet < 200;) quiet = Step() ? 0 : quiet + 1;
    for (Endpoint* end : {a_.get(), b_.get()}) {
      end->stream.OnTransmitted(end->wire.taken());
      EXPECT_EQ(end->stream.state(), StreamState::kOperational)
          << (end->stream.terminate() ? end->stream.terminate()->ToString() : "");
      EXPECT_TRUE(end->stream.idle());
      EXPECT_FALSE(end->stream.HasWork());
      EXPECT_EQ(end->stream.outstanding_reads(), 0u);
    }
    to_a_->Verify();
    to_b_->Verify();
    refusals_ += a_->host.refusals + b_->host.refusals;
  }
  int refusals() const { return refusals_; }
  uint64_t carried() const { return carried_; }  // acknowledgements that stood beside a segment

 private:
  uint32_t Below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

  bool Step() {
    const bool forward = Below(2) == 0;
    Endpoint& from = forward ? *a_ : *b_;
    Endpoint& to = forward ? *b_ : *a_;
    switch (Below(3)) {
      case 0: {
        // What waits was cut for the old size, so the size changes only between.
        if (from.wire.empty()) from.wire.set_max_ulpdu(RandomSegment());
        from.wire.set_room(from.wire.size() + 1 + Below(5));
        from.wire.set_carries_acknowledgements(Below(2) != 0);
        const bool had_work = from.stream.HasWork();
        const bool sent = from.stream.Transmit(from.wire);
        EXPECT_EQ(sent, had_work);
        return sent;
      }
      case 1: {
        from.stream.OnTransmitted(from.wire.taken());
        if (Below(2) == 0) from.stream.Acknowledge();
        bool more = from.stream.unacknowledged() != 0;
        if (Below(8) == 0) more |= (forward ? *to_b_ : *to_a_).PostLateReceives();
        if (from.host.not_ready && Below(2) == 0) {
          from.host.not_ready = false;
          from.stream.Resume();
        }
        return more || from.host.not_ready;
      }
      default: {
        if (from.wire.empty()) return false;
        const testing::Bytes segment = from.wire.Take();
        Deliver(to.stream, segment, from.wire.taken_acknowledged());
        carried_ += from.wire.taken_acknowledged();
        return true;
      }
    }
  }

  size_t RandomSegment() {
    constexpr size_t kSizes[] = {19, 33, 64, 128, 512, 1440, 1460, 9000, 65535};
    const uint32_t skip = reliable_ ? 2 : 0;  // a Delivery message is one segment
    return kSizes[skip + Below(static_cast<uint32_t>(std::size(kSizes)) - skip)];
  }

  const bool reliable_;
  int refusals_ = 0;
  uint64_t carried_ = 0;
  std::mt19937 random_;
  std::unique_ptr<Endpoint> a_, b_;
  std::unique_ptr<Workload> to_b_, to_a_;
};

class StreamPair : public ::testing::TestWithParam<Mode> {};

TEST_P(StreamPair, KeepsMemoryAndCompletionsLikeTheModel) {
  uint32_t first = 1;
  uint32_t last = 100;
  if (const char* seed = std::getenv("SEED")) first = last = static_cast<uint32_t>(std::strtoul(seed, nullptr, 0));
  int refusals = 0;
  uint64_t carried = 0;
  for (uint32_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("SEED=" + std::to_string(seed));
    Session session(seed, GetParam());
    session.Go(20);
    refusals += session.refusals();
    carried += session.carried();
    if (HasFailure()) break;
  }
  if (first != last) {
    const bool is_reliable = GetParam().delivery == Delivery::kReliable;
    const uint64_t often = (last - first) / 10;  // of the sessions
    EXPECT_EQ(static_cast<uint64_t>(refusals) > often, is_reliable) << refusals;
    EXPECT_EQ(carried > often, is_reliable) << carried;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, StreamPair, 
                         ::testing::Values(Mode{Delivery::kPlain}, Mode{Delivery::kReliable}, Mode{Delivery::kReliable, true},
                                           Mode{.delivery = Delivery::kPlain, .atomics = true}));

}  // namespace
}  // namespace weft::rdmap
