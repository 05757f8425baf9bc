#include "mpi_hybrid/p2p/host/host_transport.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "mpi_hybrid/core/counters.h"
#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/host/own_words.h"
#include "mpi_hybrid/host/segment.h"
#include "mpi_hybrid/p2p/host/cells.h"
#include "mpi_hybrid/p2p/host/ring.h"
#include "mpi_hybrid/p2p/testing/device_pair.h"
#include "mpi_hybrid/p2p/testing/engine_suite.h"
#include "mpi_hybrid/p2p/testing/transport_suite.h"

namespace weft::mpi::testing {
namespace {

using host::Segment;
using host::RingPage;

// The segment of a host whose ranks all live here.
class HostNetwork final : public Network {
 public:
  HostNetwork(int size, bool copies) : copies_(copies) {
    std::vector<int> ranks(static_cast<size_t>(size));
    std::iota(ranks.begin(), ranks.end(), 0);
    std::string why;
    nodes_.push_back(Segment::Create(ranks, 0, &why));
    for (int place = 1; place < size; ++place) {
      Descriptor memory(fcntl(nodes_[0]->memory_descriptor(), F_DUPFD_CLOEXEC, 0));
      nodes_.push_back(Segment::Join(std::move(memory), ranks, place, &why));
    }
    for (const auto& one : nodes_) {
      EXPECT_NE(one, nullptr) << why;
      one->Settle();
    }
  }
  std::unique_ptr<Transport> Make(Engine& engine, EventLoop& loop) override {
    return std::make_unique<host::HostTransport>(segment(engine.self()), engine, loop, copies_ ? size_t{128 * 1024} : host::kNeverInPlace);
  }
  bool IsQuiet() override { return true; }
  Segment& segment(int rank) { return *nodes_[static_cast<size_t>(rank)]; }

 private:
  const bool copies_;
  std::vector<std::unique_ptr<Segment>> nodes_;
};

template <bool kCopies>
std::unique_ptr<Network> MakeNetwork(int size, unsigned /*seed*/) {
  return std::make_unique<HostNetwork>(size, kCopies);
}

template <bool kCopies>
struct HostPair : DevicePair {
  explicit HostPair(const EngineLimits& limits, unsigned seed = 1) : DevicePair(&MakeNetwork<kCopies>, limits, seed) {}
};
using Auto = HostPair<true>;
using Rings = HostPair<false>;
INSTANTIATE_TYPED_TEST_SUITE_P(Auto, MessageSuite, Auto);
INSTANTIATE_TYPED_TEST_SUITE_P(Auto, EngineSuite, Auto);
INSTANTIATE_TYPED_TEST_SUITE_P(Rings, MessageSuite, Rings);
INSTANTIATE_TYPED_TEST_SUITE_P(Rings, EngineSuite, Rings);
INSTANTIATE_TEST_SUITE_P(Auto, TransportSuite, ::testing::Values(NetworkFactory(&MakeNetwork<true>)));
INSTANTIATE_TEST_SUITE_P(Rings, TransportSuite, ::testing::Values(NetworkFactory(&MakeNetwork<false>)));

class HostTransportTest : public JobTest {
 protected:
  explicit HostTransportTest(NetworkFactory factory = &MakeNetwork<true>) : JobTest(std::move(factory)) {}
  ~HostTransportTest() override { SilenceWarnings(false); }

  Segment& segment(int rank) { return static_cast<HostNetwork&>(*network_).segment(rank); }
  // What `from` writes for `to`.
  // Makes `rank` one whose waits have a processor, and begins one; it ends with EndWait.
  void Stay(int rank) {
    at(rank).device.presence().set_has_processor(true);
    at(rank).device.BeginWait();
  }
  // One message of 3 MB.
  void ExpectLongMessage(int from, int to) {
    const std::vector<uint8_t> data = Data(3'000'000, from);
    std::vector<uint8_t> got(data.size());
    Request* requests[] = {at(to).Receive(got, from, 9), at(from).Send(data, to, 9)};
    for (Request* request : requests) {
      EXPECT_TRUE(PollUntil([&] { return request->complete; }));
      EXPECT_TRUE(request->error.ok()) << request->error.message();
      request->Release();
    }
    EXPECT_EQ(got, data);
  }
  RingPage& Ring(int from, int to) { return *reinterpret_cast<RingPage*>(segment(0).OfPair(from, to)); }
};

TEST_F(HostTransportTest, LongDataAreCopiedFromWhereTheyLie) {
  Make(2);
  ExpectTraffic(0, 1);
  const uint64_t before = g_counters.host_copies;
  ExpectTraffic(0, 1, 3'000'000);
  EXPECT_EQ(g_counters.host_copies - before, 2U);
}

TEST_F(HostTransportTest, LongDataAreCopiedWhileTheirSenderComputes) {
  Make(2);
  ExpectTraffic(0, 1);
  const std::vector<uint8_t> data = Data(9'000'000, 1);
  for (const bool waits : {false, true}) {
    std::vector<uint8_t> got(data.size());
    Request* receive = waits ? at(1).Receive(got, 0, 1) : nullptr;
    Request* send = at(0).Send(data, 1, 1);
    at(0).device.Flush();
    still_ = {0};
    PollOnce();
    if (!waits) receive = at(1).Receive(got, 0, 1);
    ASSERT_TRUE(PollUntil([&] { return receive->complete; }));
    EXPECT_EQ(got, data);
    EXPECT_FALSE(send->complete);
    still_ = {};
    ASSERT_TRUE(PollUntil([&] { return send->complete; }));
    receive->Release();
    send->Release();
  }
}

TEST_F(HostTransportTest, WhatIsCopiedIsCutOffWhereTheReceiveEnds) {
  Make(2);
  const std::vector<uint8_t> data = Data(2'000'000, 1);
  for (const size_t room : {size_t{0}, size_t{1}, size_t{1'999'999}}) {
    std::vector<uint8_t> got(room + 1, 77);
    Request* receive;
    ASSERT_TRUE(at(1).engine.StartReceive(got.data(), static_cast<MPI_Aint>(room), *Datatype::Find(MPI_BYTE), 0, 1, *at(1).comm,
                                          Channel::kPointToPoint, &receive).ok());
    Request* send = at(0).Send(data, 1, 1);
    ASSERT_TRUE(PollUntil([&] { return receive->complete && send->complete; }));
    EXPECT_EQ(receive->error.mpi_class(), MPI_ERR_TRUNCATE);
    EXPECT_TRUE(send->error.ok());
    EXPECT_TRUE(std::equal(got.begin(), got.end() - 1, data.begin()));
    EXPECT_EQ(got.back(), 77);
    receive->Release();
    send->Release();
  }
}

TEST_F(HostTransportTest, WhatGoesToManySmallPiecesIsNotCopiedPieceByPiece) {
  Make(2);
  ExpectTraffic(0, 1);
  constexpr int kPieces = 250'000, kPiece = 8, kStride = 16;
  const Ref<Datatype> strided = MakeVector(kPieces, kPiece, kStride, *Datatype::Find(MPI_BYTE));
  strided->committed = true;
  const std::vector<uint8_t> data = Data(kPieces * kPiece, 1);
  std::vector<uint8_t> got(kPieces * kStride);
  const uint64_t before = g_counters.host_copies;
  Request* receive;
  ASSERT_TRUE(at(1).engine.StartReceive(got.data(), 1, *strided, 0, 1, *at(1).comm, Channel::kPointToPoint, &receive).ok());
  Request* send = at(0).Send(data, 1, 1);
  ASSERT_TRUE(PollUntil([&] { return receive->complete && send->complete; }));
  for (size_t i = 0; i < data.size(); ++i) ASSERT_EQ(got[i / kPiece * kStride + i % kPiece], data[i]) << i;
  EXPECT_LT(g_counters.host_copies - before, 5U);
  receive->Release();
  send->Release();
}

TEST_F(HostTransportTest, WhoSaysThatItCopiedWhatItWasNotOfferedIsADeadOne) {
  SilenceWarnings(true);
  Make(2);
  ExpectTraffic(0, 1);
  at(1).engine.LinkTo(0).SendControl({.kind = FrameKind::kFetched, .send_id = 1});
  EXPECT_TRUE(PollUntil([&] { return at(0).engine.IsDead(1); }));
}

TEST_F(HostTransportTest, LongDataGoThroughTheRingsWhileTheSenderIsSureToPoll) {
  Make(2);
  ExpectTraffic(0, 1);
  Stay(0);
  const uint64_t before = g_counters.host_copies;
  ExpectLongMessage(0, 1);
  EXPECT_EQ(g_counters.host_copies, before);
  ExpectLongMessage(1, 0);
  EXPECT_EQ(g_counters.host_copies, before + 1);
  // Each has one to copy.
  Stay(1);
  ExpectTraffic(0, 1, 3'000'000);
  EXPECT_EQ(g_counters.host_copies, before + 3);
  at(0).device.EndWait();
  ExpectLongMessage(0, 1);
  EXPECT_EQ(g_counters.host_copies, before + 4);
  at(1).device.EndWait();
}

TEST_F(HostTransportTest, WhoseProcessorIsSharedIsNeverSureToPoll) {
  Make(2);
  ExpectTraffic(0, 1);
  at(0).device.BeginWait();
  at(1).device.BeginWait();
  const uint64_t before = g_counters.host_copies;
  ExpectTraffic(0, 1, 3'000'000);
  EXPECT_EQ(g_counters.host_copies - before, 2U);
  at(0).device.EndWait();
  at(1).device.EndWait();
}

TEST_F(HostTransportTest, WhatIsLeftWhenTheSenderLeavesIsCopiedFromWhereItLies) {
  Make(2);
  ExpectTraffic(0, 1);
  for (size_t rounds = 0; rounds < 40; ++rounds) {
    const std::vector<uint8_t> data = Data(900'000, static_cast<int>(rounds));
    std::vector<uint8_t> got(data.size());
    Request* receive = at(1).Receive(got, 0, 1);
    Request* send = at(0).Send(data, 1, 1);
    Stay(0);
    for (size_t i = 0; i < rounds; ++i) PollOnce();
    at(0).device.EndWait();
    const uint64_t before = g_counters.host_copies;
    still_ = {0};
    // Once it was asked for, all of it comes, whether the sender polls or not.
    if (rounds >= 3) {
      ASSERT_TRUE(PollUntil([&] { return receive->complete; })) << rounds;
    }
    still_ = {};
    ASSERT_TRUE(PollUntil([&] { return receive->complete && send->complete; }));
    EXPECT_EQ(got, data);
    if (rounds >= 3 && rounds < 6) {
      EXPECT_EQ(g_counters.host_copies, before + 1) << rounds;
    }
    receive->Release();
    send->Release();
  }
}

// For the calling thread, and for good.
bool ForbidReadingProcesses() {
  sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {std::size(steps), steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(HostTransportTest, MessagesGoOnWhenMemoryOfTheOtherMayNotBeReadAnyMore) {
  Make(2);
  ExpectTraffic(0, 1, 3'000'000);
  EXPECT_EQ(Ring(0, 1).reads_memory, 1U);
  const std::vector<uint8_t> early = Data(2'000'000, 1);  // is under way
  Request* send = at(0).Send(early, 1, 1);
  std::thread([&] {
    ASSERT_TRUE(ForbidReadingProcesses());
    std::vector<uint8_t> got(early.size());
    Request* receive = at(1).Receive(got, 0, 1);
    ASSERT_TRUE(PollUntil([&] { return receive->complete && send->complete; }));
    EXPECT_EQ(got, early);
    receive->Release();
    send->Release();
    const uint64_t before = g_counters.host_copies;
    ExpectTraffic(0, 1, 3'000'000);
    ExpectTraffic(1, 0, 3'000'000);
    EXPECT_LE(g_counters.host_copies - before, 1U);  // the other direction's first
    EXPECT_EQ(Ring(0, 1).reads_memory, 0U);
    EXPECT_EQ(Ring(1, 0).reads_memory, 0U);
  }).join();
}

TEST_F(HostTransportTest, APeerThatRefusesMoreThanItWasGivenIsADeadOne) {
  SilenceWarnings(true);
  Make(2);
  ExpectTraffic(0, 1);
  still_.insert(1);
  // It is asked for them while it stays, and leaves.
  Stay(0);
  const std::vector<uint8_t> data = Data(2'000'000, 1);
  Request* send = at(0).Send(data, 1, 1);
  at(0).device.Flush();
  std::vector<uint8_t> got(data.size());
  Request* receive = at(1).Receive(got, 0, 1);
  at(1).device.Poll();
  at(0).device.EndWait();
  RingPage& ring = Ring(0, 1);
  const host::RingSlot* slot = nullptr;
  ASSERT_TRUE(PollUntil([&] {
    slot = std::find_if(std::begin(ring.slots), std::end(ring.slots), [](const auto& one) {
      return static_cast<uint8_t>(one.control >> 40) == static_cast<uint8_t>(host::BulkKind::kMemory);
    });
    return slot != std::end(ring.slots);
  }));
  ring.refused = data.size() + 1;
  ring.reads_memory = 0;
  ring.read = static_cast<uint32_t>(slot->control);
  EXPECT_TRUE(PollUntil([&] { return send->complete && at(0).engine.IsDead(1); }));
  send->Release();
  still_.clear();
  ASSERT_TRUE(PollUntil([&] { return receive->complete; }));
  receive->Release();
}

class HostRingsTest : public HostTransportTest {
 protected:
  HostRingsTest() : HostTransportTest(&MakeNetwork<false>) {}
};

// As when the number is another process's by now.
TEST_F(HostTransportTest, OnlyAProcessWithItsMarkIsCopiedFrom) {
  Make(2);
  reinterpret_cast<host::PlaceCard*>(segment(0).CardOf(1))->mark = 4096;  // where nobody has memory
  const uint64_t before = g_counters.host_copies;
  ExpectLongMessage(1, 0);
  EXPECT_EQ(g_counters.host_copies, before);
  ExpectLongMessage(0, 1);
  EXPECT_GT(g_counters.host_copies, before);
}

TEST_F(HostRingsTest, NobodyReadsTheMemoryOfAnother) {
  Make(2);
  const uint64_t before = g_counters.host_copies;
  ExpectTraffic(0, 1, 3'000'000);
  EXPECT_EQ(g_counters.host_copies, before);
  EXPECT_EQ(Ring(0, 1).reads_memory, 0U);
}

TEST_F(HostTransportTest, EveryLengthAroundSlotsAndCellsArrives) {
  Make(2);
  for (const size_t edge : {size_t{16}, size_t{56}, host::kCellBytes, 2 * host::kCellBytes, size_t{128 * 1024}}) {
    for (size_t length = edge - std::min<size_t>(edge, 42); length < edge + 42; ++length) ExpectTraffic(0, 1, length);
  }
}

TEST_F(HostTransportTest, AFrameThatASlotOrOneCellHoldsIsShownAndTakenAtOnce) {
  Make(2);
  ExpectTraffic(0, 1);
  for (int round = 0; round < 3 * static_cast<int>(RingPage::kSlots); ++round) {
    const std::vector<uint8_t> data = Data(static_cast<size_t>(round * 97) % host::kCellBytes, round);
    Request* send = at(0).Send(data, 1, 1);
    at(0).device.Flush();
    iovec pieces[2];
    const size_t count = at(1).link().lane()->Peek(pieces);
    ASSERT_EQ(count, data.size() <= 16 ? 1U : 2U);
    const auto* const first = static_cast<const uint8_t*>(pieces[0].iov_base);
    const auto header = FrameHeader::Parse(std::span<const uint8_t, FrameHeader::kLength>(first, FrameHeader::kLength));
    ASSERT_TRUE(header);
    ASSERT_EQ(header->length, data.size());
    std::vector<uint8_t> got(first + FrameHeader::kLength, first + pieces[0].iov_len);
    if (count == 2) got.insert(got.end(), static_cast<uint8_t*>(pieces[1].iov_base), static_cast<uint8_t*>(pieces[1].iov_base) + pieces[1].iov_len);
    ASSERT_EQ(got, data);
    ASSERT_TRUE(at(1).link().TakeAtOnce(header->credit, header->length));
    at(1).link().lane()->Taken();
    EXPECT_EQ(at(1).link().lane()->Peek(pieces), 0U);
    EXPECT_TRUE(send->complete);
    send->Release();
  }
  ExpectTraffic(0, 1);
}

TEST_F(HostTransportTest, AFrameInSeveralPiecesIsNotShownWhole) {
  Make(2);
  ExpectTraffic(0, 1);
  const std::vector<uint8_t> data = Data(20'000, 1);
  Request* send = at(0).Send(data, 1, 1);
  at(0).device.Flush();
  iovec pieces[2];
  const size_t count = at(1).link().lane()->Peek(pieces);
  size_t shown = 0;
  for (size_t i = 0; i < count; ++i) shown += pieces[i].iov_len;
  EXPECT_LT(shown, FrameHeader::kLength + data.size());
  std::vector<uint8_t> got(data.size());
  Request* receive = at(1).Receive(got, 0, 1);
  ASSERT_TRUE(PollUntil([&] { return receive->complete; }));
  EXPECT_EQ(got, data);
  receive->Release();
  send->Release();
}

TEST_F(HostTransportTest, WhoReadsNothingLeavesCellsToTheOthers) {
  constexpr int kRanks = 20;
  Make(kRanks);
  const std::vector<uint8_t> data = Data(20'000, 1);
  std::vector<Request*> sends;
  for (int rank = 2; rank < kRanks; ++rank) still_.insert(rank);
  for (int rank = 2; rank < kRanks; ++rank) {
    for (int i = 0; i < 30; ++i) sends.push_back(at(0).Send(data, rank, 1));
  }
  for (int i = 0; i < 100; ++i) PollOnce();
  ExpectTraffic(0, 1, 100'000);
  still_.clear();
  for (int rank = 2; rank < kRanks; ++rank) {
    for (int i = 0; i < 30; ++i) {
      std::vector<uint8_t> got(data.size());
      Request* receive = at(rank).Receive(got, 0, 1);
      ASSERT_TRUE(PollUntil([&] { return receive->complete; }));
      ASSERT_EQ(got, data);
      receive->Release();
    }
  }
  for (Request* send : sends) {
    ASSERT_TRUE(PollUntil([&] { return send->complete; }));
    send->Release();
  }
}

TEST_F(HostTransportTest, APeerThatWritesNonsenseIsADeadOne) {
  SilenceWarnings(true);
  for (const uint64_t control : {uint64_t{1} | 60ull << 32, uint64_t{1} | 1ull << 40, uint64_t{1} | 9ull << 40}) {
    Make(3);
    ExpectTraffic(0, 2);
    std::vector<uint8_t> got(10);
    Request* receive = at(0).Receive(got, 1, 1);
    at(0).device.ConnectToAwaited();
    Ring(1, 0).slots[0].bytes[40] = 0xff;  // no such cell
    Ring(1, 0).slots[0].control = control;
    ASSERT_TRUE(PollUntil([&] { return receive->complete; }));
    EXPECT_EQ(receive->error.mpi_class(), MPIX_ERR_PROC_FAILED);
    receive->Release();
    // Who wrote it hears of it, and the others go on.
    EXPECT_TRUE(PollUntil([&] { return at(1).engine.IsDead(0); }));
    ExpectTraffic(0, 2);
  }
}

TEST_F(HostTransportTest, APeerThatReadsWhatWasNotWrittenIsADeadOne) {
  SilenceWarnings(true);
  Make(2);
  ExpectTraffic(0, 1);
  Ring(0, 1).read = 1'000'000;
  const std::vector<uint8_t> data = Data(100'000, 1);
  Request* send = at(0).Send(data, 1, 1);
  EXPECT_TRUE(PollUntil([&] { return send->complete && at(0).engine.IsDead(1); }));
  send->Release();
}

// Another process takes back the number of a message of process 0 for 1, which then waits for ever. Only 0 can tell, and it sleeps for something else.
TEST_F(HostTransportTest, ASleepEndsIfWordsOfThisProcessAreOverwritten) {
  SilenceWarnings(true);
  Make(3);
  ExpectTraffic(0, 1);
  ExpectTraffic(0, 2);
  std::vector<uint8_t> got(10), other(10);
  Request* unread = at(1).Receive(got, 0, 5);
  Request* receive = at(0).Receive(other, 2, 5);
  EXPECT_EQ(host::OwnWords::FindOverwritten(), "");
  Request* send = at(0).Send(got, 1, 5);
  host::RingSlot& slot = *std::max_element(std::begin(Ring(0, 1).slots), std::end(Ring(0, 1).slots),
                                          [](const auto& a, const auto& b) { return static_cast<uint32_t>(a.control) < static_cast<uint32_t>(b.control); });
  slot.control -= RingPage::kSlots;
  while (!receive->complete) at(0).device.Sleep(600'000);
  EXPECT_EQ(receive->error.mpi_class(), MPIX_ERR_PROC_FAILED);
  EXPECT_TRUE(PollUntil([&] { return unread->complete; }));
  EXPECT_EQ(unread->error.mpi_class(), MPIX_ERR_PROC_FAILED);
  // 2 has it from the card of 0, and nobody is connected to 0 again.
  EXPECT_TRUE(PollUntil([&] { return at(2).engine.IsDead(0); }));
  EXPECT_TRUE(at(0).engine.IsDead(1));
  ExpectTraffic(1, 2);
  for (Request* request : {unread, receive, send}) request->Release();
}

// A rank that waits for it in a window or in a collective has perhaps no connection with it.
TEST_F(HostTransportTest, ARankWhoseWordsAreOverwrittenIsGoneForThoseThatNeverHeardOfIt) {
  SilenceWarnings(true);
  Make(3);
  ExpectTraffic(0, 1);
  ExpectTraffic(1, 2);
  std::vector<uint8_t> got(10), other(10);
  Request* receive = at(0).Receive(other, 1, 5);
  Request* send = at(0).Send(got, 1, 5);
  EXPECT_FALSE(at(2).engine.IsDead(0));
  host::RingSlot& slot = *std::max_element(std::begin(Ring(0, 1).slots), std::end(Ring(0, 1).slots),
                                          [](const auto& a, const auto& b) { return static_cast<uint32_t>(a.control) < static_cast<uint32_t>(b.control); });
  slot.control -= RingPage::kSlots;
  while (!receive->complete) at(0).device.Sleep(600'000);
  EXPECT_TRUE(PollUntil([&] { return at(2).engine.IsDead(0); }));
  EXPECT_FALSE(at(2).engine.IsDead(1));
  for (Request* request : {receive, send}) request->Release();
}

TEST_F(HostTransportTest, WhoEndsTellsThoseThatConnectedAndNobodyElse) {
  Make(4);
  ExpectTraffic(0, 1);
  const std::vector<uint8_t> sent = Data(10, 3);
  Request* send = at(2).Send(sent, 0, 1);  // a caller that 0 has not looked at
  const auto is_told = [&](int rank) { return segment(0).attention_of(rank) & host::kKnock; };
  ASSERT_FALSE(is_told(1) || is_told(2) || is_told(3));
  peers_[0].reset();
  EXPECT_TRUE(is_told(1));
  EXPECT_TRUE(is_told(2));
  EXPECT_FALSE(is_told(3));
  for (const int rank : {1, 2}) EXPECT_TRUE(PollUntil([&] { return at(rank).engine.IsDead(0); }));
  send->Release();
}

TEST_F(HostTransportTest, WhoConnectsWhileTheOtherEndsHearsOfIt) {
  for (int round = 0; round < 200; ++round) {
    peers_.clear();
    Make(2);
    std::thread ends([&] { peers_[0].reset(); });
    at(1).device.ConnectTo(0);
    ends.join();
    ASSERT_TRUE(PollUntil([&] { return at(1).engine.LinkTo(0).is_gone(); })) << "round " << round;
  }
}

TEST_F(HostTransportTest, WhoEndsInOrderLeavesWhatItSentToBeRead) {
  Make(3);
  ExpectTraffic(0, 1);
  const std::vector<uint8_t> sent = Data(50'000, 3);
  Request* send = at(0).Send(sent, 1, 1);
  ASSERT_TRUE(send->complete);
  still_.insert(1);
  at(0).device.Stop(std::chrono::milliseconds(20));
  peers_[0].reset();
  still_.clear();
  std::vector<uint8_t> got(sent.size());
  Request* receive = at(1).Receive(got, 0, 1);
  ASSERT_TRUE(PollUntil([&] { return receive->complete; }));
  EXPECT_EQ(got, sent);
  EXPECT_TRUE(PollUntil([&] { return at(1).engine.LinkTo(0).state() == Link::State::kLeft; }));
  // Who never talked to it finds that it has left.
  Request* late = at(2).Receive(got, 0, 1);
  at(2).device.ConnectToAwaited();
  ASSERT_TRUE(PollUntil([&] { return late->complete; }));
  EXPECT_NE(late->error.message().find("MPI_Finalize"), std::string::npos) << late->error.message();
  send->Release();
  receive->Release();
  late->Release();
}

// A rank of another process: it joins, connects, and dies.
TEST_F(HostTransportTest, TheDeathOfAProcessEndsASleep) {
  const std::vector<int> ranks = {0, 1};
  std::string why;
  const auto segment = Segment::Create(ranks, 0, &why);
  ASSERT_NE(segment, nullptr) << why;
  int gate[2];
  ASSERT_EQ(pipe(gate), 0);
  const pid_t child = fork();
  if (child == 0) {
    Descriptor memory(fcntl(segment->memory_descriptor(), F_DUPFD_CLOEXEC, 0));
    const auto own = Segment::Join(std::move(memory), ranks, 1, &why);
    if (own == nullptr) _exit(1);
    own->Settle();
    Engine engine(1, {});
    Device device(engine);
    device.Add(std::make_unique<host::HostTransport>(*own, engine, device.loop(), 1));
    if (!device.Start().ok() || write(gate[1], "x", 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char byte;
  ASSERT_EQ(read(gate[0], &byte, 1), 1);
  segment->Settle();
  Process process(0, {}, 2);
  Device device(process.engine);
  device.Add(std::make_unique<host::HostTransport>(*segment, process.engine, device.loop(), 1));
  ASSERT_TRUE(device.Start().ok());
  std::vector<uint8_t> got(10);
  Request* receive = process.Receive(got, 1, 1);
  device.ConnectToAwaited();
  ASSERT_EQ(process.link().state(), Link::State::kOpen);
  kill(child, SIGKILL);
  while (!receive->complete) {
    device.Sleep(600'000);
    device.Poll();
  }
  EXPECT_TRUE(process.engine.IsDead(1));
  EXPECT_EQ(receive->error.mpi_class(), MPIX_ERR_PROC_FAILED);
  receive->Release();
  waitpid(child, nullptr, 0);
  close(gate[0]);
  close(gate[1]);
}

// Where other threads may want the library's lock.
class HostThreadsTest : public HostTransportTest {
 protected:
  static constexpr size_t kParts = 5;
  static void SetUpTestSuite() { LibraryLock::EnableThreads(); }  // this one has it from here on
  // Process 1 has begun to copy what 0 sends to it, and has the first of five parts.
  void BeginLongCopy() {
    Make(2);
    ExpectTraffic(0, 1);
    data_ = Data(kParts * LibraryLock::kMostCopied, 1);
    got_.resize(data_.size());
    send_ = at(0).Send(data_, 1, 1);
    receive_ = at(1).Receive(got_, 0, 1);
    const uint64_t before = g_counters.host_copies;
    while (g_counters.host_copies == before) at(1).device.Poll();
    ASSERT_EQ(g_counters.host_copies, before + 1);
    ASSERT_EQ(got_[0], data_[0]);
  }
  void Release() {
    send_->Release();
    receive_->Release();
  }

  std::vector<uint8_t> data_, got_;
  Request* send_ = nullptr;
  Request* receive_ = nullptr;
};

// The sender does not see that the receiver sleeps: another process took the word back.
TEST_F(HostThreadsTest, ASleepThatNobodyRingsForEndsAllTheSame) {
  Make(2);
  ExpectTraffic(0, 1);
  got_.resize(10);
  data_ = Data(10, 1);
  receive_ = at(0).Receive(got_, 1, 5);
  std::thread sender([&] {
    while ((segment(1).attention_of(0).fetch_and(~uint32_t{host::Slot::kAsleep}) & host::Slot::kAsleep) == 0) std::this_thread::yield();
    LibraryLock::Acquire();
    send_ = at(1).Send(data_, 0, 5);
    LibraryLock::Release();
  });
  while (!receive_->complete) at(0).device.Sleep(600'000);
  sender.join();
  EXPECT_EQ(got_, data_);
  Release();
}

TEST_F(HostThreadsTest, ALongCopyIsMadeInPartsBetweenWhichOtherMessagesArrive) {
  BeginLongCopy();
  const std::vector<uint8_t> little = Data(20, 2);
  std::vector<uint8_t> got_little(little.size());
  Request* const receive = at(1).Receive(got_little, 0, 2);
  Request* const send = at(0).Send(little, 1, 2);
  ASSERT_TRUE(at(1).device.Poll());
  EXPECT_TRUE(receive->complete);
  EXPECT_EQ(got_little, little);
  EXPECT_FALSE(receive_->complete);
  EXPECT_EQ(got_.back(), 0);
  ASSERT_TRUE(PollUntil([&] { return receive_->complete && send_->complete && send->complete; }));
  EXPECT_EQ(got_, data_);
  EXPECT_FALSE(at(1).engine.has_fetches());
  for (Request* request : {receive, send}) request->Release();
  Release();
}

TEST_F(HostThreadsTest, TheDeathOfTheSenderEndsALongCopy) {
  BeginLongCopy();
  at(1).engine.OnGone(0, /*left=*/false);
  ASSERT_TRUE(receive_->complete);
  EXPECT_EQ(receive_->error.mpi_class(), MPIX_ERR_PROC_FAILED) << receive_->error.message();
  EXPECT_FALSE(at(1).engine.has_fetches());
  const std::vector<uint8_t> after = got_;
  at(1).device.Poll();
  EXPECT_EQ(got_, after);
  at(0).engine.OnGone(1, /*left=*/false);
  ASSERT_TRUE(send_->complete);
  Release();
}

TEST_F(HostThreadsTest, ALongCopyThatIsNotAllowedAnyMoreBeginsAgainThroughTheRings) {
  BeginLongCopy();
  std::thread([&] {
    ASSERT_TRUE(ForbidReadingProcesses());
    ASSERT_TRUE(PollUntil([&] { return receive_->complete && send_->complete; }));
  }).join();
  EXPECT_TRUE(receive_->error.ok()) << receive_->error.message();
  EXPECT_EQ(got_, data_);
  Release();
}

TEST_F(HostThreadsTest, AnOrderlyEndWaitsForALongCopyWhoseRequestWasFreed) {
  BeginLongCopy();
  receive_->Release();
  at(1).device.Stop(std::chrono::milliseconds(1));
  EXPECT_EQ(got_, data_);
  ASSERT_TRUE(PollUntil([&] { return send_->complete; }));
  EXPECT_TRUE(send_->error.ok()) << send_->error.message();
  send_->Release();
}

}  // namespace
}  // namespace weft::mpi::testing
