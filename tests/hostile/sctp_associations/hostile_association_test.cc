// A process at the other end of a real SCTP association, that does what it likes there: it sends what RFC 5043 does not know, leaves a gap for
// ever, floods every stream, never acknowledges, or forgets everything. Its own sessions end; those of others never notice, and memory has a bound.
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ddp/sctp/chunk.h"
#include "ddp/sctp/testing/end.h"
#include "tests/stack/sctp/two_hosts.h"
#include "wires/sctp/association/association.h"

namespace weft::sim {
namespace {

using std::chrono_literals::operator""s;
using ddp::sctp::testing::Bytes;
using ddp::sctp::testing::Make;
using ddp::sctp::testing::Message;
using ddp::sctp::testing::Segment;
using testing::Program;
using transport::sctp::Recorder;
using Kind = ddp::sctp::Chunk::Kind;

class HostileAssociation : public testing::TwoSctpHosts {
 protected:
  void SetUp() override {
    TwoSctpHosts::SetUp();
    Listen();
    ASSERT_TRUE(ConnectBoth(bystander_, bystanders_peer_));
    stranger_ = Bare(client_host_, ddp::sctp::kAdaptationIndication, kStrangersPort);
  }
  void TearDown() override {
    ExpectWorks(bystander_, bystanders_peer_);
    Program client(*client_host_.rnic), server(*server_host_.rnic);
    ASSERT_TRUE(ConnectBoth(client, server)) << "the listener takes no more";
    ExpectWorks(client, server);
  }

  void Say(const Message& message) { stranger_->Queue(message.stream, message.ppid, message.bytes, /*unordered=*/true); }

  // A session of the stranger's with a queue pair of the server's.
  std::unique_ptr<Program> OpenSession(uint16_t stream) {
    Say(Make(stream, Kind::kInitiate, 0));
    CmEvent request = Next(*server_);
    WEFT_CHECK(request.kind == CmEvent::Kind::kConnectRequest);
    auto program = std::make_unique<Program>(*server_host_.rnic);
    request.endpoint->SetObserver(program->cm);
    program->endpoint = request.endpoint;
    WEFT_CHECK(request.endpoint->Accept(program->qp.handle(), {.ird = 2, .ord = 9}) == 0);
    EXPECT_EQ(Next(*program).kind, CmEvent::Kind::kEstablished);
    return program;
  }

  std::vector<std::string> Heard(uint16_t stream) const {
    std::vector<std::string> all;
    for (const Recorder::Message& message : stranger_->messages) {
      if (message.info.stream == stream) all.push_back(Message{stream, message.info.ppid, message.bytes}.ToString());
    }
    return all;
  }
  bool Lives(Program& program) const { return program.cm->events.empty(); }

  // At the far end of which is nobody who looks.
  int PostWrite(Program& program, const Bytes& from, const RegionInfo& source, uint64_t to = 0x1000, uint32_t rkey = 1) {
    ibv_sge piece{reinterpret_cast<uint64_t>(from.data()), static_cast<uint32_t>(from.size()), source.stag.value};
    ibv_send_wr write{}, *bad = nullptr;
    write.opcode = IBV_WR_RDMA_WRITE;
    write.sg_list = &piece;
    write.num_sge = 1;
    write.wr.rdma.remote_addr = to;
    write.wr.rdma.rkey = rkey;
    return program.qp.qp->PostSend(&write, &bad);
  }
  void ExpectWorks(Program& client, Program& server) {
    Bytes from(100'000), to(from.size());
    std::iota(from.begin(), from.end(), 1);
    const RegionInfo source = client.Register(from.data(), from.size()), target = server.Register(to.data(), to.size());
    ASSERT_EQ(PostWrite(client, from, source, reinterpret_cast<uint64_t>(to.data()), target.stag.value), 0);
    EXPECT_TRUE(world_.network().RunUntil([&] { return to == from; }, 60s));
    world_.network().RunFor(1s);
  }

  static constexpr uint16_t kStrangersPort = 4000;
  Program bystander_{*client_host_.rnic}, bystanders_peer_{*server_host_.rnic};
  std::shared_ptr<Recorder> stranger_;
};

TEST_F(HostileAssociation, AnUnknownPayloadProtocolEndsItsSessionAndLeavesTheOneBeside) {
  const auto good = OpenSession(0), bad = OpenSession(1);
  Say({.stream = 1, .ppid = 4711, .bytes = Bytes(100, 7)});
  EXPECT_EQ(Next(*bad).kind, CmEvent::Kind::kDisconnected);
  world_.network().RunFor(5s);
  EXPECT_TRUE(Lives(*good));
  EXPECT_EQ(Heard(1).back().find("1: DDP Terminate"), 0u) << Heard(1).back();
  const Bytes from(1000, 1);
  ASSERT_EQ(PostWrite(*good, from, good->Register(const_cast<uint8_t*>(from.data()), from.size())), 0);
  world_.network().RunFor(1s);
  EXPECT_NE(Heard(0).back().find("DDP Segment"), std::string::npos) << Heard(0).back();
}

TEST_F(HostileAssociation, AGapThatNeverFillsEndsItsSessionAfterAMinute) {
  const auto good = OpenSession(0), bad = OpenSession(1);
  for (uint16_t ssn = 2; ssn < 100; ++ssn) Say(Segment(1, ssn, Bytes(1000, 1)));
  world_.network().RunFor(sctp::kGapLimit - 2s);
  EXPECT_TRUE(Lives(*bad)) << "a message may be long on its way";
  world_.network().RunFor(4s);
  EXPECT_EQ(Next(*bad, 1s).kind, CmEvent::Kind::kDisconnected);
  EXPECT_TRUE(Lives(*good));
}

TEST_F(HostileAssociation, WhatIsHeldForAGapCountsForAllAssociations) {
  const auto session = OpenSession(0);
  const size_t before = sctp::HeldInProcess();
  for (uint16_t ssn = 2; ssn < 100; ++ssn) Say(Segment(0, ssn, Bytes(1000, 1)));
  world_.network().RunFor(1s);
  EXPECT_GE(sctp::HeldInProcess(), before + 98'000);
  stranger_->association.reset();
  EXPECT_EQ(Next(*session).kind, CmEvent::Kind::kDisconnected);
  world_.network().RunFor(1s);
  EXPECT_EQ(sctp::HeldInProcess(), before);
}

TEST_F(HostileAssociation, WhoForgetsEverythingLosesHisSessionsAndMayAskAgain) {
  const auto first = OpenSession(0), second = OpenSession(1);
  // Switched off and on again: no word of it reaches the server.
  world_.network().SetDefaultLink({.lose_datagram = 1});
  stranger_->association.reset();
  world_.network().RunFor(std::chrono::milliseconds(1));
  world_.network().SetDefaultLink(LinkFaults());
  stranger_ = Bare(client_host_, ddp::sctp::kAdaptationIndication, kStrangersPort);
  EXPECT_EQ(Next(*first).kind, CmEvent::Kind::kDisconnected);
  EXPECT_EQ(Next(*second).kind, CmEvent::Kind::kDisconnected);
  // On a stream on which a session was: it begins at its beginning.
  const auto again = OpenSession(1);
  world_.network().RunFor(1s);
  EXPECT_TRUE(Lives(*again));
  EXPECT_EQ(Heard(1), std::vector<std::string>{"1: DDP Accept SSN=0 private data=0"});
}

TEST_F(HostileAssociation, WhoComesBackWithoutDdpsIndicationIsAborted) {
  const auto session = OpenSession(0);
  world_.network().SetDefaultLink({.lose_datagram = 1});
  stranger_->association.reset();
  world_.network().RunFor(std::chrono::milliseconds(1));
  world_.network().SetDefaultLink(LinkFaults());
  stranger_ = Bare(client_host_, 7, kStrangersPort);
  EXPECT_EQ(Next(*session).kind, CmEvent::Kind::kDisconnected);
  world_.network().RunFor(1s);
  EXPECT_EQ(stranger_->error, ECONNRESET);
}

TEST_F(HostileAssociation, AFloodOnEveryStreamOfOneWhoNeverReadsHasABound) {
  const auto session = OpenSession(0);
  world_.network().RunFor(1s);
  stranger_->association->SetReading(false);
  std::mt19937_64 random(seed_);
  const size_t before = mallinfo2().uordblks;
  size_t most = before;
  for (int burst = 0; burst < 200; ++burst) {
    for (int i = 0; i < 100; ++i) {
      const auto stream = static_cast<uint16_t>(random() % *settings_.sctp.streams);
      const auto ssn = static_cast<uint16_t>(random() % 5 == 0 ? random() : 0);
      const auto kind = static_cast<Kind>(random() % 5);
      Message message = Make(stream, kind, ssn, Bytes(random() % 600, 1));
      if (random() % 10 == 0) message.ppid = static_cast<uint32_t>(random());
      Say(message);
    }
    world_.network().RunFor(std::chrono::milliseconds(50));
    stranger_->waiting.erase(stranger_->waiting.begin(), stranger_->waiting.begin() + static_cast<ptrdiff_t>(std::exchange(stranger_->next, 0)));
    while (!server_->cm->events.empty()) server_->cm->Wait().endpoint->Reject({}, CmEvent::Reason::kConsumerDefined);
    most = std::max(most, mallinfo2().uordblks);
  }
  EXPECT_LT(most - before, size_t{16} << 20) << most - before;
  RecordProperty("most_bytes", std::to_string(most - before));
}

TEST_F(HostileAssociation, WhoAnswersEveryQuestionAndNeverAcknowledgesIsGivenUp) {
  const auto session = OpenSession(0);
  world_.network().RunFor(1s);
  constexpr size_t kType = 12;  // of the first chunk
  uint64_t sacks = 0, answers = 0;
  world_.network().SetDatagramChange([&](std::vector<uint8_t>& bytes) {
    if (bytes.size() <= kType || bytes[0] != kStrangersPort >> 8 || bytes[1] != (kStrangersPort & 255)) return;
    if (bytes[kType] == 3) ++sacks, bytes[kType + 1] ^= 1;  // the checksum is wrong then
    if (bytes[kType] == 5) ++answers;
  });
  Bytes from(100'000, 1);
  const RegionInfo source = session->Register(from.data(), from.size());
  while (PostWrite(*session, from, source) == 0) {
  }
  world_.network().RunFor(sctp::kSilenceLimit - 2s);
  EXPECT_TRUE(Lives(*session));
  EXPECT_EQ(Next(*session, 10s).kind, CmEvent::Kind::kDisconnected);
  world_.network().SetDatagramChange(nullptr);
  EXPECT_GT(sacks, 0u);
  EXPECT_GT(answers, 0u);
}

TEST_F(HostileAssociation, WhoHasNoRoomIsWaitedFor) {
  const auto session = OpenSession(0);
  world_.network().RunFor(1s);
  stranger_->association->SetReading(false);
  Bytes from(1'000'000, 1);
  const RegionInfo source = session->Register(from.data(), from.size());
  while (PostWrite(*session, from, source) == 0) {
  }
  world_.network().RunFor(5 * sctp::kSilenceLimit);
  EXPECT_TRUE(Lives(*session));
  const size_t before = stranger_->messages.size();
  stranger_->association->SetReading(true);
  world_.network().RunFor(5s);
  EXPECT_TRUE(Lives(*session));
  EXPECT_GT(stranger_->messages.size(), before + 1000);
}

}  // namespace
}  // namespace weft::sim
