// Two engines that IMPI's protocol connects: what every carrier of messages must do, and what is particular here.
#include "mpi_hybrid/p2p/impi/impi_link.h"

#include <gtest/gtest.h>

#include <array>
#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "mpi_hybrid/p2p/testing/message_suite.h"
#include "mpi_hybrid/p2p/testing/process.h"

namespace weft::mpi::testing {
namespace {

constexpr uint32_t kDataLength = 400;  // above the eager limit, and below what the tests send

// One communicator, with contexts 8 and 9 here and others on the wire, which both processes may learn of later.
class OneCommunicator final : public ImpiContexts {
 public:
  static constexpr uint64_t kOnWire = uint64_t{1} << 40;

  std::optional<uint64_t> OnWire(uint32_t context) const override {
    if (context != 8 && context != 9) return std::nullopt;
    return kOnWire + context - 8;
  }
  std::optional<uint32_t> Here(uint64_t context) const override {
    if (!known || (context != kOnWire && context != kOnWire + 1)) return std::nullopt;
    return static_cast<uint32_t>(context - kOnWire) + 8;
  }
  bool HasRank(uint32_t, int32_t rank, ProcessId process) const override { return rank == process; }

  bool known = true;
};

impi::ProcessName NameOf(int rank) {
  impi::ProcessName name;
  name.host = impi::HostIdOfIpv4(static_cast<uint32_t>(rank + 1));
  name.number = 100 + rank;
  return name;
}

struct Member : Process {
  Member(int rank, const EngineLimits& limits, const impi::FlowLimits& flow)
      : Process(rank, limits),
        endpoint(NameOf(rank), {.data_length = kDataLength, .tag = 1000}),
        impi(link(), endpoint, endpoint.AddPeer(NameOf(1 - rank), impi::Peer::kStandard, flow), contexts) {
    link().OpenForeign(limits.window);
  }

  OneCommunicator contexts;
  impi::Endpoint endpoint;
  ImpiLink impi;
};

// The job for MessageSuite. Packets stay in order, and arrive at any time.
class ImpiPair {
 public:
  explicit ImpiPair(const EngineLimits& limits, unsigned seed = 1)
      : random(seed), flow_{.ack_mark = 1 + seed % 3, .high_water = 3 + seed % 4, .store = 1 << 20}, members_{{0, limits, flow_}, {1, limits, flow_}} {}

  void Step(size_t /*most*/) { Move(random() % 2, random() % 2 == 0); }
  void Settle(size_t /*most*/ = 0) {
    while (Move(0, false) | Move(0, true) | Move(1, false) | Move(1, true)) {
    }
  }
  Member& member(int rank) { return members_[rank]; }

  std::vector<impi::PacketType> types;                  // of all packets that were sent
  std::optional<impi::PacketError> wrong;               // what a process said about a packet
  std::function<void(std::vector<uint8_t>&)> falsify;   // a packet on its way

 private:
  bool Move(size_t rank, bool in) {
    Member& member = members_[rank];
    member.impi.Collect();
    if (in) {
      std::deque<std::vector<uint8_t>>& packets = on_the_way_[rank];
      if (packets.empty() || wrong) return false;
      const std::vector<uint8_t> packet = std::move(packets.front());
      packets.pop_front();
      const std::span<const uint8_t> bytes(packet);
      wrong = member.impi.OnPacket(bytes.first<impi::Packet::kSize>(), bytes.subspan(impi::Packet::kSize));
      return true;
    }
    const auto next = member.impi.Next();
    if (!next) return false;
    std::vector<uint8_t> packet(next->packet.header.begin(), next->packet.header.end());
    packet.insert(packet.end(), next->data.begin(), next->data.end());
    types.push_back(next->packet.type);
    member.impi.Sent(next->packet);
    if (falsify) falsify(packet);
    on_the_way_[1 - rank].push_back(std::move(packet));
    return true;
  }

 public:
  std::mt19937 random;

 private:
  const impi::FlowLimits flow_;
  Member members_[2];
  std::deque<std::vector<uint8_t>> on_the_way_[2];  // to each

 public:
  Process &a = members_[0], &b = members_[1];
};

INSTANTIATE_TYPED_TEST_SUITE_P(Impi, MessageSuite, ImpiPair);

class ImpiLinkTest : public ::testing::Test {
 protected:
  // Whether a request is complete, and its error, if any, is `why`.
  static void ExpectDone(Request* request) {
    EXPECT_TRUE(request->complete);
    EXPECT_TRUE(request->error.ok()) << request->error.message();
    request->Release();
  }
  static size_t CountOf(const ImpiPair& pair, impi::PacketType type) {
    return static_cast<size_t>(std::count(pair.types.begin(), pair.types.end(), type));
  }

  const std::vector<uint8_t> short_ = Data(100, 1), long_ = Data(1000, 2);
};

TEST_F(ImpiLinkTest, AShortMessageIsOnePacketAndALongOneWaitsForItsReceive) {
  ImpiPair pair(kSmall);
  Request* const first = pair.a.Send(short_, 1);
  pair.Settle();
  EXPECT_EQ(pair.types, (std::vector{impi::PacketType::kData}));
  EXPECT_TRUE(first->complete);
  Request* const second = pair.a.Send(long_, 1);
  pair.Settle();
  EXPECT_EQ(CountOf(pair, impi::PacketType::kDataSync), 1U);
  EXPECT_FALSE(second->complete);
  std::vector<uint8_t> got(100), got_long(1000);
  Request* const receives[] = {pair.b.Receive(got, 0, 1), pair.b.Receive(got_long, 0, 1)};
  pair.Settle();
  for (Request* request : {first, second, receives[0], receives[1]}) ExpectDone(request);
  EXPECT_EQ(got, short_);
  EXPECT_EQ(got_long, long_);
  EXPECT_EQ(CountOf(pair, impi::PacketType::kSyncAck), 1U);
  EXPECT_EQ(CountOf(pair, impi::PacketType::kData), 1U + 2U);
}

TEST_F(ImpiLinkTest, AShortMessageDoesNotWaitForALongOneThatNobodyReceives) {
  ImpiPair pair(kSmall);
  Request* const blocked = pair.a.Send(long_, 1);
  Request* const other = pair.a.Send(short_, 2);
  std::vector<uint8_t> got(100), got_long(1000);
  Request* const receive = pair.b.Receive(got, 0, 2);
  pair.Settle();
  ExpectDone(receive);
  ExpectDone(other);
  EXPECT_FALSE(blocked->complete);
  Request* const last = pair.b.Receive(got_long, 0, 1);
  pair.Settle();
  ExpectDone(last);
  ExpectDone(blocked);
  EXPECT_EQ(got_long, long_);
}

TEST_F(ImpiLinkTest, OnlyWhatNobodyHasReceivedIsCancelled) {
  for (const bool matched : {false, true}) {
    for (const auto* data : {&short_, &long_}) {
      ImpiPair pair(kSmall);
      std::vector<uint8_t> got(1000);
      Request* const send = pair.a.Send(*data, 1, SendMode::kSynchronous);
      pair.Settle();
      Request* receive = matched ? pair.b.Receive(got, 0, 1) : nullptr;  // which the sender does not know yet
      EXPECT_TRUE(send->Cancel().ok());
      pair.Settle();
      ASSERT_TRUE(send->complete);
      EXPECT_EQ(send->status.count_hi_and_cancelled & 1, matched ? 0 : 1);
      EXPECT_EQ(CountOf(pair, matched ? impi::PacketType::kCancelNo : impi::PacketType::kCancelYes), 1U);
      send->Release();
      // The next message is not taken for it.
      Request* const next = pair.a.Send(short_, 1);
      if (!matched) receive = pair.b.Receive(got, 0, 1);
      pair.Settle();
      EXPECT_EQ(GetCount(receive->status), static_cast<MPI_Count>(matched ? data->size() : short_.size()));
      ExpectDone(receive);
      ExpectDone(next);
    }
  }
}

TEST_F(ImpiLinkTest, WhatAMatchedProbeHasTakenIsNotCancelled) {
  for (const auto* data : {&short_, &long_}) {
    ImpiPair pair(kSmall);
    Request* const send = pair.a.Send(*data, 1, SendMode::kSynchronous);
    pair.Settle();
    Message* const message = pair.b.engine.FindMessage(0, 1, *pair.b.comm);
    ASSERT_NE(message, nullptr);
    pair.b.engine.TakeOut(*message);
    EXPECT_TRUE(send->Cancel().ok());
    pair.Settle();
    EXPECT_FALSE(send->complete);
    EXPECT_EQ(CountOf(pair, impi::PacketType::kCancelNo), 1U);
    std::vector<uint8_t> got(data->size());
    Request* receive = nullptr;
    ASSERT_TRUE(pair.b.engine.ReceiveTaken(got.data(), static_cast<MPI_Aint>(got.size()), Byte(), *message, pair.b.comm.get(), &receive).ok());
    pair.Settle();
    EXPECT_EQ(send->status.count_hi_and_cancelled & 1, 0);
    ExpectDone(send);
    ExpectDone(receive);
    EXPECT_EQ(got, *data);
  }
}

TEST_F(ImpiLinkTest, MessagesOfARevokedCommunicatorAreOverAndCannotBeCancelledAnyMore) {
  ImpiPair pair(kSmall);
  Request* const sends[] = {pair.a.Send(short_, 1, SendMode::kSynchronous), pair.a.Send(long_, 1)};
  pair.Settle();
  pair.b.engine.Revoke(*pair.b.comm);
  for (Request* send : sends) EXPECT_TRUE(send->Cancel().ok());
  pair.Settle();
  EXPECT_FALSE(pair.wrong.has_value());
  EXPECT_EQ(pair.member(1).endpoint.messages(), 0U);
  for (Request* send : sends) ExpectDone(send);
}

TEST_F(ImpiLinkTest, MessagesOfACommunicatorThatThisProcessHasNotYetWaitForIt) {
  ImpiPair pair(kSmall);
  pair.member(1).contexts.known = false;
  std::vector<uint8_t> got(100), got_long(1000);
  Request* const sends[] = {pair.a.Send(long_, 1), pair.a.Send(short_, 1), pair.a.Send(long_, 1, SendMode::kSynchronous)};
  pair.Settle();
  EXPECT_EQ(pair.b.engine.unexpected(), 0U);
  EXPECT_TRUE(sends[2]->Cancel().ok());
  pair.Settle();
  pair.member(1).contexts.known = true;
  pair.member(1).impi.OnNewContext();
  EXPECT_EQ(pair.b.engine.unexpected(), 2U);
  Request* const receives[] = {pair.b.Receive(got_long, 0, 1), pair.b.Receive(got, 0, 1)};
  pair.Settle();
  for (Request* request : {sends[0], sends[1], sends[2], receives[0], receives[1]}) ExpectDone(request);
  EXPECT_EQ(got, short_);
  EXPECT_EQ(got_long, long_);
}

TEST_F(ImpiLinkTest, ARankThatIsNotTheSendersIsAnError) {
  ImpiPair pair(kSmall);
  pair.falsify = [](std::vector<uint8_t>& packet) { packet[0x53] = 1; };  // pk_lsrank
  Request* const send = pair.a.Send(short_, 1);
  pair.Settle();
  ASSERT_TRUE(pair.wrong.has_value());
  EXPECT_EQ(pair.wrong->field, "pk_lsrank");
  EXPECT_NE(pair.wrong->text.find(impi::TextOf(NameOf(0)) + " sent DATA: pk_lsrank is 1"), std::string::npos) << pair.wrong->text;
  send->Release();
}

TEST_F(ImpiLinkTest, AProcessLeavesWhenAllThatItSentIsOut) {
  ImpiPair pair(kSmall);
  Request* const sends[] = {pair.a.Send(short_, 1), pair.a.Send(long_, 1)};
  pair.a.link().SendControl({.kind = FrameKind::kGoodbye});
  pair.member(0).impi.Collect();
  EXPECT_FALSE(pair.member(0).impi.leaving());
  std::vector<uint8_t> got(100), got_long(1000), never(1);
  Request* const receives[] = {pair.b.Receive(got, 0, 1), pair.b.Receive(got_long, 0, 1)};
  Request* const in_vain = pair.b.Receive(never, 0, 1);
  pair.Settle();
  EXPECT_TRUE(pair.member(0).impi.leaving());
  EXPECT_FALSE(in_vain->complete);
  pair.member(1).impi.OnFini();
  EXPECT_TRUE(in_vain->complete);
  EXPECT_FALSE(pair.b.engine.IsDead(0));
  in_vain->Release();
  for (Request* request : {sends[0], sends[1], receives[0], receives[1]}) ExpectDone(request);
}

TEST_F(ImpiLinkTest, APeerThatReceivesNothingStopsTheSenderAndLaterAllArrives) {
  ImpiPair pair(kSmall);
  std::vector<Request*> requests;
  for (int i = 0; i < 300; ++i) requests.push_back(pair.a.Send(short_, 1));
  pair.Settle();
  std::vector<uint8_t> got(100);
  for (int i = 0; i < 300; ++i) {
    Request* const receive = pair.b.Receive(got, 0, 1);
    pair.Settle();
    ASSERT_TRUE(receive->complete) << i;
    ASSERT_EQ(got, short_);
    receive->Release();
  }
  for (Request* request : requests) ExpectDone(request);
  EXPECT_TRUE(pair.a.link().HasCredit(static_cast<int64_t>(kSmall.window)));
}

}  // namespace
}  // namespace weft::mpi::testing
