#include "mpi_hybrid/p2p/engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "mpi_hybrid/datatype/datatype.h"

namespace weft::mpi {
namespace {

const Datatype& Byte() { return *Datatype::Find(MPI_BYTE); }

// A process of a job of two: an engine and its communicator.
struct Process {
  Process(int rank, const EngineLimits& limits) : engine(rank, limits), comm(new Comm) {
    comm->rank = rank;
    comm->send_context = comm->receive_context = 8;
    auto group = MakeRef<Group>();
    group->members = {0, 1};
    comm->local = comm->remote = group;
  }
  Link& link() { return engine.LinkTo(1 - comm->rank); }

  Request* Send(const std::vector<uint8_t>& data, int tag, SendMode mode = SendMode::kStandard, int to = -1) {
    Request* request = nullptr;
    Error error = engine.StartSend(data.data(), static_cast<MPI_Aint>(data.size()), Byte(), to < 0 ? 1 - comm->rank : to, tag, *comm, mode,
                                   Channel::kPointToPoint, &request);
    EXPECT_TRUE(error.ok()) << error.message();
    return request;
  }
  Request* Receive(std::vector<uint8_t>& data, int source, int tag) {
    Request* request = nullptr;
    Error error = engine.StartReceive(data.data(), static_cast<MPI_Aint>(data.size()), Byte(), source, tag, *comm,
                                      Channel::kPointToPoint, &request);
    EXPECT_TRUE(error.ok()) << error.message();
    return request;
  }

  Engine engine;
  Ref<Comm> comm;
};

// Two processes and the bytes between them.
struct Pair {
  explicit Pair(const EngineLimits& limits = {}, unsigned seed = 1) : a(0, limits), b(1, limits), random(seed) {
    a.link().Open(limits.window);
    b.link().Open(limits.window);
  }

  // Moves at most `most` bytes from one link to the wire; false: there were none.
  bool Write(Process& from, std::deque<uint8_t>& wire, size_t most) {
    iovec pieces[7];
    const size_t count = from.link().PrepareWrite(pieces);
    size_t written = 0;
    for (size_t i = 0; i < count && written < most; ++i) {
      const auto* data = static_cast<const uint8_t*>(pieces[i].iov_base);
      const size_t part = std::min(pieces[i].iov_len, most - written);
      wire.insert(wire.end(), data, data + part);
      written += part;
    }
    if (written != 0) from.link().Written(written);
    return written != 0;
  }
  bool Read(Process& to, std::deque<uint8_t>& wire, size_t most) {
    uint8_t staging[97];
    iovec pieces[5];
    const size_t count = to.link().PrepareRead(pieces, staging);
    size_t read = 0;
    for (size_t i = 0; i < count; ++i) {
      const size_t part = std::min({pieces[i].iov_len, most - read, wire.size()});
      std::copy_n(wire.begin(), part, static_cast<uint8_t*>(pieces[i].iov_base));
      wire.erase(wire.begin(), wire.begin() + static_cast<long>(part));
      read += part;
    }
    if (read != 0) EXPECT_TRUE(to.link().ReadDone(read, staging));
    return read != 0;
  }
  // One step in a random direction.
  void Step(size_t most) {
    switch (random() % 4) {
      case 0:
        Write(a, a_to_b, 1 + random() % most);
        break;
      case 1:
        Write(b, b_to_a, 1 + random() % most);
        break;
      case 2:
        Read(b, a_to_b, 1 + random() % most);
        break;
      default:
        Read(a, b_to_a, 1 + random() % most);
    }
  }
  void Settle(size_t most = 100000) {
    while (Write(a, a_to_b, most) | Write(b, b_to_a, most) | Read(b, a_to_b, most) | Read(a, b_to_a, most)) {
    }
  }

  Process a, b;
  std::deque<uint8_t> a_to_b, b_to_a;
  std::mt19937 random;
};

std::vector<uint8_t> Data(size_t length, int start) {
  std::vector<uint8_t> data(length);
  for (size_t i = 0; i < length; ++i) data[i] = static_cast<uint8_t>(static_cast<size_t>(start) + i * 7);
  return data;
}

constexpr EngineLimits kSmall = {.eager = 300, .window = 16000, .chunk = 200};

TEST(EngineTest, MessagesOfEverySizeArriveBeforeAndAfterTheirReceiveInAnyPieces) {
  for (size_t step : {1, 3, 40, 41, 1000}) {
    for (size_t length : {0, 1, 57, 58, 299, 300, 301, 400, 401, 5000}) {
      for (bool early : {false, true}) {
        SCOPED_TRACE(std::to_string(length) + " bytes in pieces of " + std::to_string(step) + (early ? ", receive first" : ""));
        Pair pair(kSmall);
        const auto sent = Data(length, 3);
        std::vector<uint8_t> got(length);
        Request* receive = early ? pair.b.Receive(got, 0, 5) : nullptr;
        Request* send = pair.a.Send(sent, 5);
        pair.Settle(step);
        if (!early) receive = pair.b.Receive(got, 0, 5);
        pair.Settle(step);
        ASSERT_TRUE(send->complete);
        ASSERT_TRUE(receive->complete);
        EXPECT_TRUE(receive->error.ok());
        EXPECT_EQ(got, sent);
        EXPECT_EQ(receive->status.MPI_SOURCE, 0);
        EXPECT_EQ(receive->status.MPI_TAG, 5);
        EXPECT_EQ(GetCount(receive->status), static_cast<MPI_Count>(length));
        EXPECT_FALSE(pair.a.engine.HasUnfinishedSends());
        send->Release();
        receive->Release();
      }
    }
  }
}

// With one sender the outcome of matching does not depend on timing, so that it can be told beforehand.
TEST(EngineTest, RandomTrafficMatchesInOrderWhateverTheTiming) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Pair pair(kSmall, seed);
    std::mt19937& random = pair.random;
    constexpr int kMessages = 60;
    std::vector<std::vector<uint8_t>> sent, got(kMessages, std::vector<uint8_t>(1000));
    std::vector<int> send_tags, receive_tags, receive_sources;
    for (int i = 0; i < kMessages; ++i) {
      sent.push_back(Data(random() % 3 == 0 ? random() % 1000 : random() % 60, i));
      send_tags.push_back(static_cast<int>(random() % 3));
      receive_tags.push_back(send_tags.back());
      receive_sources.push_back(random() % 3 == 0 ? MPI_ANY_SOURCE : 0);
    }
    std::shuffle(receive_tags.begin(), receive_tags.end(), random);
    for (int i = 0; i < kMessages; ++i) {
      if (random() % 4 == 0 && i > kMessages / 2) receive_tags[static_cast<size_t>(i)] = MPI_ANY_TAG;
    }
    std::vector<int> expected(kMessages, -1);  // which message a receive gets
    for (int m = 0; m < kMessages; ++m) {
      for (int r = 0; r < kMessages; ++r) {
        const int tag = receive_tags[static_cast<size_t>(r)];
        if (expected[static_cast<size_t>(r)] >= 0 || (tag != MPI_ANY_TAG && tag != send_tags[static_cast<size_t>(m)])) continue;
        expected[static_cast<size_t>(r)] = m;
        break;
      }
    }
    std::vector<Request*> sends, receives;
    while (sends.size() < kMessages || receives.size() < kMessages) {
      if (sends.size() < kMessages && random() % 3 == 0) {
        const size_t i = sends.size();
        sends.push_back(pair.a.Send(sent[i], send_tags[i], random() % 4 == 0 ? SendMode::kSynchronous : SendMode::kStandard));
      }
      if (receives.size() < kMessages && random() % 3 == 0) {
        const size_t i = receives.size();
        receives.push_back(pair.b.Receive(got[i], receive_sources[i], receive_tags[i]));
      }
      pair.Step(random() % 2 ? 50 : 2000);
    }
    pair.Settle();
    for (size_t r = 0; r < kMessages; ++r) {
      ASSERT_EQ(receives[r]->complete, expected[r] >= 0) << r;
      if (expected[r] < 0) {
        EXPECT_TRUE(receives[r]->Cancel().ok());
        ASSERT_TRUE(receives[r]->complete);
        EXPECT_EQ(receives[r]->status.count_hi_and_cancelled & 1, 1);
      } else {
        const auto& data = sent[static_cast<size_t>(expected[r])];
        ASSERT_EQ(GetCount(receives[r]->status), static_cast<MPI_Count>(data.size())) << r;
        ASSERT_TRUE(std::equal(data.begin(), data.end(), got[r].begin())) << r;
      }
      receives[r]->Release();
    }
    // What nobody received can be cancelled, unless it was sent eagerly without a hand-shake.
    for (Request* send : sends) {
      if (!send->complete) EXPECT_TRUE(send->Cancel().ok());
    }
    pair.Settle();
    for (Request* send : sends) {
      ASSERT_TRUE(send->complete);
      send->Release();
    }
  }
}

TEST(EngineTest, ASenderWhoseMessagesNobodyReceivesStopsToSendThem) {
  Pair pair(kSmall);
  const auto data = Data(200, 1);
  std::vector<Request*> sends;
  for (int i = 0; i < 1000; ++i) sends.push_back(pair.a.Send(data, 1));
  pair.Settle();
  const auto done = std::count_if(sends.begin(), sends.end(), [](Request* send) { return send->complete; });
  EXPECT_EQ(done, static_cast<long>(kSmall.window) / Link::CostOf(200));
  for (Request* send : sends) {
    std::vector<uint8_t> got(200);
    Request* receive = pair.b.Receive(got, 0, 1);
    pair.Settle();
    ASSERT_TRUE(receive->complete);
    ASSERT_EQ(got, data);
    receive->Release();
    ASSERT_TRUE(send->complete);
    send->Release();
  }
  // All credit has come back but what does not make up a frame yet.
  Request* last = pair.a.Send(data, 1);
  pair.Settle();
  EXPECT_TRUE(last->complete);
  last->Release();
}

TEST(EngineTest, TruncatedMessagesAreErrorsAndTheNextOnesArrive) {
  for (size_t length : {250, 3000}) {
    for (bool early : {false, true}) {
      Pair pair(kSmall);
      const auto sent = Data(length, 1), next = Data(10, 9);
      std::vector<uint8_t> got(100), guard(10);
      Request* receive = early ? pair.b.Receive(got, MPI_ANY_SOURCE, MPI_ANY_TAG) : nullptr;
      Request* send = pair.a.Send(sent, 1);
      Request* send_next = pair.a.Send(next, 1);
      pair.Settle(33);
      if (!early) receive = pair.b.Receive(got, MPI_ANY_SOURCE, MPI_ANY_TAG);
      Request* receive_next = pair.b.Receive(guard, 0, 1);
      pair.Settle(33);
      ASSERT_TRUE(receive->complete && receive_next->complete && send->complete && send_next->complete);
      EXPECT_EQ(receive->error.mpi_class(), MPI_ERR_TRUNCATE);
      EXPECT_TRUE(std::equal(got.begin(), got.end(), sent.begin()));
      EXPECT_TRUE(receive_next->error.ok());
      EXPECT_EQ(guard, next);
      for (Request* request : {receive, receive_next, send, send_next}) request->Release();
    }
  }
}

TEST(EngineTest, SynchronousSendsCompleteWhenTheyAreMatched) {
  for (size_t length : {0, 10, 1000}) {
    Pair pair(kSmall);
    const auto sent = Data(length, 1);
    Request* send = pair.a.Send(sent, 1, SendMode::kSynchronous);
    pair.Settle();
    EXPECT_FALSE(send->complete);
    std::vector<uint8_t> got(length);
    Request* receive = pair.b.Receive(got, 0, 1);
    pair.Settle();
    EXPECT_TRUE(send->complete && receive->complete);
    EXPECT_EQ(got, sent);
    send->Release();
    receive->Release();
  }
}

TEST(EngineTest, StridedDataGoWithoutPacking) {
  const Ref<Datatype> column = MakeVector(100, 3, 10, Byte());
  for (size_t count : {0, 1, 3}) {
    for (size_t step : {1, 17, 5000}) {
      Pair pair(kSmall);
      const auto from = Data(4000, 2);
      std::vector<uint8_t> to(4000);
      Request *send, *receive;
      const auto n = static_cast<MPI_Aint>(count);
      ASSERT_TRUE(pair.b.engine.StartReceive(to.data(), n, *column, 0, 1, *pair.b.comm, Channel::kPointToPoint, &receive).ok());
      ASSERT_TRUE(pair.a.engine
                      .StartSend(from.data(), n, *column, 1, 1, *pair.a.comm, SendMode::kStandard, Channel::kPointToPoint, &send)
                      .ok());
      pair.Settle(step);
      ASSERT_TRUE(send->complete && receive->complete);
      std::vector<uint8_t> expected(4000);
      ASSERT_TRUE(CopyTyped(from.data(), n, *column, expected.data(), n, *column).ok());
      EXPECT_EQ(to, expected);
      send->Release();
      receive->Release();
    }
  }
}

TEST(EngineTest, MessagesToOneselfNeedNoLink) {
  Pair pair(kSmall);
  for (size_t length : {0, 10, 5000}) {
    for (bool early : {false, true}) {
      const auto sent = Data(length, 1);
      std::vector<uint8_t> got(length);
      Request* receive = early ? pair.a.Receive(got, 0, 1) : nullptr;
      Request* send = pair.a.Send(sent, 1, SendMode::kStandard, 0);
      EXPECT_EQ(send->complete, early || length <= kSmall.eager);
      if (!early) receive = pair.a.Receive(got, MPI_ANY_SOURCE, 1);
      ASSERT_TRUE(send->complete && receive->complete);
      EXPECT_EQ(got, sent);
      send->Release();
      receive->Release();
    }
  }
}

TEST(EngineTest, ADeathFailsWhatNeedsTheProcessAndNothingElse) {
  Pair pair(kSmall);
  const auto data = Data(1000, 1), small = Data(20, 2);
  std::vector<uint8_t> got(1000), any(10), self(10), stored(20);
  Request* arrived = pair.b.Send(small, 7);
  Request* announced = pair.a.Send(data, 1);
  Request* queued = pair.a.Send(data, 2);
  Request* receive = pair.a.Receive(got, 1, 3);
  Request* receive_any = pair.a.Receive(any, MPI_ANY_SOURCE, 3);
  Request* receive_self = pair.a.Receive(self, 0, 3);
  pair.Write(pair.a, pair.a_to_b, 40);
  while (pair.Write(pair.b, pair.b_to_a, 1000) | pair.Read(pair.a, pair.b_to_a, 1000)) {
  }
  pair.a.engine.OnGone(1, /*left=*/false);
  for (Request* request : {announced, queued, receive, receive_any}) {
    ASSERT_TRUE(request->complete);
    EXPECT_EQ(request->error.mpi_class(), MPI_ERR_PROC_ABORTED) << request->error.message();
    request->Release();
  }
  EXPECT_FALSE(receive_self->complete);
  Request* send_self = pair.a.Send(small, 3, SendMode::kStandard, 0);
  EXPECT_TRUE(receive_self->complete);
  // What it sent before is still there.
  Request* of_before = pair.a.Receive(stored, 1, 7);
  EXPECT_TRUE(of_before->complete && of_before->error.ok());
  EXPECT_EQ(stored, small);
  // New operations fail at once.
  Request* none;
  EXPECT_EQ(pair.a.engine.StartSend(data.data(), 1, Byte(), 1, 1, *pair.a.comm, SendMode::kStandard, Channel::kPointToPoint, &none).mpi_class(),
            MPI_ERR_PROC_ABORTED);
  EXPECT_EQ(pair.a.engine.StartReceive(got.data(), 1, Byte(), 1, 1, *pair.a.comm, Channel::kPointToPoint, &none).mpi_class(),
            MPI_ERR_PROC_ABORTED);
  EXPECT_TRUE(pair.a.engine.IsDead(1));
  for (Request* request : {receive_self, send_self, of_before, arrived}) request->Release();
}

TEST(EngineTest, AMessageCutOffByADeathIsAnErrorOfItsReceive) {
  for (int written = 1; written < 290; written += 7) {
    for (int when = 0; when < 3; ++when) {  // the receive: before, while it arrives, after the death
      Pair pair(kSmall);
      const auto data = Data(250, 1);
      std::vector<uint8_t> got(250);
      Request* send = pair.b.Send(data, 1);
      Request* receive = when == 0 ? pair.a.Receive(got, 1, 1) : nullptr;
      for (int left = written; left > 0; --left) {
        pair.Write(pair.b, pair.b_to_a, 1);
        pair.Read(pair.a, pair.b_to_a, 1);
      }
      if (when == 1) receive = pair.a.Receive(got, 1, 1);
      pair.a.engine.OnGone(1, /*left=*/false);
      if (when == 2) {
        EXPECT_EQ(pair.a.engine.StartReceive(got.data(), 250, Byte(), 1, 1, *pair.a.comm, Channel::kPointToPoint, &receive).mpi_class(),
                  MPI_ERR_PROC_ABORTED);
      } else {
        ASSERT_TRUE(receive->complete) << written;
        EXPECT_EQ(receive->error.mpi_class(), MPI_ERR_PROC_ABORTED);
        receive->Release();
      }
      pair.b.engine.OnGone(0, /*left=*/false);
      send->Release();
    }
  }
}

TEST(EngineTest, AGoodbyeIsNotADeath) {
  Pair pair(kSmall);
  std::vector<uint8_t> got(10);
  Request* receive = pair.a.Receive(got, 1, 1);
  pair.b.link().SendControl({.kind = FrameKind::kGoodbye});
  pair.Settle();
  ASSERT_TRUE(receive->complete);
  EXPECT_NE(receive->error.message().find("MPI_Finalize"), std::string::npos);
  EXPECT_FALSE(pair.a.engine.IsDead(1));
  receive->Release();
}

TEST(LinkTest, DropsAPeerThatBreaksTheProtocol) {
  const FrameHeader kBad[] = {
      {.kind = FrameKind::kEager, .length = kSmall.window + 1},
      {.kind = FrameKind::kClear, .send_id = 77},
      {.kind = FrameKind::kData, .receive_id = 1, .length = 8},
      {.kind = FrameKind::kMatched, .send_id = 0x1000000},
      {.kind = FrameKind::kCancelled, .send_id = 5},
  };
  for (const FrameHeader& header : kBad) {
    Pair pair(kSmall);
    uint8_t bytes[FrameHeader::kLength];
    header.SerializeTo(bytes);
    EXPECT_FALSE(pair.a.link().ReadDone(sizeof(bytes), bytes)) << static_cast<int>(header.kind);
  }
}

TEST(EngineTest, SendsToAPeerThatCannotBeReachedFailAndLaterOnesGoOut) {
  Process a(0, kSmall);  // the link is not open
  std::vector<Request*> failed;
  for (int i = 0; i < 20; ++i) failed.push_back(a.Send(Data(250, i), i));  // more than there is credit for
  std::vector<uint8_t> got(10);
  Request* receive = a.Receive(got, 1, 1);
  Request* anyone = a.Receive(got, MPI_ANY_SOURCE, 2);
  a.engine.OnUnreachable(1, Error(MPI_ERR_OTHER, "no descriptor"));
  for (Request* request : failed) {
    ASSERT_TRUE(request->complete);
    EXPECT_EQ(request->error.mpi_class(), MPI_ERR_OTHER);
    request->Release();
  }
  ASSERT_TRUE(receive->complete);
  EXPECT_EQ(receive->error.mpi_class(), MPI_ERR_OTHER);
  EXPECT_FALSE(anyone->complete);
  EXPECT_FALSE(a.engine.IsDead(1));
  receive->Release();
  receive = a.Receive(got, 1, 1);
  a.engine.OnUnreachable(1, Error(MPI_ERR_OTHER, "no descriptor"));  // nothing was to be sent
  EXPECT_FALSE(receive->complete);
  EXPECT_TRUE(a.link().HasCredit(static_cast<int64_t>(kSmall.window)));
  Request* later = a.Send(Data(100, 1), 1);
  EXPECT_TRUE(a.link().has_output());
  a.engine.OnGone(1, false);
  for (Request* request : {receive, anyone, later}) request->Release();
}

TEST(EngineTest, APeerMaySayOfItsWindowWhatItWill) {
  for (const uint64_t window : {UINT64_MAX, uint64_t{1} << 63, uint64_t{1} << 62, uint64_t{0}}) {
    Process a(0, kSmall);
    a.link().Open(window);
    EXPECT_EQ(a.link().HasCredit(1000), window != 0) << window;
  }
}

// MPI_Wait after MPI_Cancel must return whatever the other process does (MPI 4.0 section 3.8.4).
TEST(EngineTest, ASendOfWhichAPartIsWrittenCanBeCancelled) {
  for (const SendMode mode : {SendMode::kStandard, SendMode::kSynchronous}) {
    for (const size_t written : {size_t{1}, size_t{39}, FrameHeader::kLength, FrameHeader::kLength + 50}) {
      for (const size_t length : {size_t{200}, size_t{5000}}) {
        if (mode == SendMode::kStandard && length == 200) continue;  // complete as soon as it is written
        Pair pair(kSmall);
        const std::vector<uint8_t> data = Data(length, 1);
        Request* send = pair.a.Send(data, 1, mode);
        pair.Write(pair.a, pair.a_to_b, written);
        EXPECT_TRUE(send->Cancel().ok());
        pair.Settle();
        ASSERT_TRUE(send->complete) << length << " bytes, " << written << " written";
        EXPECT_EQ(send->status.count_hi_and_cancelled & 1, 1);
        send->Release();
        // The next message is received, not the cancelled one.
        const std::vector<uint8_t> next = Data(100, 9);
        std::vector<uint8_t> got(100);
        Request* requests[] = {pair.a.Send(next, 1), pair.b.Receive(got, 0, 1)};
        pair.Settle();
        for (Request* request : requests) {
          EXPECT_TRUE(request->complete);
          request->Release();
        }
        EXPECT_EQ(got, next);
      }
    }
  }
}

TEST(EngineTest, CreditThatACancelledSendWouldHaveBroughtGoesWithTheNext) {
  Pair pair(kSmall);
  for (int round = 0; round < 100; ++round) {
    // b owes a for this one, and would pay with the message that it cancels.
    std::vector<uint8_t> data = Data(100, round), got(100);
    Request* requests[] = {pair.a.Send(data, 1), pair.b.Receive(got, 0, 1)};
    pair.Settle();
    Request* cancelled = pair.b.Send(data, 1);
    EXPECT_TRUE(cancelled->Cancel().ok());
    ASSERT_TRUE(cancelled->complete);
    cancelled->Release();
    for (Request* request : requests) {
      ASSERT_TRUE(request->complete);
      request->Release();
    }
  }
  std::vector<uint8_t> data = Data(100, 1), got(100);
  Request* requests[] = {pair.b.Send(data, 1), pair.a.Receive(got, 1, 1)};
  pair.Settle();
  for (Request* request : requests) request->Release();
  EXPECT_TRUE(pair.a.link().HasCredit(static_cast<int64_t>(kSmall.window)));
}

}  // namespace
}  // namespace weft::mpi
