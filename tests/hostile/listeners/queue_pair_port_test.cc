// Strangers at the port of queue pairs that programs connect by ibv_modify_qp: they know an address and guess a number.
#include <array>
#include <cstring>

#include "tests/hostile/listeners/hosts.h"

namespace weft::hostile {
namespace {

// A queue pair that a program connects itself.
struct Dialled {
  Dialled(sim::Rnic& its_rnic, const char* address) : rnic(its_rnic), pd(rnic.AllocatePd()) {
    cq = std::make_shared<sim::CompletionQueue>(16, nullptr, nullptr, nullptr);
    sim::QueuePairOptions options{.pd = pd, .send_cq = cq, .receive_cq = cq, .addresses = {Address(address)}, .signal_all = true};
    options.capabilities = {4, 4, 1, 1, 0};
    qp = rnic.CreateQueuePair(std::move(options)).value();
    ibv_qp_attr init{};
    init.qp_state = IBV_QPS_INIT;
    init.port_num = 1;
    EXPECT_EQ(qp->Modify(init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
  }
  ~Dialled() { qp->Destroy(); }

  int ToRtr(uint32_t peer, const char* address, uint32_t rq_psn) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = peer;
    a.rq_psn = rq_psn;
    a.max_dest_rd_atomic = 1;
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    a.ah_attr.grh.dgid.raw[10] = a.ah_attr.grh.dgid.raw[11] = 0xff;
    const transport::SocketAddress to = Address(address);
    std::memcpy(a.ah_attr.grh.dgid.raw + 12, &reinterpret_cast<const sockaddr_in*>(to.get())->sin_addr, 4);
    return qp->Modify(a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                             IBV_QP_MIN_RNR_TIMER);
  }
  int ToRts(uint32_t sq_psn) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RTS;
    a.sq_psn = sq_psn;
    a.timeout = 14;
    a.retry_cnt = a.rnr_retry = 7;
    a.max_rd_atomic = 1;
    return qp->Modify(a, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
  }
  bool connected() { return !qp->Snapshot().peer.empty(); }
  std::string peer() { return qp->Snapshot().peer; }

  sim::Rnic& rnic;
  std::shared_ptr<sim::Pd> pd;
  std::shared_ptr<sim::CompletionQueue> cq;
  std::shared_ptr<sim::QueuePair> qp;
};

// What such a queue pair asks for when it opens the connection (sim/cm/ports/wish.h).
Bytes Wish(uint32_t to, uint32_t from, uint32_t rq_psn, uint32_t sq_psn) {
  Bytes bytes = {'W', 'e', 'f', 't', 'Q', 'P', 'C', 'N'};
  for (const uint32_t word : {to, from, uint32_t{1} << 24 | rq_psn, sq_psn}) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<uint8_t>(word >> shift));
  }
  return bytes;
}

class QueuePairPort : public Hosts {
 protected:
  // Of two hosts' queue pairs the victim's has the larger number: it waits for the other's request.
  QueuePairPort() : peer_(std::make_unique<Dialled>(other_, kStranger)) {
    for (int i = 0; i < 2000 && (mine_ == nullptr || number() <= peer_->qp->number()); ++i) {
      spare_.push_back(std::move(mine_));
      mine_ = std::make_unique<Dialled>(victim_, kVictim);
    }
    spare_.clear();
    EXPECT_GT(number(), peer_->qp->number());
  }
  uint32_t number() const { return mine_->qp->number(); }
  uint16_t port() const { return static_cast<uint16_t>(number() >> 8); }

  std::unique_ptr<Dialled> mine_, peer_;
  std::vector<std::unique_ptr<Dialled>> spare_;
};

TEST_F(QueuePairPort, TwoThatKnowEachOthersNumbersConnect) {
  ASSERT_EQ(mine_->ToRtr(peer_->qp->number(), kStranger, 111), 0);
  ASSERT_EQ(mine_->ToRts(222), 0);
  ASSERT_EQ(peer_->ToRtr(number(), kVictim, 222), 0);
  ASSERT_EQ(peer_->ToRts(111), 0);
  Pass(100ms);
  EXPECT_TRUE(mine_->connected());
  EXPECT_TRUE(peer_->connected());
}

TEST_F(QueuePairPort, WhoOnlyReceivesIsConnectedByTheOtherWhicheverItIs) {
  ASSERT_EQ(peer_->ToRtr(number(), kVictim, 222), 0);  // the smaller number stays in RTR
  ASSERT_EQ(mine_->ToRtr(peer_->qp->number(), kStranger, 111), 0);
  ASSERT_EQ(mine_->ToRts(222), 0);
  Pass(100ms);
  EXPECT_TRUE(mine_->connected());
  EXPECT_TRUE(peer_->connected());
}

TEST_F(QueuePairPort, TheLargerNumberMayStayInRtrToo) {
  ASSERT_EQ(mine_->ToRtr(peer_->qp->number(), kStranger, 111), 0);
  ASSERT_EQ(peer_->ToRtr(number(), kVictim, 222), 0);
  ASSERT_EQ(peer_->ToRts(111), 0);
  Pass(100ms);
  EXPECT_TRUE(mine_->connected());
  EXPECT_TRUE(peer_->connected());
}

// Both dial when one goes to RTS late; one connection is left, and it is both ends'.
TEST_F(QueuePairPort, EndsThatGetReadyAtAnyTimeMeetOnOneConnection) {
  network_.SetDefaultLink(sim::LinkFaults{.delay = 4ms});
  for (int delay_ms = 0; delay_ms <= 40; ++delay_ms) {
    Dialled small(other_, kStranger);
    std::vector<std::unique_ptr<Dialled>> passed_over;
    auto large = std::make_unique<Dialled>(victim_, kVictim);
    for (int i = 0; i < 2000 && large->qp->number() <= small.qp->number(); ++i) {
      passed_over.push_back(std::exchange(large, std::make_unique<Dialled>(victim_, kVictim)));
    }
    ASSERT_EQ(large->ToRtr(small.qp->number(), kStranger, 1), 0);
    ASSERT_EQ(small.ToRtr(large->qp->number(), kVictim, 2), 0);
    ASSERT_EQ(large->ToRts(2), 0);
    Pass(std::chrono::milliseconds(delay_ms));
    ASSERT_EQ(small.ToRts(1), 0);
    Pass(3s);
    EXPECT_EQ(large->qp->state(), IBV_QPS_RTS) << delay_ms;
    EXPECT_EQ(small.qp->state(), IBV_QPS_RTS) << delay_ms;
    EXPECT_TRUE(large->connected() && small.connected()) << delay_ms;
  }
}

TEST_F(QueuePairPort, AStrangerWhoDoesNotKnowThePacketSequenceNumbersIsRefused) {
  ASSERT_EQ(mine_->ToRtr(peer_->qp->number(), kStranger, 111), 0);
  ASSERT_EQ(mine_->ToRts(222), 0);
  auto stranger = Connect(port());
  stranger->Send(Request(Wish(number(), peer_->qp->number(), 0, 0)));
  Pass(5ms);
  const auto reply = mpa::StartFrame::Parse(stranger->Receive(), /*expect_reply=*/true);
  ASSERT_TRUE(reply.ok() && reply.value().has_value());
  EXPECT_TRUE((*reply.value()).rejected);
  ASSERT_EQ(peer_->ToRtr(number(), kVictim, 222), 0);
  ASSERT_EQ(peer_->ToRts(111), 0);
  Pass(100ms);
  EXPECT_TRUE(mine_->connected());
  EXPECT_TRUE(peer_->connected());
}

TEST_F(QueuePairPort, AStrangerDoesNotPushOutThePeersRequestThatWaits) {
  ASSERT_EQ(peer_->ToRtr(number(), kVictim, 222), 0);
  ASSERT_EQ(peer_->ToRts(111), 0);
  Pass(5ms);  // its request waits for `mine_`
  auto stranger = Connect(port());
  stranger->Send(Request(Wish(number(), peer_->qp->number(), 5, 5)));
  Pass(5ms);
  ASSERT_EQ(mine_->ToRtr(peer_->qp->number(), kStranger, 111), 0);
  Pass(5ms);
  EXPECT_TRUE(mine_->connected());
  EXPECT_TRUE(peer_->connected());
}

TEST_F(QueuePairPort, SilentStrangersDoNotKeepThePeerOut) {
  auto silent = ConnectMany(2100, port());
  ASSERT_EQ(mine_->ToRtr(peer_->qp->number(), kStranger, 111), 0);
  ASSERT_EQ(peer_->ToRtr(number(), kVictim, 222), 0);
  ASSERT_EQ(peer_->ToRts(111), 0);
  Pass(2s);
  EXPECT_TRUE(mine_->connected());
}

TEST_F(QueuePairPort, RequestsForQueuePairsThatNeverLookAreGivenUp) {
  auto stranger = Connect(port());
  stranger->Send(Request(Wish(number(), 0x123456, 5, 5)));
  Pass(59s);
  EXPECT_FALSE(stranger->Ended());
  Pass(2s);
  EXPECT_TRUE(stranger->Ended());
}

TEST_F(QueuePairPort, RequestsOfWhoLeftHoldNoSocket) {
  auto stranger = Connect(port());
  stranger->Send(Request(Wish(number(), 0x123456, 5, 5)));
  Pass(5ms);
  stranger->Leave();
  Pass(5ms);
  EXPECT_TRUE(stranger->Ended());
}

}  // namespace
}  // namespace weft::hostile
