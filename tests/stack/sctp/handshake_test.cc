// rdma_cm's endpoints and queue pairs over DDP sessions of real SCTP, in virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/testing/host.h"
#include "transport/sctp/testing/virtual_sctp.h"
#include "wires/sctp/handshake/wire.h"

namespace weft::sim {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using testing::Program;
using transport::SocketAddress;
using Bytes = std::vector<uint8_t>;

class SctpHandshake : public ::testing::Test {
 protected:
  void SetUp() override {
    RecordProperty("seed", std::to_string(seed_));
    server_->listener = server_rnic_->cm().Listen(kServer, 4, false, true, server_->cm).value();
  }
  std::unique_ptr<Rnic> MakeRnic(const char* address, uint16_t udp_port, uint64_t id, const Settings& settings,
                                 sctp::Wire** its_wire) {
    transport::sctp::Sctp* const sctp = &world_.AddHost({address}, 1500, udp_port);
    transport::Network& network = world_.host_network();
    auto wire = std::make_unique<sctp::Wire>(network, pool_, settings, [sctp] { return sctp; });
    *its_wire = wire.get();
    return std::make_unique<Rnic>(network, settings, id, std::move(wire));
  }
  int Connect(Program& client, const SocketAddress& to, Bytes private_data = {}) {
    client.endpoint = client_rnic_->cm().CreateEndpoint();
    client.endpoint->SetObserver(client.cm);
    return client.endpoint->Connect(kClient, to, client.qp.handle(),
                                    {.private_data = std::move(private_data), .ird = 3, .ord = 5});
  }
  CmEvent Next(Program& program, transport::Duration most = std::chrono::hours(1)) {
    if (!world_.network().RunUntil([&] { return !program.cm->events.empty(); }, most)) return {.error = -1};
    return program.cm->Wait();
  }
  // Both ends.
  void ConnectBoth(Program& client, Program& server) {
    ASSERT_EQ(Connect(client, server_->listener->local_address()), 0);
    CmEvent request = Next(*server_);
    ASSERT_EQ(request.kind, CmEvent::Kind::kConnectRequest);
    ASSERT_EQ(request.endpoint->Accept(server.qp.handle(), {.ird = 2, .ord = 9}), 0);
    request.endpoint->SetObserver(server.cm);
    ASSERT_EQ(Next(server).kind, CmEvent::Kind::kEstablished);
    ASSERT_EQ(Next(client).kind, CmEvent::Kind::kEstablished);
  }
  void Write(Program& client, Program& server, size_t length) {
    std::vector<uint8_t> from(length), to(length);
    std::iota(from.begin(), from.end(), 1);
    const RegionInfo source = client.Register(from.data(), from.size()), target = server.Register(to.data(), to.size());
    ibv_sge piece{reinterpret_cast<uint64_t>(from.data()), static_cast<uint32_t>(from.size()), source.stag.value};
    ibv_send_wr write{}, *bad = nullptr;
    write.opcode = IBV_WR_RDMA_WRITE;
    write.sg_list = &piece;
    write.num_sge = 1;
    write.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(to.data());
    write.wr.rdma.rkey = target.stag.value;
    ASSERT_EQ(client.qp.qp->PostSend(&write, &bad), 0);
    EXPECT_TRUE(world_.network().RunUntil([&] { return to == from; }, 60s));
    world_.network().RunFor(100ms);
  }

  static inline const SocketAddress kClient = *SocketAddress::Parse("10.1.0.1", 0),
                                    kServer = *SocketAddress::Parse("10.1.0.2", 5043);
  const uint64_t seed_ = static_cast<uint64_t>(::testing::UnitTest::GetInstance()->random_seed()) + 1;
  const Settings settings_;
  BufferPool pool_;
  transport::sctp::VirtualSctp world_{seed_};
  sctp::Wire *client_wire_ = nullptr, *server_wire_ = nullptr;  // the RNICs'
  std::unique_ptr<Rnic> client_rnic_ = MakeRnic("10.1.0.1", 9899, 1, settings_, &client_wire_),
                        server_rnic_ = MakeRnic("10.1.0.2", 4433, 2, settings_, &server_wire_);
  std::unique_ptr<Program> client_ = std::make_unique<Program>(*client_rnic_),
                           server_ = std::make_unique<Program>(*server_rnic_);
};

TEST_F(SctpHandshake, TwoEndsConnectAndAWriteCrosses) {
  ASSERT_EQ(Connect(*client_, server_->listener->local_address(), {1, 2, 3}), 0);
  CmEvent request = Next(*server_);
  ASSERT_EQ(request.kind, CmEvent::Kind::kConnectRequest);
  EXPECT_EQ(request.private_data, (Bytes{1, 2, 3}));
  EXPECT_EQ(request.ird, 5);
  EXPECT_EQ(request.ord, 3);
  EXPECT_EQ(request.endpoint->Accept(server_->qp.handle(), {.private_data = Bytes(513)}), EINVAL)
      << "more than the wire takes";
  ASSERT_EQ(request.endpoint->Accept(server_->qp.handle(), {.private_data = {4}, .ird = 2, .ord = 9}), 0);
  request.endpoint->SetObserver(server_->cm);
  EXPECT_EQ(Next(*server_).kind, CmEvent::Kind::kEstablished);
  const CmEvent established = Next(*client_);
  ASSERT_EQ(established.kind, CmEvent::Kind::kEstablished);
  EXPECT_EQ(established.private_data, Bytes{4});
  EXPECT_EQ(established.ird, 3);
  EXPECT_EQ(established.ord, 2);
  Write(*client_, *server_, 3'000'000);

  EXPECT_EQ(client_->endpoint->Disconnect(), 0);
  EXPECT_EQ(Next(*client_).kind, CmEvent::Kind::kDisconnected);
  EXPECT_EQ(Next(*server_).kind, CmEvent::Kind::kDisconnected);
}

TEST_F(SctpHandshake, SeveralQueuePairsWorkAtOnceOnARoughLinkAndLeaveNoAssociationBehind) {
  world_.network().SetDefaultLink({.jitter = 1ms, .lose_datagram = 0.01, .repeat_datagram = 0.01});
  std::vector<std::pair<std::unique_ptr<Program>, std::unique_ptr<Program>>> pairs;
  for (int i = 0; i < 4; ++i) {
    pairs.emplace_back(std::make_unique<Program>(*client_rnic_), std::make_unique<Program>(*server_rnic_));
    ConnectBoth(*pairs[i].first, *pairs[i].second);
  }
  for (auto& [client, server] : pairs) Write(*client, *server, 200'000);
  pairs.clear();
  world_.network().RunFor(5s);
  EXPECT_EQ(client_wire_->associations(), 0u) << "nobody holds it";
}

// perftest does so: its first connection lasts while it listens anew for the second.
TEST_F(SctpHandshake, AListenerThatIsOpenedAgainTakesSessionsOfTheAssociationThatOutlivedIt) {
  Program first(*client_rnic_), second(*client_rnic_), other(*server_rnic_);
  ConnectBoth(first, *server_);
  const SocketAddress at = server_->listener->local_address();
  server_->listener->Close();
  server_->listener.reset();
  ASSERT_EQ(Connect(second, at), 0);
  EXPECT_EQ(Next(second).kind, CmEvent::Kind::kRejected) << "nobody listens";
  second.endpoint->SetObserver(nullptr);
  second.endpoint->Close();
  server_->listener = server_rnic_->cm().Listen(kServer, 4, false, true, server_->cm).value();
  ConnectBoth(second, other);
  EXPECT_EQ(client_wire_->associations(), 1u);
  Write(second, other, 1000);
  Write(first, *server_, 1000);
}

// An initiator makes or shares associations of its own only; those that came to its listener are not for it.
TEST_F(SctpHandshake, TwoProcessesThatConnectToEachOtherAtOnceHaveAnAssociationForEachDirection) {
  world_.network().SetDefaultLink({.jitter = 1ms, .lose_datagram = 0.01, .repeat_datagram = 0.01});
  Program there(*client_rnic_), back(*server_rnic_), accepted_here(*client_rnic_), accepted_there(*server_rnic_);
  accepted_here.listener =
      client_rnic_->cm().Listen(*SocketAddress::Parse("10.1.0.1", 5043), 4, false, true, accepted_here.cm).value();
  back.endpoint = server_rnic_->cm().CreateEndpoint();
  back.endpoint->SetObserver(back.cm);
  ASSERT_EQ(Connect(there, server_->listener->local_address()), 0);
  ASSERT_EQ(back.endpoint->Connect(*SocketAddress::Parse("10.1.0.2", 0), accepted_here.listener->local_address(),
                                   back.qp.handle(), {.ird = 3, .ord = 5}),
            0);

  CmEvent at_server = Next(*server_), at_client = Next(accepted_here);
  ASSERT_EQ(at_server.kind, CmEvent::Kind::kConnectRequest);
  ASSERT_EQ(at_client.kind, CmEvent::Kind::kConnectRequest);
  ASSERT_EQ(at_server.endpoint->Accept(accepted_there.qp.handle(), {.ird = 2, .ord = 9}), 0);
  ASSERT_EQ(at_client.endpoint->Accept(accepted_here.qp.handle(), {.ird = 2, .ord = 9}), 0);
  EXPECT_EQ(Next(there).kind, CmEvent::Kind::kEstablished);
  EXPECT_EQ(Next(back).kind, CmEvent::Kind::kEstablished);
  EXPECT_EQ(client_wire_->associations_made(), 1u);
  EXPECT_EQ(server_wire_->associations_made(), 1u);

  Write(there, accepted_there, 200'000);
  Write(back, accepted_here, 200'000);
  EXPECT_EQ(there.endpoint->Disconnect(), 0);
  EXPECT_EQ(Next(there).kind, CmEvent::Kind::kDisconnected);
  Write(back, accepted_here, 1000);
}

TEST_F(SctpHandshake, ARejectionBringsItsReason) {
  ASSERT_EQ(Connect(*client_, server_->listener->local_address()), 0);
  CmEvent request = Next(*server_);
  ASSERT_NE(request.endpoint, nullptr);
  EXPECT_EQ(request.endpoint->Reject({7, 7}, CmEvent::Reason::kVendorOption), 0);
  const CmEvent rejected = Next(*client_);
  EXPECT_EQ(rejected.kind, CmEvent::Kind::kRejected);
  EXPECT_EQ(rejected.error, ECONNREFUSED);
  EXPECT_EQ(rejected.reason, CmEvent::Reason::kVendorOption);
  EXPECT_EQ(rejected.private_data, (Bytes{7, 7}));
}

TEST_F(SctpHandshake, WhereNobodyListensItIsRefused) {
  ASSERT_EQ(Connect(*client_, *SocketAddress::Parse("10.1.0.2", 9)), 0);
  const CmEvent rejected = Next(*client_);
  EXPECT_EQ(rejected.kind, CmEvent::Kind::kRejected);
  EXPECT_EQ(rejected.error, ECONNREFUSED);
}

TEST_F(SctpHandshake, AnAttemptThatIsClosedEndsItsRequest) {
  ASSERT_EQ(Connect(*client_, server_->listener->local_address()), 0);
  CmEvent request = Next(*server_);
  ASSERT_NE(request.endpoint, nullptr);
  client_->endpoint->Close();
  world_.network().RunFor(1s);
  EXPECT_EQ(request.endpoint->Accept(server_->qp.handle(), {}), ECONNRESET);
}

}  // namespace
}  // namespace weft::sim
