// Programs that connect their queue pairs themselves, by ibv_modify_qp with an exchanged number and GID: in any order, again, to itself.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "verbs/testing/connected_pair.h"
#include "verbs/testing/self_connected.h"
#include "verbs/testing/shown.h"

namespace weft::verbs {
namespace {

using testing::AwaitRefusals;
using testing::End;
using testing::ExpectTheSecondToBeBlamed;
using testing::kToRtr;
using testing::kToRts;
using testing::SelfConnected;
using testing::ToInit;
using testing::WaitForCompletion;

// Connections of this process that came to `port`, by the ports at their other ends.
std::set<in_port_t> ConnectionsTo(uint32_t port) {
  std::set<in_port_t> others;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    sockaddr_in6 here{}, there{};  // the port is at the same place in sockaddr_in
    socklen_t here_length = sizeof here, there_length = sizeof there;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&here), &here_length) != 0 || ntohs(here.sin6_port) != port) continue;
    if (here.sin6_family != AF_INET && here.sin6_family != AF_INET6) continue;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&there), &there_length) == 0) others.insert(there.sin6_port);
  }
  return others;
}

TEST_F(SelfConnected, WhicheverSideIsFirst) {
  for (bool first : {true, false}) {
    End a(context_), b(context_);
    End& early = first ? a : b;
    End& late = first ? b : a;
    ASSERT_EQ(early.ToRtr(late), 0);
    const uint32_t port = late.qp->qp_num >> 8;
    const auto before = ConnectionsTo(port);  // of the round before, perhaps
    ASSERT_EQ(early.ToRts(), 0);
    ASSERT_EQ(early.Send(0, 8), 0);  // waits for the other
    const auto request_came = [&] { return !std::ranges::includes(before, ConnectionsTo(port)); };
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!request_came() && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    ASSERT_TRUE(request_came());
    ibv_wc none;
    EXPECT_EQ(ibv_poll_cq(early.cq, 1, &none), 0);
    ASSERT_EQ(late.Receive(0, 8), 0);
    ASSERT_EQ(late.ToRtr(early), 0);
    EXPECT_EQ(WaitForCompletion(late.cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(WaitForCompletion(early.cq).status, IBV_WC_SUCCESS);
    ASSERT_EQ(late.ToRts(), 0);
    ExpectMessage(late, early);
    ExpectMessage(early, late);
  }
}

TEST_F(SelfConnected, ManyPairsOfWhichEachKnowsItsOwn) {
  constexpr int kPairs = 300;  // more than one port's numbers
  std::vector<std::unique_ptr<End>> ends;
  for (int i = 0; i < 2 * kPairs; ++i) ends.push_back(std::make_unique<End>(context_));
  for (int i = 0; i < kPairs; ++i) Connect(*ends[static_cast<size_t>(i)], *ends[static_cast<size_t>(2 * kPairs - 1 - i)]);
  for (int i = 0; i < kPairs; ++i) {
    ends[static_cast<size_t>(i)]->memory[0] = static_cast<uint8_t>(i);
    ExpectMessage(*ends[static_cast<size_t>(i)], *ends[static_cast<size_t>(2 * kPairs - 1 - i)]);
  }
}

TEST_F(SelfConnected, AgainAfterReset) {
  End a(context_), b(context_);
  for (int life = 0; life < 5; ++life) {
    ASSERT_NO_FATAL_FAILURE(Connect(a, b));
    ExpectMessage(a, b);
    ExpectMessage(b, a);
    End& first = life % 2 ? a : b;
    End& second = life % 2 ? b : a;
    for (End* end : {&first, &second}) {
      ASSERT_EQ(end->ToState(IBV_QPS_RESET), 0);
      ASSERT_EQ(ToInit(end->qp), 0);
    }
  }
}

// What a queue pair that opens a connection sends, as sim/cm/ports/wish.h draws it, with packet sequence numbers 0.
std::vector<uint8_t> RequestFor(uint32_t to, uint32_t from) {
  std::vector<uint8_t> bytes = {'W', 'e', 'f', 't', 'Q', 'P', 'C', 'N'};
  for (const uint32_t word : {to, from, uint32_t{1} << 24, uint32_t{0}}) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<uint8_t>(word >> shift));
  }
  return bytes;
}

// Numbers come back. A request of an earlier queue pair can reach a later one, which takes it for its peer's.
TEST_F(SelfConnected, ARequestThatItsQueuePairGaveUpIsNotThePeers) {
  for (const bool b_is_first : {true, false}) {
    auto one = std::make_unique<End>(context_), two = std::make_unique<End>(context_);
    End& a = b_is_first ? *two : *one;
    End& b = b_is_first ? *one : *two;
    ASSERT_EQ(b.ToRtr(a), 0);
    sim::CmApi* cm = weft_private_cm_api(sim::CmApi::kVersion);
    const auto events = std::make_shared<testing::ConnectionEvents>();
    const auto endpoint = cm->CreateEndpoint();
    endpoint->SetObserver(events);
    auto earlier = std::make_unique<End>(context_);
    const auto local = transport::SocketAddress::Parse("127.0.0.1", 0);
    auto remote = *local;
    remote.set_port(static_cast<uint16_t>(b.qp->qp_num >> 8));
    sim::ConnectParameters parameters;
    parameters.private_data = RequestFor(b.qp->qp_num, a.qp->qp_num);
    ASSERT_EQ(endpoint->Connect(*local, remote, earlier->qp, parameters), 0);
    sim::CmEvent event;
    ASSERT_TRUE(events->WaitFor(sim::CmEvent::Kind::kEstablished, &event));
    ASSERT_EQ(b.ToRts(), 0);
    endpoint->SetObserver(nullptr);
    endpoint->Close();
    earlier.reset();
    ASSERT_EQ(b.Send(0, 8, 5), 0);
    ASSERT_EQ(a.Receive(64, 8), 0);
    ASSERT_EQ(a.ToRtr(b), 0);
    ASSERT_EQ(a.ToRts(), 0);
    EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(WaitForCompletion(b.cq).status, IBV_WC_SUCCESS);
    ExpectMessage(a, b);
    ExpectMessage(b, a);
  }
}

// With timeout 0 an adapter would try for ever; programs end whose peers ended before them.
TEST_F(SelfConnected, APeerThatEndedBeforeItsConnectionWasOfUseIsGone) {
  End a(context_);
  auto b = std::make_unique<End>(context_);
  ASSERT_EQ(a.ToRtr(*b), 0);
  ASSERT_EQ(b->ToRtr(a), 0);
  ibv_qp_attr to = {};
  to.qp_state = IBV_QPS_RTS;
  to.retry_cnt = to.rnr_retry = 7;
  to.max_rd_atomic = 0;
  ASSERT_EQ(ibv_modify_qp(a.qp, &to, kToRts), 0);
  ASSERT_EQ(ibv_modify_qp(b->qp, &to, kToRts), 0);
  // Connected, once a message that nobody acknowledged is under way; and nothing was carried out.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  ibv_qp_attr now = {};
  ibv_qp_init_attr unused = {};
  do {
    ASSERT_EQ(ibv_query_qp(b->qp, &now, IBV_QP_STATE, &unused), 0);
  } while (now.max_rd_atomic == 0 && std::chrono::steady_clock::now() < until);
  b.reset();
  ASSERT_EQ(a.Send(0, 8, 5), 0);
  EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_RETRY_EXC_ERR);
}

// The acknowledgement lies in the socket when the sender goes to ERR: an adapter would have taken it.
TEST_F(SelfConnected, WhatThePeerHasAcknowledgedIsNotFlushed) {
  for (int round = 0; round < 20; ++round) {
    End a(context_), b(context_);
    ASSERT_NO_FATAL_FAILURE(Connect(a, b));
    ASSERT_EQ(b.Receive(0, 8), 0);
    ASSERT_EQ(a.Send(0, 8), 0);
    ASSERT_EQ(WaitForCompletion(b.cq).status, IBV_WC_SUCCESS);
    ibv_wc none;
    EXPECT_EQ(ibv_poll_cq(b.cq, 1, &none), 0);  // acknowledges at the latest
    ibv_qp_attr error = {};
    error.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(ibv_modify_qp(a.qp, &error, IBV_QP_STATE), 0);
    EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_SUCCESS) << "round " << round;
  }
}

// The queue pair that it waits for is destroyed: nobody will answer it.
TEST_F(SelfConnected, ARequestThatWaitsIsRefusedWhenItsQueuePairIsDestroyed) {
  auto awaited = std::make_unique<End>(context_), asking = std::make_unique<End>(context_);
  sim::CmApi* cm = weft_private_cm_api(sim::CmApi::kVersion);
  const auto events = std::make_shared<testing::ConnectionEvents>();
  const auto endpoint = cm->CreateEndpoint();
  endpoint->SetObserver(events);
  const auto local = transport::SocketAddress::Parse("127.0.0.1", 0);
  auto remote = *local;
  remote.set_port(static_cast<uint16_t>(awaited->qp->qp_num >> 8));
  sim::ConnectParameters parameters;
  parameters.private_data = RequestFor(awaited->qp->qp_num, asking->qp->qp_num);
  ASSERT_EQ(endpoint->Connect(*local, remote, asking->qp, parameters), 0);
  // The same listener takes a later request, so the first one is there.
  End c(context_), d(context_);
  ASSERT_EQ(c.qp->qp_num >> 8, awaited->qp->qp_num >> 8);
  ASSERT_EQ(d.qp->qp_num >> 8, awaited->qp->qp_num >> 8);
  Connect(c, d);
  ExpectMessage(c, d);
  awaited.reset();
  sim::CmEvent event;
  EXPECT_TRUE(events->WaitFor(sim::CmEvent::Kind::kRejected, &event));
  endpoint->SetObserver(nullptr);
  endpoint->Close();
}

// A peer that is played: it listens on the port that its number names, and refuses every request (RFC 5044 section 7.1). An old Weft refuses a request
// that has an invitation to the memory of the host.
class RefusingPeer {
 public:
  RefusingPeer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    const timeval patience = {.tv_sec = 20, .tv_usec = 0};
    EXPECT_EQ(setsockopt(listener_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);  // also accept(2)
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    number_ = uint32_t{ntohs(address.sin_port)} << 8;
  }
  ~RefusingPeer() { close(listener_); }

  uint32_t number() const { return number_; }

  // The length of the private data of the next request.
  size_t Refuse() {
    constexpr size_t kHeader = 20;  // key (16), flags (1), revision (1), length of the private data (2)
    constexpr uint8_t kRejects = 0x20;
    const int fd = accept(listener_, nullptr, nullptr);
    EXPECT_GE(fd, 0);
    uint8_t header[kHeader] = {};
    EXPECT_EQ(recv(fd, header, sizeof header, MSG_WAITALL), static_cast<ssize_t>(sizeof header));
    const size_t length = size_t{header[18]} << 8 | header[19];
    std::vector<uint8_t> data(length);
    EXPECT_EQ(recv(fd, data.data(), length, MSG_WAITALL), static_cast<ssize_t>(length));
    uint8_t reply[kHeader + 1] = "MPA ID Rep Frame";
    reply[16] = kRejects;
    reply[17] = header[17];
    reply[18] = reply[19] = 0;
    EXPECT_EQ(send(fd, reply, kHeader, MSG_NOSIGNAL), static_cast<ssize_t>(kHeader));
    close(fd);
    return length;
  }

 private:
  const int listener_;
  uint32_t number_ = 0;
};

TEST_F(SelfConnected, APeerThatRefusesIsAskedAgainWithoutAnInvitationToTheHostsMemory) {
  RefusingPeer peer;
  End a(context_);
  ASSERT_EQ(a.ToRtr(peer.number()), 0);
  ASSERT_EQ(a.ToRts(), 0);
  const size_t first = peer.Refuse(), second = peer.Refuse();
  const char* const same_host = std::getenv("WEFT_SAME_HOST");
  const bool invites = same_host == nullptr || std::string(same_host) != "off";
  constexpr size_t kInvitation = 24;  // llp/weft_trailer.h
  EXPECT_EQ(first, second + (invites ? kInvitation : 0));
  EXPECT_EQ(peer.Refuse(), second);
}

TEST_F(SelfConnected, IllegalTransitionsLeaveTheQueuePairAsItWas) {
  End a(context_), b(context_);
  for (int bit : {IBV_QP_AV, IBV_QP_PATH_MTU, IBV_QP_DEST_QPN, IBV_QP_RQ_PSN, IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER}) {
    EXPECT_EQ(a.ToRtr(b, kToRtr & ~bit), EINVAL) << bit;
    EXPECT_EQ(a.State(), IBV_QPS_INIT);
  }
  EXPECT_EQ(a.ToRtr(b, kToRtr | IBV_QP_TIMEOUT), EINVAL);
  EXPECT_EQ(a.ToRts(), EINVAL) << "from INIT";
  ASSERT_EQ(a.ToRtr(b), 0);
  for (int bit : {IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_SQ_PSN, IBV_QP_MAX_QP_RD_ATOMIC}) {
    EXPECT_EQ(a.ToRts(7, kToRts & ~bit), EINVAL) << bit;
    EXPECT_EQ(a.State(), IBV_QPS_RTR);
  }
  EXPECT_EQ(a.ToRts(8), EINVAL) << "three bits";
  EXPECT_EQ(a.ToRts(), 0);
  // RoCE has no LIDs but 0, which every port has: the own host's.
  ibv_qp_attr lid = {};
  lid.qp_state = IBV_QPS_RTR;
  lid.path_mtu = IBV_MTU_1024;
  lid.ah_attr.port_num = 1;
  lid.ah_attr.dlid = 1;
  EXPECT_EQ(ibv_modify_qp(b.qp, &lid, kToRtr), EINVAL);
  EXPECT_EQ(b.State(), IBV_QPS_INIT);
}

TEST_F(SelfConnected, WithoutAGidThePeerIsOnTheOwnHost) {
  End a(context_), b(context_);
  for (auto [end, peer] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    ibv_qp_attr to = {};
    to.qp_state = IBV_QPS_RTR;
    to.path_mtu = IBV_MTU_1024;
    to.dest_qp_num = peer->qp->qp_num;
    to.max_dest_rd_atomic = 4;
    to.ah_attr.port_num = 1;
    ASSERT_EQ(ibv_modify_qp(end->qp, &to, kToRtr), 0);
    ASSERT_EQ(end->ToRts(), 0);
  }
  ExpectMessage(a, b);
  ExpectMessage(b, a);
}

// A queue pair that is its own peer.
class ToItself : public SelfConnected {
 protected:
  void SetUp() override {
    SelfConnected::SetUp();
    end_ = std::make_unique<End>(context_);
    Connect(*end_);
  }
  void TearDown() override {
    end_.reset();
    SelfConnected::TearDown();
  }
  static void Connect(End& end) {
    ASSERT_EQ(end.ToRtr(end), 0);
    ASSERT_EQ(end.ToRts(), 0);
  }
  // Its completion and that of its receive come in any order.
  void ExpectMessageToItself() {
    end_->memory[0] = static_cast<uint8_t>(end_->memory[0] + 1);
    ASSERT_EQ(end_->Receive(64, 32), 0);
    ASSERT_EQ(end_->Send(0, 32), 0);
    bool sent = false, received = false;
    for (int i = 0; i < 2; ++i) {
      const ibv_wc wc = WaitForCompletion(end_->cq);
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      (wc.opcode & IBV_WC_RECV ? received : sent) = true;
    }
    EXPECT_TRUE(sent && received);
    EXPECT_EQ(end_->memory[64], end_->memory[0]);
  }

  std::unique_ptr<End> end_;
};

TEST_F(ToItself, Sends) {
  for (int i = 0; i < 100; ++i) ExpectMessageToItself();
}

TEST_F(ToItself, WritesReadsAndAtomics) {
  End& end = *end_;
  end.memory[0] = 5;
  ibv_sge element = end.Element(0, 8);
  ASSERT_EQ(end.Post(end.Request(IBV_WR_RDMA_WRITE, &element, 1, &end, 100)), 0);
  EXPECT_EQ(WaitForCompletion(end.cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(end.memory[100], 5);
  ibv_sge sink = end.Element(200, 8);
  ASSERT_EQ(end.Post(end.Request(IBV_WR_RDMA_READ, &sink, 1, &end, 100)), 0);
  EXPECT_EQ(WaitForCompletion(end.cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(end.memory[200], 5);
  ibv_sge found = end.Element(304, 8);
  ibv_send_wr add = end.Request(IBV_WR_ATOMIC_FETCH_AND_ADD, &found, 1);
  add.wr.atomic = {reinterpret_cast<uintptr_t>(end.memory.data()), 2, 0, end.mr->rkey};
  ASSERT_EQ(end.Post(add), 0);
  EXPECT_EQ(WaitForCompletion(end.cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(end.memory[0], 7);
  EXPECT_EQ(end.memory[304], 5);
}

TEST_F(ToItself, MoreThanTheSocketHolds) {
  constexpr size_t kLarge = 32 << 20;
  std::vector<uint8_t> from(kLarge, 9), to(kLarge);
  End& end = *end_;
  ibv_mr* source = ibv_reg_mr(end.pd, from.data(), kLarge, 0);
  ibv_mr* target = ibv_reg_mr(end.pd, to.data(), kLarge, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  ibv_sge element = testing::ElementOf(source, 0, kLarge);
  ibv_send_wr write = end.Request(IBV_WR_RDMA_WRITE, &element, 1);
  write.wr.rdma = {reinterpret_cast<uintptr_t>(to.data()), target->rkey};
  ASSERT_EQ(end.Post(write), 0);
  EXPECT_EQ(WaitForCompletion(end.cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(from, to);
  EXPECT_EQ(ibv_dereg_mr(source), 0);
  EXPECT_EQ(ibv_dereg_mr(target), 0);
}

TEST_F(ToItself, ASendWaitsForItsReceive) {
  ASSERT_EQ(end_->Send(0, 8), 0);
  ASSERT_TRUE(AwaitRefusals(end_->qp));
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(end_->cq, 1, &wc), 0);
  ASSERT_EQ(end_->Receive(64, 8), 0);
  EXPECT_EQ(WaitForCompletion(end_->cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(WaitForCompletion(end_->cq).status, IBV_WC_SUCCESS);
}

TEST_F(ToItself, TheRequestToBlameIsTheOneThatFailed) { ExpectTheSecondToBeBlamed(*end_, *end_, IBV_WR_RDMA_WRITE); }

TEST_F(ToItself, AgainAfterReset) {
  for (int life = 0; life < 5; ++life) {
    ExpectMessageToItself();
    ASSERT_EQ(end_->ToState(IBV_QPS_RESET), 0);
    ASSERT_EQ(ToInit(end_->qp), 0);
    ASSERT_NO_FATAL_FAILURE(Connect(*end_));
  }
}

TEST_F(ToItself, AnUnreliableConnection) {
  end_ = std::make_unique<End>(context_, IBV_QPT_UC);
  ASSERT_EQ(end_->ToRtr(*end_, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN), 0);
  ASSERT_EQ(end_->ToRts(0, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
  ExpectMessageToItself();
}

}  // namespace
}  // namespace weft::verbs
