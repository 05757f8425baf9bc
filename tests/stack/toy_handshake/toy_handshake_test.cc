// rdma_cm's endpoints over a wire that is no byte stream, in virtual time.
#include "tests/stack/toy_handshake/toy_handshake.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <vector>

#include "sim/net/virtual_network.h"
#include "sim/testing/host.h"

namespace weft::sim {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using testing::Program;
using transport::SocketAddress;
using Bytes = std::vector<uint8_t>;

class ToyHandshake : public ::testing::Test {
 protected:
  void SetUp() override {
    RecordProperty("seed", static_cast<int>(network_.seed()));
    server_.listener = rnic_.cm().Listen(kAddress, 4, false, true, server_.cm).value();
  }
  int Connect(const SocketAddress& to, Bytes private_data = {}) {
    client_.endpoint = rnic_.cm().CreateEndpoint();
    client_.endpoint->SetObserver(client_.cm);
    return client_.endpoint->Connect(kAddress, to, client_.qp.handle(), {.private_data = std::move(private_data), .ird = 3, .ord = 5});
  }
  CmEvent Next(Program& program, transport::Duration most = std::chrono::hours(1)) {
    if (!network_.RunUntil([&] { return !program.cm->events.empty(); }, most)) return {.error = -1};
    return program.cm->Wait();
  }

  static inline const SocketAddress kAddress = *SocketAddress::Parse("10.1.2.3", 0);
  VirtualNetwork network_{static_cast<uint64_t>(::testing::UnitTest::GetInstance()->random_seed()) + 1};
  ToySessions* wire_ = new ToySessions(network_, network_.seed());  // rnic_'s
  Rnic rnic_{network_, Settings(), 1, std::unique_ptr<llp::Wire>(wire_)};
  Program client_{rnic_}, server_{rnic_};
};

TEST_F(ToyHandshake, TwoEndsConnectAndAWriteCrosses) {
  ASSERT_EQ(Connect(server_.listener->local_address(), {1, 2, 3}), 0);
  CmEvent request = Next(server_);
  ASSERT_EQ(request.kind, CmEvent::Kind::kConnectRequest);
  EXPECT_EQ(request.private_data, (Bytes{1, 2, 3}));
  EXPECT_EQ(request.ird, 5);
  EXPECT_EQ(request.ord, 3);
  EXPECT_EQ(request.endpoint->Accept(server_.qp.handle(), {.private_data = Bytes(301)}), EINVAL) << "more than the wire takes";
  ASSERT_EQ(request.endpoint->Accept(server_.qp.handle(), {.private_data = {4}, .ird = 2, .ord = 9}), 0);
  request.endpoint->SetObserver(server_.cm);
  EXPECT_EQ(Next(server_).kind, CmEvent::Kind::kEstablished);
  const CmEvent established = Next(client_);
  ASSERT_EQ(established.kind, CmEvent::Kind::kEstablished);
  EXPECT_EQ(established.private_data, Bytes{4});
  EXPECT_EQ(established.ird, 3);
  EXPECT_EQ(established.ord, 2);

  std::array<uint8_t, 2000> from, to{};
  from.fill(0x5a);
  const RegionInfo source = client_.Register(from.data(), from.size()), target = server_.Register(to.data(), to.size());
  ibv_sge piece{reinterpret_cast<uint64_t>(from.data()), from.size(), source.stag.value};
  ibv_send_wr write{}, *bad = nullptr;
  write.opcode = IBV_WR_RDMA_WRITE;
  write.sg_list = &piece;
  write.num_sge = 1;
  write.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(to.data());
  write.wr.rdma.rkey = target.stag.value;
  ASSERT_EQ(client_.qp.qp->PostSend(&write, &bad), 0);
  EXPECT_TRUE(network_.RunUntil([&] { return to == from; }, 1s));

  EXPECT_EQ(client_.endpoint->Disconnect(), 0);
  EXPECT_EQ(Next(client_).kind, CmEvent::Kind::kDisconnected);
  EXPECT_EQ(Next(server_).kind, CmEvent::Kind::kDisconnected);
}

TEST_F(ToyHandshake, ARejectionBringsItsReason) {
  ASSERT_EQ(Connect(server_.listener->local_address()), 0);
  CmEvent request = Next(server_);
  ASSERT_NE(request.endpoint, nullptr);
  EXPECT_EQ(request.endpoint->Reject({7, 7}, CmEvent::Reason::kConsumerDefined), 0);
  const CmEvent rejected = Next(client_);
  EXPECT_EQ(rejected.kind, CmEvent::Kind::kRejected);
  EXPECT_EQ(rejected.error, ECONNREFUSED);
  EXPECT_EQ(rejected.private_data, (Bytes{7, 7}));
  EXPECT_EQ(wire_->attempts, 1);
}

TEST_F(ToyHandshake, WhereNobodyListensItIsTriedAgainForAWhile) {
  const transport::Time begun = network_.Now();
  ASSERT_EQ(Connect(*SocketAddress::Parse("10.1.2.3", 9)), 0);
  const CmEvent rejected = Next(client_);
  EXPECT_EQ(rejected.kind, CmEvent::Kind::kRejected);
  EXPECT_EQ(rejected.error, ECONNREFUSED);
  EXPECT_GT(wire_->attempts, 5);
  EXPECT_LE(network_.Now() - begun, kRefusalLimit + 1ms);
}

TEST_F(ToyHandshake, AListenerThatComesLateIsFound) {
  const SocketAddress late = *SocketAddress::Parse("10.1.2.3", 9);
  ASSERT_EQ(Connect(late), 0);
  network_.RunFor(50ms);
  server_.listener->Close();
  server_.listener = rnic_.cm().Listen(late, 4, false, true, server_.cm).value();
  EXPECT_EQ(Next(server_).kind, CmEvent::Kind::kConnectRequest);
}

TEST_F(ToyHandshake, APeerThatIsNotThereIsGivenUp) {
  wire_->nobody_answers = true;
  const transport::Time begun = network_.Now();
  ASSERT_EQ(Connect(server_.listener->local_address()), 0);
  const CmEvent unreachable = Next(client_);
  EXPECT_EQ(unreachable.kind, CmEvent::Kind::kUnreachable);
  EXPECT_EQ(unreachable.error, ETIMEDOUT);
  EXPECT_GE(network_.Now() - begun, 20s);
  EXPECT_LT(network_.Now() - begun, 21s);
}

TEST_F(ToyHandshake, AProgramThatNeverAnswersIsGivenUpAndItsRequestIsLost) {
  const transport::Time begun = network_.Now();
  ASSERT_EQ(Connect(server_.listener->local_address()), 0);
  CmEvent request = Next(server_);
  ASSERT_NE(request.endpoint, nullptr);
  const CmEvent unreachable = Next(client_);
  EXPECT_EQ(unreachable.kind, CmEvent::Kind::kUnreachable);
  EXPECT_EQ(unreachable.error, ETIMEDOUT);
  EXPECT_GE(network_.Now() - begun, 60s);
  network_.RunFor(1s);
  EXPECT_EQ(request.endpoint->Accept(server_.qp.handle(), {}), ECONNRESET);
}

TEST_F(ToyHandshake, APeerWithoutRoomIsAskedAgain) {
  wire_->without_room = 3;
  ASSERT_EQ(Connect(server_.listener->local_address()), 0);
  EXPECT_EQ(Next(server_).kind, CmEvent::Kind::kConnectRequest);
  EXPECT_EQ(wire_->attempts, 4);
  EXPECT_EQ(wire_->fallbacks, 0);
}

TEST_F(ToyHandshake, AWireThatCanSayLessDoesSoOnceItIsNeverAnswered) {
  wire_->without_room = 1000;
  ASSERT_EQ(Connect(server_.listener->local_address()), 0);
  const CmEvent failed = Next(client_);
  EXPECT_EQ(failed.kind, CmEvent::Kind::kRejected);
  EXPECT_EQ(failed.error, ECONNRESET);
  EXPECT_EQ(wire_->fallbacks, 2) << "the second time there is none";
}

TEST_F(ToyHandshake, AnAttemptThatIsClosedLeavesNoRequestBehind) {
  ASSERT_EQ(Connect(server_.listener->local_address()), 0);
  client_.endpoint->Close();
  network_.RunFor(1s);
  EXPECT_TRUE(server_.cm->events.empty());
  EXPECT_TRUE(client_.cm->events.empty());
}

}  // namespace
}  // namespace weft::sim
