// Strangers who never finish MPA start-up, finish it and stay or leave unanswered, or say what is not so.
#include <algorithm>

#include "tests/hostile/listeners/hosts.h"

namespace weft::hostile {
namespace {

using sim::CmEvent;

constexpr size_t kMoreThanThereIsRoomFor = 2100;

class StartUp : public Hosts {
 protected:
  // A client whose request `server` has accepted, and that has not sent its first message.
  std::unique_ptr<Stranger> ConnectTo(sim::testing::Program& server) {
    auto client = Connect(Listen(8));
    client->Send(Request());
    Pass(1ms);
    server.endpoint = told_->Wait().endpoint;
    server.endpoint->SetObserver(server.cm);
    EXPECT_EQ(server.endpoint->Accept(server.qp.handle(), {.ird = 1, .ord = 1}), 0);
    return client;
  }
  static void ExpectDisconnected(const sim::testing::Program& server) {
    ASSERT_EQ(server.cm->events.size(), 1u);
    EXPECT_EQ(server.cm->events.front().kind, CmEvent::Kind::kDisconnected);
  }
};

TEST_F(StartUp, SilentStrangersGiveWayToAClient) {
  const uint16_t port = Listen(8);
  auto silent = ConnectMany(kMoreThanThereIsRoomFor, port);
  Pass(10ms);
  EXPECT_TRUE(silent.front()->Ended()) << "the oldest has to go";
  EXPECT_FALSE(silent.back()->Ended());
  ASSERT_NO_FATAL_FAILURE(ExpectHonestClientConnects(port));
}

TEST_F(StartUp, AStrangerWhoStaysSilentIsGivenUp) {
  auto silent = Connect(Listen(8));
  Pass(5s);
  EXPECT_FALSE(silent->Ended());
  Pass(6s);
  EXPECT_TRUE(silent->Ended());
}

TEST_F(StartUp, UnansweredRequestsOfWhoLeftTakeNoPlace) {
  const uint16_t port = Listen(4);
  auto strangers = ConnectMany(100, port);
  for (const auto& stranger : strangers) stranger->Send(Request());
  Pass(10ms);
  EXPECT_EQ(told_->events.size(), 4u);
  for (const auto& stranger : strangers) stranger->Leave();
  Pass(10ms);
  for (const auto& stranger : strangers) EXPECT_TRUE(stranger->Ended()) << "its socket is still open";
  EXPECT_EQ(told_->events.size(), 4u) << "requests that are gone are not told";
  // The program looks at those it was told of and finds them gone.
  sim::testing::Program server(victim_);
  for (const auto& event : told_->events) EXPECT_NE(event.endpoint->Accept(server.qp.handle(), {}), 0);
  told_->events.clear();
  ASSERT_NO_FATAL_FAILURE(ExpectHonestClientConnects(port));
}

TEST_F(StartUp, ARequestThatComesAndGoesFillsNoQueueOfEvents) {
  const uint16_t port = Listen(4);
  for (int i = 0; i < 100; ++i) {
    auto stranger = Connect(port);
    stranger->Send(Request());
    Pass(1ms);
    stranger->Reset();
    Pass(1ms);
  }
  EXPECT_EQ(told_->events.size(), 4u);
}

// A program that fetches requests and neither answers nor destroys them: rping -s -P, where rdma_accept fails. Linux frees the place in the
// backlog when the event is fetched (drivers/infiniband/core/ucma.c, ucma_get_event).
TEST_F(StartUp, RequestsThatTheProgramHasTakeNoPlace) {
  for (const bool leaves : {false, true}) {
    SCOPED_TRACE(leaves);
    const uint16_t port = Listen(3);
    std::vector<std::unique_ptr<Stranger>> strangers;
    std::vector<std::shared_ptr<sim::Endpoint>> kept;
    for (int i = 0; i < 10; ++i) {
      strangers.push_back(Connect(port));
      strangers.back()->Send(Request());
      Pass(1ms);
      if (leaves) strangers.back()->Reset();
      Pass(1ms);
      ASSERT_EQ(told_->events.size(), 1u) << "request " << i << " did not reach the program";
      kept.push_back(Fetch());
    }
    ASSERT_NO_FATAL_FAILURE(ExpectHonestClientConnects(port));
    listener_->Close();
  }
}

TEST_F(StartUp, FetchingOneRequestLetsOneFollow) {
  const uint16_t port = Listen(2);
  auto strangers = ConnectMany(5, port);
  for (const auto& stranger : strangers) stranger->Send(Request());
  Pass(10ms);
  std::vector<std::shared_ptr<sim::Endpoint>> kept;
  for (size_t left : {2, 2, 2, 2, 1}) {
    ASSERT_EQ(told_->events.size(), left);
    kept.push_back(Fetch());
    kept.front()->SetObserver(told_);  // the second time it means nothing
  }
  EXPECT_TRUE(told_->events.empty());
}

TEST_F(StartUp, RequestsOfWhichTheProgramIsNotToldAreGivenUp) {
  const uint16_t port = Listen(1);
  auto first = Connect(port), second = Connect(port);
  first->Send(Request());
  Pass(1ms);
  second->Send(Request());
  Pass(59s);
  EXPECT_FALSE(second->Ended());
  Pass(2s);
  EXPECT_TRUE(second->Ended());
  EXPECT_FALSE(first->Ended()) << "the program may take its time";
}

TEST_F(StartUp, RequestsBeyondAllBoundsPushOutTheOldest) {
  const uint16_t port = Listen(1);
  constexpr size_t kCount = 4100;
  std::vector<std::unique_ptr<Stranger>> strangers;
  for (size_t i = 0; i < kCount; ++i) {
    strangers.push_back(Connect(port));
    strangers.back()->Send(Request());
  }
  Pass(10ms);
  EXPECT_FALSE(strangers[0]->Ended()) << "the program was told of it";
  EXPECT_TRUE(strangers[1]->Ended());
  EXPECT_FALSE(strangers.back()->Ended());
}

TEST_F(StartUp, BytesBehindAnUnansweredRequestEndTheConnection) {
  auto stranger = Connect(Listen(8));
  stranger->Send(Request());
  Pass(1ms);
  ASSERT_EQ(told_->events.size(), 1u);
  stranger->Send(Bytes(100, 0x55));
  Pass(10ms);
  EXPECT_TRUE(stranger->Ended());
  sim::testing::Program server(victim_);
  EXPECT_NE(told_->events.front().endpoint->Accept(server.qp.handle(), {}), 0);
}

// rping -s -P, and every server that lives on, exits at CONNECT_ERROR; Linux tells it of a connection that ended.
TEST_F(StartUp, AClientThatLeavesBeforeItsFirstMessageDisconnects) {
  sim::testing::Program server(victim_);
  const auto client = ConnectTo(server);
  Pass(1ms);
  EXPECT_TRUE(server.cm->events.empty()) << "not established before the client's first message";
  client->Leave();
  Pass(10ms);
  ExpectDisconnected(server);
}

// ... and one that stays and never says anything: it would cost a server a queue pair and a thread, and the process a descriptor, for ever.
TEST_F(StartUp, AClientWithoutAFirstMessageIsDisconnectedAfterAMinute) {
  sim::testing::Program server(victim_);
  const auto client = ConnectTo(server);
  Pass(59s);
  EXPECT_FALSE(client->Ended());
  EXPECT_TRUE(server.cm->events.empty());
  Pass(3s);
  EXPECT_TRUE(client->Ended());
  client->Leave();
  Pass(10s);
  ExpectDisconnected(server);
}

// CRC stays on between hosts, whatever host the peer says it is on (RFC 5044 section 7.1.1: the reply's C bit).
TEST_F(StartUp, WhoEchoesOurHostIdDoesNotTurnCrcOff) {
  auto stranger = Connect(Listen(8));
  Bytes private_data;
  mpa::WeftTrailer{.host_id = victim_.host_id()}.AppendTo(private_data);
  mpa::StartFrame request = Request(private_data);
  request.crc = false;
  stranger->Send(request);
  Pass(1ms);
  sim::testing::Program server(victim_);
  server.endpoint = told_->Wait().endpoint;
  ASSERT_EQ(server.endpoint->Accept(server.qp.handle(), {.ird = 1, .ord = 1}), 0);
  Pass(10ms);
  const auto reply = mpa::StartFrame::Parse(stranger->Receive(), /*expect_reply=*/true);
  ASSERT_TRUE(reply.ok() && reply.value().has_value());
  EXPECT_TRUE((*reply.value()).crc);
}

// --- hostile or unlucky responders

class Responder : public Hosts {
 protected:
  Responder() : client_(victim_) {
    responder_ = other_host_.Listen(Address(kStranger), 8, false, true).value();
    client_.endpoint = victim_.cm().CreateEndpoint();
    client_.endpoint->SetObserver(client_.cm);
    const int error = client_.endpoint->Connect(Address(kVictim), Address(kStranger, responder_->LocalAddress().port()),
                                                client_.qp.handle(), {.ird = 1, .ord = 1});
    EXPECT_EQ(error, 0);
  }
  std::unique_ptr<Stranger> Accept() {
    Pass(10ms);
    auto accepted = responder_->Accept();
    return accepted.ok() ? std::make_unique<Stranger>(std::move(accepted.value())) : nullptr;
  }
  // The reply to the request that `stranger` got.
  static mpa::StartFrame ReplyTo(Stranger& stranger, mpa::StartParams params = {}) {
    const auto request = mpa::StartFrame::Parse(stranger.Receive(), /*expect_reply=*/false);
    mpa::StartOutcome unused;
    return mpa::MakeReply(*request.value(), params, &unused);
  }
  // The last two bytes that count of layer, type and code.
  static void ExpectTerminate(const Bytes& bytes, uint8_t code) {
    // FPDU: length (2), DDP (18), the Terminate's control word (4).
    ASSERT_GE(bytes.size(), 24u);
    EXPECT_EQ(bytes[3] & 0x0f, 7) << "the opcode of a Terminate";
    EXPECT_EQ(bytes[20], 0x20) << "layer 2, type 0";
    EXPECT_EQ(bytes[21], code);
  }

  sim::testing::Program client_;
  std::unique_ptr<transport::Listener> responder_;
};

TEST_F(Responder, WhoIsTurnedAwayForWantOfRoomTriesAgain) {
  for (int i = 0; i < 3; ++i) {
    auto stranger = Accept();
    ASSERT_NE(stranger, nullptr) << "try " << i;
    stranger->Reset();
  }
  auto stranger = Accept();
  ASSERT_NE(stranger, nullptr);
  stranger->Send(ReplyTo(*stranger));
  Pass(10ms);
  ASSERT_FALSE(client_.cm->events.empty());
  EXPECT_EQ(client_.cm->Wait().kind, CmEvent::Kind::kEstablished);
}

TEST_F(Responder, WhoIsTurnedAwayForEverIsTold) {
  int tries = 0;
  std::unique_ptr<Stranger> stranger;
  while ((stranger = Accept()) != nullptr || tries == 0) {
    ASSERT_LT(++tries, 100);
    stranger->Reset();
    Pass(300ms);
  }
  ASSERT_FALSE(client_.cm->events.empty());
  const CmEvent told = client_.cm->Wait();
  EXPECT_EQ(told.kind, CmEvent::Kind::kRejected) << "as Linux has it (cma_iw_handler)";
  EXPECT_EQ(told.error, ECONNRESET);
}

// RFC 6581 section 9.1: "the initiator MUST generate a TERM message" with code 6 where it has not the IRD for the responder's ORD.
TEST_F(Responder, AnOrdBeyondOurIrdIsTerminatedWithCode6) {
  auto stranger = Accept();
  ASSERT_NE(stranger, nullptr);
  mpa::StartFrame reply = ReplyTo(*stranger);
  reply.ord_word = static_cast<uint16_t>((reply.ord_word & ~mpa::kIrdOrdMask) | 100);
  stranger->Send(reply);
  Pass(10ms);
  ASSERT_NO_FATAL_FAILURE(ExpectTerminate(stranger->Receive(), 6));
  ASSERT_FALSE(client_.cm->events.empty());
  EXPECT_EQ(client_.cm->Wait().kind, CmEvent::Kind::kConnectError);
}

// Section 9.2: code 7 where no RTR message is common to both.
TEST_F(Responder, AReplyWithoutACommonRtrIsTerminatedWithCode7) {
  auto stranger = Accept();
  ASSERT_NE(stranger, nullptr);
  mpa::StartFrame reply = ReplyTo(*stranger);
  reply.ird_word = static_cast<uint16_t>((reply.ird_word | mpa::kPeerToPeerBit) & ~mpa::kRtrSendBit);
  reply.ord_word &= mpa::kIrdOrdMask;
  stranger->Send(reply);
  Pass(10ms);
  ASSERT_NO_FATAL_FAILURE(ExpectTerminate(stranger->Receive(), 7));
}

}  // namespace
}  // namespace weft::hostile
