// Frames over several streams that overtake one another: MPI's order holds, and nobody waits who need not.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/testing/engine_suite.h"
#include "mpi_hybrid/p2p/testing/process.h"

namespace weft::mpi::testing {
namespace {

using Record = std::vector<uint8_t>;

// One direction: streams, each of which keeps its order.
struct Wire {
  std::map<size_t, std::deque<Record>> streams;

  bool empty() const { return streams.empty(); }
  // Moves at most `most` bytes of one frame there; false: there are none.
  bool Write(Process& from, size_t most) {
    Link& link = from.link();
    if (!link.has_output() || link.is_gone()) return false;
    iovec pieces[7];
    const size_t stream = link.stream_of_output();
    const size_t count = link.PrepareWrite(pieces);
    Record record;
    for (size_t i = 0; i < count && record.size() < most; ++i) {
      const auto* data = static_cast<const uint8_t*>(pieces[i].iov_base);
      record.insert(record.end(), data, data + std::min(pieces[i].iov_len, most - record.size()));
    }
    link.Written(record.size());
    streams[stream].push_back(std::move(record));
    return true;
  }
  // The next of stream `at` in the order of those that have one.
  bool Read(Process& to, size_t at) {
    if (streams.empty()) return false;
    const auto chosen = std::next(streams.begin(), static_cast<long>(at % streams.size()));
    const size_t stream = chosen->first;
    const Record record = std::move(chosen->second.front());
    chosen->second.pop_front();
    if (chosen->second.empty()) streams.erase(chosen);
    size_t done = 0;
    // Half of them as a transport does that has to look first.
    if (record.size() % 2 == 0) {
      EXPECT_TRUE(to.link().ReadStaged(record, stream));
      done = record.size();
    }
    while (done != record.size()) {
      uint8_t staging[97];
      iovec pieces[5];
      const size_t count = to.link().PrepareRead(pieces, staging, stream);
      size_t read = 0;
      for (size_t i = 0; i < count; ++i) {
        const size_t part = std::min(pieces[i].iov_len, record.size() - done - read);
        std::copy_n(record.begin() + static_cast<long>(done + read), part, static_cast<uint8_t*>(pieces[i].iov_base));
        read += part;
      }
      EXPECT_TRUE(to.link().ReadDone(read, staging, stream));
      done += read;
    }
    return true;
  }
};

// Two processes whose frames go over `kStreams` streams each way, in random order.
struct StreamsPair {
  static constexpr size_t kStreams = 5;
  explicit StreamsPair(const EngineLimits& limits = {}, unsigned seed = 1) : a(0, limits), b(1, limits), random(seed) {
    for (Process* process : {&a, &b}) {
      process->link().UseStreams(kStreams);
      process->link().Open(limits.window);
    }
  }
  void Step(size_t most) {
    switch (random() % 4) {
      case 0:
        a_to_b.Write(a, 1 + random() % most);
        break;
      case 1:
        b_to_a.Write(b, 1 + random() % most);
        break;
      case 2:
        a_to_b.Read(b, random());
        break;
      default:
        b_to_a.Read(a, random());
    }
  }
  void Settle(size_t most = 100000) {
    bool moved = true;
    while (moved) {
      moved = false;
      while (a_to_b.Write(a, most) | b_to_a.Write(b, most)) moved = true;
      // One at a time, so that what they set off competes with what is under way.
      moved |= random() % 2 == 0 ? a_to_b.Read(b, random()) : b_to_a.Read(a, random());
      moved |= !a_to_b.empty() || !b_to_a.empty();
    }
  }

  Process a, b;
  Wire a_to_b, b_to_a;
  std::mt19937 random;
};

INSTANTIATE_TYPED_TEST_SUITE_P(OverStreams, MessageSuite, StreamsPair);
INSTANTIATE_TYPED_TEST_SUITE_P(OverStreams, EngineSuite, StreamsPair);

// Tags that have streams of their own.
std::vector<int> TagsApart(const Process& process, size_t count) {
  std::vector<int> tags;
  std::vector<size_t> streams;
  for (int tag = 0; tags.size() < count; ++tag) {
    const size_t stream =
        const_cast<Process&>(process).link().StreamOf(Link::FlowOf(*process.comm, process.comm->send_context, tag));
    if (std::find(streams.begin(), streams.end(), stream) != streams.end()) continue;
    streams.push_back(stream);
    tags.push_back(tag);
  }
  return tags;
}

// The reference: what each receive gets if messages come in the order of sending; with one sender that does not depend
// on when. -1: nothing.
std::vector<int> Expected(const std::vector<int>& sent, const std::vector<int>& wanted) {
  std::vector<int> expected(wanted.size(), -1);
  for (size_t m = 0; m < sent.size(); ++m) {
    for (size_t r = 0; r < wanted.size(); ++r) {
      if (expected[r] >= 0 || (wanted[r] != MPI_ANY_TAG && wanted[r] != sent[m])) continue;
      expected[r] = static_cast<int>(m);
      break;
    }
  }
  return expected;
}

// A run of one case: `order` says what happens next, a stream's next message (its number) or (kPost) the next receive.
constexpr int kPost = -1;
struct Case {
  std::vector<int> tags;    // of messages
  std::vector<int> wanted;  // of receives
  std::vector<int> order;
  std::vector<size_t> lengths;
};

void RunCase(const Case& one, const std::string& what) {
  StreamsPair pair(kSmall);
  std::vector<Record> sent, got(one.wanted.size(), Record(500));
  std::vector<Request*> sends, receives;
  for (size_t m = 0; m < one.tags.size(); ++m) sent.push_back(Data(one.lengths[m], static_cast<int>(m)));
  for (size_t m = 0; m < one.tags.size(); ++m) sends.push_back(pair.a.Send(sent[m], one.tags[m]));
  while (pair.a_to_b.Write(pair.a, 100000)) {
  }
  for (const int next : one.order) {
    if (next == kPost) {
      receives.push_back(pair.b.Receive(got[receives.size()], receives.size() % 2 == 0 ? 0 : MPI_ANY_SOURCE,
                                        one.wanted[receives.size()]));
      continue;
    }
    auto& streams = pair.a_to_b.streams;
    const size_t stream = pair.a.link().StreamOf(
        Link::FlowOf(*pair.a.comm, pair.a.comm->send_context, one.tags[static_cast<size_t>(next)]));
    ASSERT_TRUE(streams.contains(stream)) << what;
    pair.a_to_b.Read(pair.b, static_cast<size_t>(std::distance(streams.begin(), streams.find(stream))));
  }
  pair.Settle();
  const std::vector<int> expected = Expected(one.tags, one.wanted);
  for (size_t r = 0; r < receives.size(); ++r) {
    ASSERT_EQ(receives[r]->complete, expected[r] >= 0) << what << ", receive " << r;
    if (expected[r] < 0) {
      EXPECT_TRUE(receives[r]->Cancel().ok());
    } else {
      const Record& data = sent[static_cast<size_t>(expected[r])];
      ASSERT_EQ(GetCount(receives[r]->status), static_cast<MPI_Count>(data.size())) << what << ", receive " << r;
      ASSERT_TRUE(std::equal(data.begin(), data.end(), got[r].begin())) << what << ", receive " << r;
    }
    receives[r]->Release();
  }
  for (Request* send : sends) {
    if (!send->complete) {
      EXPECT_TRUE(send->Cancel().ok());
    }
  }
  pair.Settle();
  for (Request* send : sends) {
    EXPECT_TRUE(send->complete) << what;
    send->Release();
  }
}

std::string Describe(const Case& one) {
  std::string text = "messages";
  for (const int tag : one.tags) text += " " + std::to_string(tag);
  text += ", receives";
  for (const int tag : one.wanted) text += tag == MPI_ANY_TAG ? " any" : " " + std::to_string(tag);
  text += ", order";
  for (const int next : one.order) text += next == kPost ? " post" : " " + std::to_string(next);
  return text;
}

// All orders in which messages may arrive (those of one tag in theirs) and receives may be posted.
void ForEachOrder(Case& one, std::vector<bool>& came, size_t posted, int& runs) {
  bool over = posted == one.wanted.size();
  for (size_t m = 0; m < one.tags.size(); ++m) {
    if (came[m]) continue;
    over = false;
    bool first = true;
    for (size_t before = 0; before < m; ++before) first &= came[before] || one.tags[before] != one.tags[m];
    if (!first) continue;
    came[m] = true;
    one.order.push_back(static_cast<int>(m));
    ForEachOrder(one, came, posted, runs);
    one.order.pop_back();
    came[m] = false;
  }
  if (posted != one.wanted.size()) {
    one.order.push_back(kPost);
    ForEachOrder(one, came, posted + 1, runs);
    one.order.pop_back();
  }
  if (!over) return;
  ++runs;
  RunCase(one, Describe(one));
}

TEST(StreamsTest, EveryOrderOfArrivalOfFewMessagesGivesWhatTheReferenceSays) {
  const std::vector<int> tags = TagsApart(StreamsPair().a, 3);
  int runs = 0;
  // Three messages of up to three tags, three receives of those tags or any.
  for (int sent = 0; sent < 27; ++sent) {
    for (int wanted = 0; wanted < 64; ++wanted) {
      Case one;
      for (int i = 0, s = sent, w = wanted; i < 3; ++i, s /= 3, w /= 4) {
        one.tags.push_back(tags[static_cast<size_t>(s % 3)]);
        one.wanted.push_back(w % 4 == 3 ? MPI_ANY_TAG : tags[static_cast<size_t>(w % 4)]);
      }
      one.lengths = {20, 0, 400};  // eager, empty, announced
      std::vector<bool> came(3);
      ForEachOrder(one, came, 0, runs);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_GT(runs, 100'000);
}

TEST(StreamsTest, RandomOrdersOfManyMessagesGiveWhatTheReferenceSays) {
  const std::vector<int> tags = TagsApart(StreamsPair().a, 4);
  for (unsigned seed = 1; seed <= 3000; ++seed) {
    std::mt19937 random(seed);
    Case one;
    const size_t messages = 2 + random() % 9, receives = random() % 12;
    const unsigned any = 2 + random() % 5;
    for (size_t i = 0; i < messages; ++i) {
      one.tags.push_back(tags[random() % tags.size()]);
      one.lengths.push_back(random() % 4 == 0 ? 301 + random() % 150 : random() % 200);
    }
    for (size_t i = 0; i < receives; ++i)
      one.wanted.push_back(random() % any == 0 ? MPI_ANY_TAG : tags[random() % tags.size()]);
    std::vector<bool> came(messages);
    size_t posted = 0;
    while (one.order.size() < messages + receives) {
      const size_t m = random() % (messages + 3);
      if (m >= messages) {
        if (posted++ < receives) one.order.push_back(kPost);
        continue;
      }
      bool first = !came[m];
      for (size_t before = 0; before < m; ++before) first &= came[before] || one.tags[before] != one.tags[m];
      if (!first) continue;
      came[m] = true;
      one.order.push_back(static_cast<int>(m));
    }
    RunCase(one, "seed " + std::to_string(seed) + ": " + Describe(one));
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// Messages 0 and 1, of which 1 came and 0 did not.
class OneIsMissing : public ::testing::Test {
 protected:
  OneIsMissing() {
    const std::vector<int> tags = TagsApart(pair.a, 2);
    missing_tag = tags[0];
    early_tag = tags[1];
    sends = {pair.a.Send(missing, missing_tag), pair.a.Send(early, early_tag)};
    while (pair.a_to_b.Write(pair.a, 100000)) {
    }
  }
  ~OneIsMissing() override {
    pair.Settle();
    for (Request* request : sends) request->Release();
    for (Request* request : receives) {
      if (!request->complete) {
        EXPECT_TRUE(request->Cancel().ok());
      }
      request->Release();
    }
  }
  Request* Post(int tag) {
    receives.push_back(pair.b.Receive(got[receives.size()], 0, tag));
    return receives.back();
  }
  void Arrive(int tag) {
    auto& streams = pair.a_to_b.streams;
    const size_t stream = pair.a.link().StreamOf(Link::FlowOf(*pair.a.comm, pair.a.comm->send_context, tag));
    pair.a_to_b.Read(pair.b, static_cast<size_t>(std::distance(streams.begin(), streams.find(stream))));
  }

  StreamsPair pair;
  int missing_tag, early_tag;
  Record missing = Data(10, 1), early = Data(20, 2);
  std::vector<Record> got = std::vector<Record>(4, Record(100));
  std::vector<Request*> sends, receives;
};

TEST_F(OneIsMissing, AReceiveOfTheOthersTagNeedNotWait) {
  Request* receive = Post(early_tag);
  Arrive(early_tag);
  EXPECT_TRUE(receive->complete);
}

TEST_F(OneIsMissing, NeitherDoesOneThatIsPostedLater) {
  Arrive(early_tag);
  EXPECT_TRUE(Post(early_tag)->complete);
}

TEST_F(OneIsMissing, AReceiveOfAnyTagWaits) {
  Arrive(early_tag);
  Request* any = Post(MPI_ANY_TAG);
  EXPECT_FALSE(any->complete);
  EXPECT_EQ(pair.b.engine.FindMessage(0, MPI_ANY_TAG, *pair.b.comm), nullptr);
  Request* behind_it = Post(early_tag);
  EXPECT_FALSE(behind_it->complete)
      << "the missing one might have another receive, and this message the one of any tag";
  Arrive(missing_tag);
  EXPECT_TRUE(any->complete && behind_it->complete);
  EXPECT_EQ(any->status.MPI_TAG, missing_tag);
}

TEST_F(OneIsMissing, AReceiveBehindOneOfAnyTagThatIsCancelledNeedNotWait) {
  Arrive(early_tag);
  Request* any = Post(MPI_ANY_TAG);
  Request* behind_it = Post(early_tag);
  EXPECT_TRUE(any->Cancel().ok());
  EXPECT_TRUE(behind_it->complete);
}

TEST_F(OneIsMissing, AReceiveOfItsTagBeforeOneOfAnyTagNeedNotWait) {
  Request* its = Post(early_tag);
  Request* any = Post(MPI_ANY_TAG);
  Arrive(early_tag);
  EXPECT_TRUE(its->complete);
  EXPECT_FALSE(any->complete);
}

TEST_F(OneIsMissing, WhatArrivedStaysWhenTheSenderDies) {
  Arrive(early_tag);
  pair.b.engine.OnGone(0, /*left=*/false);
  EXPECT_TRUE(Post(MPI_ANY_TAG)->complete);
  pair.a_to_b.streams.clear();
}

TEST(StreamsTest, AGoodbyeThatOvertakesMessagesWaitsForThem) {
  StreamsPair pair;
  const Record sent = Data(50, 1);
  Record got(50);
  Request* send = pair.a.Send(sent, 1);
  pair.a.link().SendControl({.kind = FrameKind::kGoodbye});
  while (pair.a_to_b.Write(pair.a, 100000)) {
  }
  Request* receive = pair.b.Receive(got, 0, 1);
  pair.a_to_b.Read(pair.b, 0);  // stream 0
  EXPECT_EQ(pair.b.link().state(), Link::State::kOpen);
  EXPECT_FALSE(receive->complete);
  pair.a_to_b.Read(pair.b, 0);
  EXPECT_TRUE(receive->complete && receive->error.ok());
  EXPECT_EQ(pair.b.link().state(), Link::State::kLeft);
  send->Release();
  receive->Release();
}

// A peer that lies about its numbers.
class BadNumbers : public ::testing::Test {
 protected:
  bool Say(uint32_t number, int tag = 1, uint32_t context = 8, FrameKind kind = FrameKind::kRequest) {
    uint8_t bytes[FrameHeader::kLength];
    FrameHeader{.kind = kind,
                .context = context,
                .tag = tag,
                .send_id = 1,
                .number = number,
                .length = kind == FrameKind::kRequest ? 1000u : 0u}
        .SerializeTo(bytes);
    return pair.b.link().ReadStaged(bytes, 1);
  }
  StreamsPair pair;
};

TEST_F(BadNumbers, OneThatCameAlready) {
  EXPECT_TRUE(Say(0));
  EXPECT_FALSE(Say(0));
  EXPECT_TRUE(Say(2));
  EXPECT_FALSE(Say(2));
}

TEST_F(BadNumbers, OneFarAhead) {
  EXPECT_FALSE(Say(Arrivals::kMostAhead + 1));
  EXPECT_FALSE(Say(UINT32_MAX));
}

TEST_F(BadNumbers, FloodsOfEarlyMessagesEnd) {
  size_t taken = 0;
  // The first of each group never comes.
  for (uint32_t context = 0; taken <= Arrivals::kMostEarly; ++context) {
    bool good = true;
    for (uint32_t number = 1; number <= 5000 && good; ++number, ++taken) good = Say(number, 1, context);
    if (!good && taken > 5000) break;
  }
  EXPECT_EQ(taken, Arrivals::kMostEarly + 1);
}

TEST_F(BadNumbers, PiecesOfOneMessageOnTwoStreamsAtOnce) {
  std::vector<uint8_t> got(1000);
  Request* receive = pair.b.Receive(got, 0, 1);
  ASSERT_TRUE(Say(0));
  // The answer names the receive.
  iovec pieces[3];
  ASSERT_GE(pair.b.link().PrepareWrite(pieces), 1u);
  const auto clear = FrameHeader::Parse(std::span<const uint8_t, FrameHeader::kLength>(
      static_cast<const uint8_t*>(pieces[0].iov_base), FrameHeader::kLength), /*streams=*/true);
  ASSERT_TRUE(clear && clear->kind == FrameKind::kClear);
  uint8_t half[FrameHeader::kLength + 10] = {};
  FrameHeader{.kind = FrameKind::kData, .receive_id = clear->receive_id, .length = 500}.SerializeTo(
      std::span(half).first<FrameHeader::kLength>());
  EXPECT_TRUE(pair.b.link().ReadStaged(half, 1));
  EXPECT_FALSE(pair.b.link().ReadStaged(half, 0));
  pair.b.engine.OnGone(0, /*left=*/false);
  EXPECT_TRUE(receive->complete);
  EXPECT_EQ(receive->error.mpi_class(), MPIX_ERR_PROC_FAILED);
  receive->Release();
}

TEST_F(BadNumbers, AnswersHaveNone) { EXPECT_FALSE(Say(1, 1, 8, FrameKind::kCredit)); }

TEST(StreamsTest, NumbersGoRoundAndGroupsDoNotWaitForOneAnother) {
  Arrivals arrivals;
  Arrivals::Early early;
  for (uint32_t i = 0; i < 100'000; ++i) ASSERT_EQ(arrivals.Note(8, i, &early), Arrivals::Kind::kNext);
  EXPECT_EQ(arrivals.Note(8, 100'001, &early), Arrivals::Kind::kEarly);
  uint32_t other = 9;
  while (Arrivals::GroupOf(other) == Arrivals::GroupOf(8)) ++other;
  EXPECT_EQ(arrivals.Note(other, 0, &early), Arrivals::Kind::kNext);
  EXPECT_FALSE(arrivals.TakeNext(Arrivals::GroupOf(8)).has_value());
  EXPECT_EQ(arrivals.Note(8, 100'000, &early), Arrivals::Kind::kNext);
  EXPECT_TRUE(arrivals.TakeNext(Arrivals::GroupOf(8)).has_value());
  EXPECT_EQ(arrivals.early(), 0u);
}

}  // namespace
}  // namespace weft::mpi::testing
