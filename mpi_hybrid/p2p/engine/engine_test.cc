#include "mpi_hybrid/p2p/engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "mpi_hybrid/core/counters.h"
#include "mpi_hybrid/datatype/external32.h"
#include "mpi_hybrid/p2p/testing/engine_suite.h"
#include "mpi_hybrid/p2p/testing/process.h"

namespace weft::mpi::testing {
namespace {

// Two processes and the bytes between them, which the test moves from link to link.
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
    if (read != 0) {
      EXPECT_TRUE(to.link().ReadDone(read, staging));
    }
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

INSTANTIATE_TYPED_TEST_SUITE_P(MovedByHand, MessageSuite, Pair);
INSTANTIATE_TYPED_TEST_SUITE_P(MovedByHand, EngineSuite, Pair);

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
    EXPECT_EQ(request->error.mpi_class(), MPIX_ERR_PROC_FAILED) << request->error.message();
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
            MPIX_ERR_PROC_FAILED);
  EXPECT_EQ(pair.a.engine.StartReceive(got.data(), 1, Byte(), 1, 1, *pair.a.comm, Channel::kPointToPoint, &none).mpi_class(),
            MPIX_ERR_PROC_FAILED);
  EXPECT_TRUE(pair.a.engine.IsDead(1));
  for (Request* request : {receive_self, send_self, of_before, arrived}) request->Release();
}

TEST(EngineTest, AReceiveFromAnyoneWaitsForTheLivingOnceADeathIsAcknowledged) {
  Process a(0, kSmall, /*size=*/3);
  std::vector<uint8_t> got(10);
  Request* early = a.Receive(got, MPI_ANY_SOURCE, 1);
  EXPECT_FALSE(early->IsHindered());
  a.engine.OnGone(1, /*left=*/false);
  Request* late = a.Receive(got, MPI_ANY_SOURCE, 2);
  for (Request* request : {early, late}) {
    EXPECT_FALSE(request->complete);
    EXPECT_TRUE(request->IsHindered());
    EXPECT_EQ(request->Hindrance().mpi_class(), MPIX_ERR_PROC_FAILED_PENDING);
  }
  EXPECT_EQ(a.engine.SourceError(MPI_ANY_SOURCE, *a.comm).mpi_class(), MPIX_ERR_PROC_FAILED);
  EXPECT_TRUE(a.engine.SourceError(2, *a.comm).ok());
  EXPECT_EQ(a.engine.GoneOf(*a.comm->remote), std::vector<ProcessId>{1});
  a.comm->acknowledged = {1};
  EXPECT_FALSE(early->IsHindered());
  EXPECT_FALSE(late->IsHindered());
  EXPECT_TRUE(a.engine.SourceError(MPI_ANY_SOURCE, *a.comm).ok());
  // Nobody is left to send.
  a.engine.OnGone(2, /*left=*/false);
  for (Request* request : {early, late}) {
    ASSERT_TRUE(request->complete);
    EXPECT_EQ(request->error.mpi_class(), MPIX_ERR_PROC_FAILED);
    request->Release();
  }
}

// A peer that breaks the rules.
TEST(EngineTest, NoMessageComesBehindAGoodbyeAndANoteThatDoesEndsWithTheLink) {
  for (const FrameKind kind : {FrameKind::kEager, FrameKind::kRequest, FrameKind::kNote}) {
    SCOPED_TRACE("kind " + std::to_string(static_cast<int>(kind)));
    Process a(0, kSmall, /*size=*/3);
    a.engine.set_on_note([] {});
    Link& link = a.engine.LinkTo(1);
    link.Open(kSmall.window);
    const auto say = [&](const FrameHeader& header, size_t of_body) {
      std::vector<uint8_t> bytes(FrameHeader::kLength + of_body);
      header.SerializeTo(std::span(bytes).first<FrameHeader::kLength>());
      return link.ReadStaged(bytes);
    };
    std::vector<uint8_t> got(100);
    Request* any = a.Receive(got, MPI_ANY_SOURCE, 1);
    EXPECT_TRUE(say({.kind = FrameKind::kGoodbye}, 0));
    EXPECT_EQ(link.state(), Link::State::kLeft);
    const size_t half = kind == FrameKind::kRequest ? 0 : 40;
    EXPECT_EQ(say({.kind = kind, .context = a.comm->receive_context, .tag = 1, .source = 1, .length = 100}, half), kind == FrameKind::kNote);
    a.engine.OnGone(1, /*left=*/false);
    EXPECT_EQ(link.state(), Link::State::kLeft);
    EXPECT_FALSE(any->complete) << "it is for the one who is left";
    EXPECT_TRUE(any->Cancel().ok());
    any->Release();
  }
}

// A whole frame that a wire shows.
TEST(EngineTest, AWholeFrameGoesToThePostedReceiveOrNothingHappens) {
  Process a(0, kSmall);
  Link& link = a.engine.LinkTo(1);
  link.Open(kSmall.window);
  const std::vector<uint8_t> data = Data(100, 1);
  const auto offer = [&](FrameHeader header, size_t of_first, size_t of_rest) {
    header.context = a.comm->receive_context;
    header.source = 1;
    std::vector<uint8_t> first(FrameHeader::kLength);
    header.SerializeTo(std::span(first).first<FrameHeader::kLength>());
    first.insert(first.end(), data.begin(), data.begin() + static_cast<ptrdiff_t>(of_first));
    return link.TakeForPosted(first, std::span(data).subspan(of_first, of_rest));
  };
  EXPECT_FALSE(offer({.tag = 1, .length = 100}, 10, 90)) << "nothing is posted";
  std::vector<uint8_t> got(100), shorter(30);
  Request* receive = a.Receive(got, 1, 1);
  EXPECT_FALSE(offer({.tag = 2, .length = 100}, 10, 90)) << "another tag";
  EXPECT_FALSE(offer({.tag = 1, .length = 101}, 10, 90)) << "a byte is missing";
  EXPECT_FALSE(offer({.tag = 1, .length = 99}, 10, 90)) << "a byte too many";
  EXPECT_FALSE(offer({.kind = FrameKind::kRequest, .tag = 1, .length = 100}, 10, 90));
  EXPECT_FALSE(offer({.flags = kFlagSynchronous, .tag = 1, .length = 100}, 10, 90));
  EXPECT_FALSE(receive->complete);
  const uint64_t before = g_counters.messages_received;
  EXPECT_TRUE(offer({.tag = 1, .length = 100}, 10, 90));
  EXPECT_TRUE(receive->complete);
  EXPECT_EQ(g_counters.messages_received, before + 1);
  EXPECT_EQ(GetCount(receive->status), 100);
  EXPECT_EQ(receive->status.MPI_TAG, 1);
  EXPECT_EQ(got, data);
  receive->Release();
  // Cut off in the first piece, at its end, and behind it.
  for (const size_t of_first : {40, 30, 20}) {
    receive = a.Receive(shorter, 1, 1);
    EXPECT_TRUE(offer({.tag = 1, .length = 100}, of_first, 100 - of_first));
    EXPECT_EQ(receive->error.mpi_class(), MPI_ERR_TRUNCATE);
    EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), data.begin()));
    receive->Release();
  }
  // In the middle of another frame, and after the end.
  receive = a.Receive(got, 1, 1);
  std::vector<uint8_t> half(FrameHeader::kLength / 2);
  FrameHeader{.tag = 1, .length = 100}.SerializeTo(std::span<uint8_t, FrameHeader::kLength>(got.data(), FrameHeader::kLength));
  std::copy_n(got.begin(), half.size(), half.begin());
  EXPECT_TRUE(link.ReadStaged(half));
  EXPECT_FALSE(offer({.tag = 1, .length = 100}, 10, 90));
  a.engine.OnGone(1, /*left=*/false);
  EXPECT_FALSE(offer({.tag = 1, .length = 100}, 10, 90));
  EXPECT_TRUE(receive->complete);
  receive->Release();
}

TEST(EngineTest, NotesArriveInOrderWhateverTheCuts) {
  Pair pair(kSmall);
  pair.b.engine.set_on_note([] {});
  const auto first = Data(1, 1), second = Data(1000, 2), message = Data(20, 3);
  pair.a.engine.SendNote(1, first);
  Request* between = pair.a.Send(message, 1);
  pair.a.engine.SendNote(1, second);
  for (int i = 0; i < 2000; ++i) {
    pair.Write(pair.a, pair.a_to_b, 7);
    pair.Read(pair.b, pair.a_to_b, 3);
  }
  const auto notes = pair.b.engine.TakeNotes();
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0].bytes, first);
  EXPECT_EQ(notes[1].bytes, second);
  EXPECT_EQ(notes[1].from, 0);
  EXPECT_FALSE(pair.a.engine.HasUnfinishedSends());
  between->Release();
}

// Of messages of each kind so many bytes have come when the receiver's communicator is revoked; the sender's is not.
TEST(EngineTest, WhatComesForARevokedCommunicatorHoldsNobodyUp) {
  for (const size_t length : {size_t{0}, size_t{250}, size_t{5000}}) {
    for (const SendMode mode : {SendMode::kStandard, SendMode::kSynchronous}) {
      for (size_t written = 0; written < 300; written += 13) {
        SCOPED_TRACE(std::to_string(length) + " bytes, " + std::to_string(written) + " have come");
        Pair pair(kSmall);
        std::vector<uint8_t> got(10);
        Request* posted = pair.b.Receive(got, 0, 9);
        const auto data = Data(length, 1);
        Request* send = pair.a.Send(data, 1, mode);
        pair.Write(pair.a, pair.a_to_b, written);
        pair.Read(pair.b, pair.a_to_b, written);
        pair.b.engine.Revoke(*pair.b.comm);
        ASSERT_TRUE(posted->complete);
        EXPECT_EQ(posted->error.mpi_class(), MPIX_ERR_REVOKED);
        pair.Settle();
        ASSERT_TRUE(send->complete);
        const bool is_told = mode == SendMode::kSynchronous || length > kSmall.eager;
        EXPECT_EQ(send->error.mpi_class(), is_told ? MPIX_ERR_REVOKED : MPI_SUCCESS);
        Request* none;
        EXPECT_EQ(pair.b.engine.StartReceive(got.data(), 1, Byte(), 0, 1, *pair.b.comm, Channel::kPointToPoint, &none).mpi_class(), MPIX_ERR_REVOKED);
        EXPECT_EQ(pair.b.engine.StartSend(got.data(), 1, Byte(), 0, 1, *pair.b.comm, SendMode::kStandard, Channel::kPointToPoint, &none).mpi_class(),
                  MPIX_ERR_REVOKED);
        for (Request* request : {posted, send}) request->Release();
      }
    }
  }
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
                  MPIX_ERR_PROC_FAILED);
      } else {
        ASSERT_TRUE(receive->complete) << written;
        EXPECT_EQ(receive->error.mpi_class(), MPIX_ERR_PROC_FAILED);
        receive->Release();
      }
      pair.b.engine.OnGone(0, /*left=*/false);
      send->Release();
    }
  }
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
  const auto data = Data(250, 1);
  std::vector<Request*> failed;
  for (int i = 0; i < 20; ++i) failed.push_back(a.Send(data, i));  // more than there is credit for
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
  Request* later = a.Send(data, 1);
  EXPECT_TRUE(a.link().has_output());
  a.engine.OnGone(1, false);
  for (Request* request : {receive, anyone, later}) request->Release();
}

TEST(EngineTest, NotesToAPeerThatCannotBeReachedGoOutLater) {
  Pair pair(kSmall);
  Process fresh(0, kSmall);
  const auto first = Data(1, 1), second = Data(1000, 2), data = Data(20, 3);
  std::vector<uint8_t> got(10);
  fresh.engine.SendNote(1, first);
  Request* receive = fresh.Receive(got, 1, 1);
  fresh.engine.with_output().clear();
  fresh.engine.OnUnreachable(1, Error(MPI_ERR_OTHER, "no descriptor"));
  EXPECT_FALSE(receive->complete) << "nothing of the program's was lost";
  EXPECT_EQ(fresh.engine.with_output().size(), 1u) << "it is tried again";
  Request* message = fresh.Send(data, 1);
  fresh.engine.SendNote(1, second);
  fresh.engine.with_output().clear();
  fresh.engine.OnUnreachable(1, Error(MPI_ERR_OTHER, "no descriptor"));
  EXPECT_TRUE(message->complete && receive->complete);
  EXPECT_EQ(message->error.mpi_class(), MPI_ERR_OTHER);
  EXPECT_EQ(fresh.engine.with_output().size(), 1u);
  // There is a way now.
  fresh.link().Open(kSmall.window);
  pair.b.engine.set_on_note([] {});
  for (int i = 0; i < 2000; ++i) {
    pair.Write(fresh, pair.a_to_b, 7);
    pair.Read(pair.b, pair.a_to_b, 3);
  }
  const auto notes = pair.b.engine.TakeNotes();
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0].bytes, first);
  EXPECT_EQ(notes[1].bytes, second);
  EXPECT_FALSE(fresh.engine.HasUnfinishedSends());
  // Where it dies first, they go with it.
  Process alone(0, kSmall);
  alone.engine.SendNote(1, first);
  alone.engine.OnUnreachable(1, Error(MPI_ERR_OTHER, "no descriptor"));
  alone.engine.OnGone(1, false);
  EXPECT_FALSE(alone.engine.HasUnfinishedSends());
  for (Request* request : {receive, message}) request->Release();
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

// Of a communicator that spans clients of an IMPI job.
struct OfClients : Comm::Extension {};

// MPI_Pack made external32 for such a communicator; the receiver has the type of what was packed (MPI 4.0 section 5.2).
TEST(EngineTest, PackedDataBetweenRanksOfAClientAreReceivedAsWhatTheyWere) {
  for (const int receiver : {1, 0}) {  // the other process, or the sender itself
    for (const auto& [count, named] : {std::pair(3, MPI_DOUBLE), {1000, MPI_DOUBLE}, {3, MPI_LONG}, {1000, MPI_LONG}}) {  // eager or announced; in place or not
      Pair pair(kSmall);
      for (Process* process : {&pair.a, &pair.b}) {
        process->engine.AdmitForeign(100);
        process->comm->clients = std::make_unique<OfClients>();
      }
      const Datatype& type = *Datatype::Find(named);
      std::vector<int64_t> values(static_cast<size_t>(count)), got(values.size());  // as doubles, too
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i) + 5;
      std::vector<uint8_t> packed(static_cast<size_t>(ExternalSize(count, type)));
      PackExternal(values.data(), count, type, packed.data());
      Process& to = receiver == 1 ? pair.b : pair.a;
      Request *send, *receive;
      ASSERT_TRUE(pair.a.engine
                      .StartSend(packed.data(), static_cast<MPI_Aint>(packed.size()), *Datatype::Find(MPI_PACKED), receiver, 1, *pair.a.comm,
                                 SendMode::kStandard, Channel::kPointToPoint, &send)
                      .ok());
      ASSERT_TRUE(to.engine.StartReceive(got.data(), count, type, 0, 1, *to.comm, Channel::kPointToPoint, &receive).ok());
      pair.Settle();
      for (Request* request : {send, receive}) {
        EXPECT_TRUE(request->complete);
        EXPECT_TRUE(request->error.ok()) << request->error.message();
      }
      EXPECT_EQ(got, values) << count << " to " << receiver;
      for (Request* request : {send, receive}) request->Release();
    }
  }
}

TEST(EngineTest, WhereThereAreNoOtherClientsNobodySendsExternal32) {
  for (const bool admits : {false, true}) {
    Process b(1, kSmall);
    if (admits) b.engine.AdmitForeign(100);
    b.link().Open(kSmall.window);
    uint8_t frame[FrameHeader::kLength + 4] = {};
    FrameHeader{.kind = FrameKind::kEager, .flags = kFlagExternal, .context = 8, .tag = 1, .source = 0, .length = 4}.SerializeTo(
        std::span<uint8_t, FrameHeader::kLength>(frame, FrameHeader::kLength));
    EXPECT_EQ(b.link().ReadStaged(frame), admits);
  }
}

}  // namespace
}  // namespace weft::mpi::testing
