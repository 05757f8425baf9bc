// RDMAP over DDP over SCTP's sessions, whole, in memory: random requests both ways against a model, on several sessions
// of one association, whose messages arrive in any order (RFC 5043 section 10, RFC 5040 section 5). A failure names its
// seed; SEED=n runs it alone.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ddp/sctp/association.h"
#include "ddp/sctp/testing/end.h"
#include "rdmap/stream.h"
#include "rdmap/testing/fake_host.h"
#include "rdmap/testing/workload.h"

namespace weft::rdmap {
namespace {

using ddp::sctp::Session;
using ddp::sctp::SessionState;
using ddp::sctp::testing::Message;

// One end of one session, as the RNIC puts it together.
struct End {
  explicit End(const StreamOptions& options) : stream(options, host) {}

  void Attach(Session& its_session) {
    session = &its_session;
    session->Attach(stream);
    session->SetOpen(true);
  }

  testing::FakeHost host;
  Stream stream;
  Session* session = nullptr;
};

struct Side {
  explicit Side(bool initiator, size_t max_segment)
      : end({.initiator = initiator, .streams = 16, .max_segment = max_segment}) {}

  ddp::sctp::testing::End end;
  std::vector<std::unique_ptr<End>> ends;
  std::vector<Message> flying;  // to the other side
};

// What a session of `from` has to say is on its way.
bool Launch(Side& from, End& end) {
  const auto message = from.end.TakeOf(*end.session);
  if (!message) return false;
  end.stream.OnTransmitted(end.session->consumed());
  from.flying.push_back(*message);
  from.end.AcknowledgeAll();
  return true;
}

void RunOne(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&random](size_t bound) { return random() % bound; };
  constexpr size_t kSizes[] = {516, 1398, 8900, 65535};
  Side a(true, kSizes[below(4)]), b(false, kSizes[below(4)]);
  std::vector<std::unique_ptr<testing::Workload>> workloads;
  const size_t sessions = 1 + below(3);
  for (size_t i = 0; i < sessions; ++i) {
    a.ends.push_back(std::make_unique<End>(StreamOptions{.ird = 2, .ord = 3}));
    b.ends.push_back(std::make_unique<End>(StreamOptions{.ird = 3, .ord = 2}));
    Session* const asking = a.end.association.Open({}, false);
    b.end.Get(*a.end.Take());
    Session* const asked = b.end.association.TakeNews();
    ASSERT_TRUE(asked->Accept({}));
    b.ends.back()->Attach(*asked);
    a.end.Get(*b.end.Take());
    a.ends.back()->Attach(*asking);
    workloads.push_back(std::make_unique<testing::Workload>(a.ends.back()->host, b.ends.back()->host, seed * 2));
    workloads.push_back(std::make_unique<testing::Workload>(b.ends.back()->host, a.ends.back()->host, seed * 2 + 1));
  }

  int rounds = 15;
  for (int quiet = 0; quiet < 1000;) {
    if (rounds > 0 && below(10) == 0) {
      --rounds;
      for (auto& workload : workloads) workload->Post(static_cast<int>(below(4)));
    }
    const bool ahead = below(2) == 0;
    Side& from = ahead ? a : b;
    Side& to = ahead ? b : a;
    End& end = *from.ends[below(sessions)];
    bool busy = rounds > 0;
    switch (below(3)) {
      case 0:
        busy |= end.stream.Transmit(*end.session);
        break;
      case 1:
        busy |= Launch(from, end);
        break;
      case 2:
        if (from.flying.empty() || !to.end.association.HasRoom()) break;
        std::swap(from.flying[below(2) == 0 ? 0 : below(from.flying.size())], from.flying.back());
        to.end.Get(from.flying.back());
        from.flying.pop_back();
        busy = true;
        break;
    }
    quiet = busy ? 0 : quiet + 1;
  }
  for (Side* side : {&a, &b}) {
    EXPECT_TRUE(side->flying.empty());
    EXPECT_EQ(side->end.association.held_bytes(), 0u);
    for (const auto& end : side->ends) {
      EXPECT_EQ(end->session->state(), SessionState::kAccepted);
      EXPECT_EQ(end->stream.state(), StreamState::kOperational);
      EXPECT_TRUE(end->stream.idle());
      EXPECT_TRUE(end->session->empty());
    }
  }
  for (auto& workload : workloads) workload->Verify();
}

TEST(RdmapOverSctp, KeepsMemoryAndCompletionsLikeTheModelThoughMessagesOvertakeOneAnother) {
  uint32_t first = 1;
  uint32_t last = 100;
  if (const char* seed = std::getenv("SEED")) first = last = static_cast<uint32_t>(std::strtoul(seed, nullptr, 0));
  for (uint32_t seed = first; seed <= last && !HasFailure(); ++seed) {
    SCOPED_TRACE("SEED=" + std::to_string(seed));
    RunOne(seed);
  }
}

// RFC 5043 section 11.3: the Terminate of RDMAP comes before that of the session.
TEST(RdmapOverSctp, AStreamThatFindsAnErrorSaysSoBeforeItsSessionEnds) {
  Side a(true, 1398), b(false, 1398);
  a.ends.push_back(std::make_unique<End>(StreamOptions{}));
  b.ends.push_back(std::make_unique<End>(StreamOptions{}));
  Session* const asking = a.end.association.Open({}, false);
  b.end.Get(*a.end.Take());
  b.end.association.TakeNews()->Accept({});
  a.end.Get(*b.end.Take());
  a.ends[0]->Attach(*asking);
  a.end.AcknowledgeAll();

  a.end.Get(ddp::sctp::testing::Segment(0, 1, ddp::sctp::testing::Bytes(40, 0xff)));  // no DDP version that we know
  EXPECT_TRUE(asking->stopped());
  EXPECT_EQ(a.ends[0]->stream.state(), StreamState::kTerminating);
  EXPECT_TRUE(a.ends[0]->stream.Transmit(*asking));
  asking->End();
  const auto last_words = a.end.Take(), end = a.end.Take();
  ASSERT_TRUE(last_words && end);
  EXPECT_EQ(last_words->ppid, ddp::sctp::kSegmentPpid);
  EXPECT_EQ(end->ToString(), "0: DDP Terminate SSN=2 private data=0");
}

}  // namespace
}  // namespace weft::rdmap
