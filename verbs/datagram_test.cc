// Unreliable datagrams between queue pairs of this process, over the loopback interface.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "verbs/testing/datagrams.h"

namespace weft::verbs {
namespace {

using testing::BringUp;
using testing::Datagrams;
using testing::kGrh;
using testing::StateOf;
using testing::kNothing;
using testing::kQkey;
using testing::Modify;

TEST_F(Datagrams, ArriveBehindAGlobalHeader) {
  ASSERT_EQ(Receive(second_, 0, 200, 77), 0);
  ASSERT_EQ(Send(first_, second_, "hello"), 0);
  ExpectSent();
  const ibv_wc wc = Next();
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV);
  EXPECT_EQ(wc.wr_id, 77u);
  EXPECT_EQ(wc.byte_len, kGrh + 5);
  EXPECT_EQ(wc.qp_num, second_->qp_num);
  EXPECT_EQ(wc.src_qp, first_->qp_num);
  EXPECT_EQ(wc.wc_flags, unsigned{IBV_WC_GRH});
  EXPECT_EQ(wc.sl, 2) << "an IPv4 header, as mlx5 says it and UCX believes it";
  EXPECT_EQ(memcmp(memory_.data() + kGrh, "hello", 5), 0);
  EXPECT_EQ(memory_[20], 0x45);
  EXPECT_EQ(memory_[21], 0x20) << "traffic class";
  EXPECT_EQ(memory_[28], 7) << "hop limit";
  EXPECT_EQ(memcmp(memory_.data() + 32, "\x7f\0\0\1\x7f\0\0\1", 8), 0);
}

TEST_F(Datagrams, ArriveOverIpv6) {
  ASSERT_EQ(ibv_destroy_ah(ah_), 0);
  ah_ = MakeAh(1);
  ASSERT_NE(ah_, nullptr);
  ASSERT_EQ(Receive(second_, 0, 200), 0);
  ASSERT_EQ(Send(first_, second_, "six"), 0);
  ExpectSent();
  EXPECT_EQ(Next().byte_len, kGrh + 3);
  ibv_gid gid;
  ASSERT_EQ(ibv_query_gid(context_, 1, 1, &gid), 0);
  EXPECT_EQ(memory_[0] >> 4, 6);
  EXPECT_EQ(memcmp(memory_.data() + 8, gid.raw, 16), 0);
  EXPECT_EQ(memcmp(memory_.data() + 24, gid.raw, 16), 0);
}

TEST_F(Datagrams, QueuePairMaySendToItself) {
  ASSERT_EQ(Receive(first_, 0, 200), 0);
  ASSERT_EQ(Send(first_, first_, "me"), 0);
  ExpectSent();
  EXPECT_EQ(Next().src_qp, first_->qp_num);
}

TEST_F(Datagrams, CarryImmediateData) {
  ASSERT_EQ(Receive(second_, 0, 200), 0);
  ibv_send_wr wr = To(second_, nullptr);
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.imm_data = 0x12345678;
  ASSERT_EQ(Post(first_, wr), 0);
  ExpectSent();
  const ibv_wc got = Next();
  EXPECT_EQ(got.wc_flags, unsigned{IBV_WC_GRH | IBV_WC_WITH_IMM});
  EXPECT_EQ(got.imm_data, 0x12345678u);
  EXPECT_EQ(got.byte_len, kGrh);
}

TEST_F(Datagrams, GatherAndScatterAcrossTheHeader) {
  ibv_sge into[3] = {{reinterpret_cast<uint64_t>(memory_.data()), 10, mr_->lkey},
                     {reinterpret_cast<uint64_t>(memory_.data() + 100), 35, mr_->lkey},
                     {reinterpret_cast<uint64_t>(memory_.data() + 200), 50, mr_->lkey}};
  ibv_recv_wr receive{1, nullptr, into, 3}, *bad_receive = nullptr;
  ASSERT_EQ(ibv_post_recv(second_, &receive, &bad_receive), 0);
  memcpy(memory_.data() + 1000, "abcdef", 6);
  memcpy(memory_.data() + 2000, "ghij", 4);
  ibv_sge from[2] = {{reinterpret_cast<uint64_t>(memory_.data() + 1000), 6, mr_->lkey},
                     {reinterpret_cast<uint64_t>(memory_.data() + 2000), 4, mr_->lkey}};
  ibv_send_wr wr = To(second_, from);
  wr.num_sge = 2;
  ASSERT_EQ(Post(first_, wr), 0);
  ExpectSent();
  EXPECT_EQ(Next().byte_len, kGrh + 10);
  EXPECT_EQ(memcmp(memory_.data() + 130, "abcde", 5), 0);
  EXPECT_EQ(memcmp(memory_.data() + 200, "fghij", 5), 0);
}

TEST_F(Datagrams, InlineDataMayChangeAtOnce) {
  ASSERT_EQ(Receive(second_, 0, 200), 0);
  char text[] = "inline";
  ibv_sge sge{reinterpret_cast<uint64_t>(text), 6, 0};
  ibv_send_wr wr = To(second_, &sge);
  wr.send_flags |= IBV_SEND_INLINE;
  ASSERT_EQ(Post(first_, wr), 0);
  memset(text, 'x', 6);
  ExpectSent();
  EXPECT_EQ(Next().byte_len, kGrh + 6);
  EXPECT_EQ(memcmp(memory_.data() + kGrh, "inline", 6), 0);
}

// Those that are too long are not sent, and that is no error (IBTA volume 1, C10-93.1.1).
TEST_F(Datagrams, OfTheLargestSizeArriveAndLargerOnesAreNotSent) {
  ASSERT_EQ(Receive(second_, 0, kGrh + 4096), 0);
  ASSERT_EQ(Send(first_, second_, std::string(4096, 'm')), 0);
  ExpectSent();
  EXPECT_EQ(Next().byte_len, kGrh + 4096);
  ASSERT_EQ(Receive(second_, 0, 3 * 4096), 0);
  ASSERT_EQ(Send(first_, second_, std::string(4097, 'm')), 0);
  ExpectSent();
  EXPECT_EQ(StateOf(first_), IBV_QPS_RTS);
  ExpectOnlyMarker();
}

TEST_F(Datagrams, BetweenThoseThatAreTooLongAreSent) {
  for (int i = 0; i < 2; ++i) ASSERT_EQ(Receive(second_, static_cast<uint32_t>(i) * 100, 100), 0);
  uint8_t* const at = memory_.data() + 8192;
  ibv_sge sges[5];
  ibv_send_wr requests[5];
  for (uint32_t i = 0; i < 5; ++i) {
    sges[i] = {reinterpret_cast<uint64_t>(at), i % 2 == 0 ? 5000u : i, mr_->lkey};
    requests[i] = To(second_, &sges[i]);
    requests[i].next = i == 4 ? nullptr : &requests[i + 1];
  }
  ASSERT_EQ(Post(first_, requests[0]), 0);
  for (int i = 0; i < 5; ++i) ExpectSent();
  EXPECT_EQ(Next().byte_len, kGrh + 1);
  EXPECT_EQ(Next().byte_len, kGrh + 3);
}

TEST_F(Datagrams, GoByTheLow24BitsOfTheNumber) {
  ASSERT_EQ(Receive(second_, 0, 100), 0);
  ibv_sge sge{reinterpret_cast<uint64_t>(memory_.data() + 8192), 8, mr_->lkey};
  ibv_send_wr wr = To(second_, &sge);
  wr.wr.ud.remote_qpn |= 0xba000000;
  ASSERT_EQ(Post(first_, wr), 0);
  ExpectSent();
  EXPECT_EQ(Next().byte_len, kGrh + 8);
}

TEST_F(Datagrams, ManyInOneListArriveInOrder) {
  std::vector<ibv_send_wr> list(40);
  std::vector<ibv_sge> pieces(40);
  for (uint32_t i = 0; i < 40; ++i) {
    ASSERT_EQ(Receive(second_, i * 100, 100, i), 0);
    pieces[i] = {reinterpret_cast<uint64_t>(memory_.data() + 50000), i, mr_->lkey};
    list[i] = To(second_, &pieces[i]);
    list[i].send_flags = i == 39 ? IBV_SEND_SIGNALED : 0;
    list[i].next = i < 39 ? &list[i + 1] : nullptr;
  }
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(first_, list.data(), &bad), 0);
  uint32_t next = 0;
  ExpectSent();
  for (int i = 0; i < 40; ++i) {
    const ibv_wc wc = Next();
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wr_id, next);
    EXPECT_EQ(wc.byte_len, kGrh + next);
    ++next;
  }
}

TEST_F(Datagrams, WithAnotherQkeyAreDropped) {
  ASSERT_EQ(Receive(second_, 0, 200), 0);
  ASSERT_EQ(Send(first_, second_, "other", kQkey + 1), 0);
  ExpectSent();
  ExpectOnlyMarker();
}

TEST_F(Datagrams, QkeyWithTheHighBitMeansTheSendersOwn) {
  ASSERT_EQ(Receive(second_, 0, 200), 0);
  ASSERT_EQ(Send(first_, second_, "own", 0x80000000), 0);
  ExpectSent();
  EXPECT_EQ(Next().byte_len, kGrh + 3);
}

TEST_F(Datagrams, WithoutAPostedReceiveAreDropped) {
  ASSERT_EQ(Send(first_, second_, "nobody listens"), 0);
  ExpectSent();
  EXPECT_EQ(Next(50).status, kNothing);
  ASSERT_EQ(Receive(second_, 0, 200), 0);
  ExpectOnlyMarker();
}

TEST_F(Datagrams, ThatDoNotFitAreDroppedAndTheReceiveStays) {
  ASSERT_EQ(Receive(second_, 0, kGrh + 6), 0);
  ASSERT_EQ(Send(first_, second_, "7 bytes"), 0);
  ExpectSent();
  ExpectOnlyMarker();
}

TEST_F(Datagrams, ToNoQueuePairAreDropped) {
  ASSERT_EQ(Receive(second_, 0, 200), 0);
  uint8_t byte = 0;
  ibv_sge sge{reinterpret_cast<uint64_t>(&byte), 1, 0};
  ibv_send_wr wr = To(second_, &sge);
  wr.send_flags |= IBV_SEND_INLINE;
  wr.wr.ud.remote_qpn = second_->qp_num ^ 0x80;
  ASSERT_EQ(Post(first_, wr), 0);
  ExpectSent();
  ExpectOnlyMarker();
}

TEST_F(Datagrams, AreAnsweredByWhatTheCompletionSays) {
  for (uint8_t gid_index : {0, 1}) {
    ASSERT_EQ(ibv_destroy_ah(ah_), 0);
    ah_ = MakeAh(gid_index);
    ASSERT_EQ(Receive(second_, 0, 200), 0);
    ASSERT_EQ(Send(first_, second_, "question"), 0);
    ExpectSent();
    ibv_wc wc = Next();
    ASSERT_EQ(wc.opcode, IBV_WC_RECV);
    ibv_ah_attr attributes;
    ASSERT_EQ(ibv_init_ah_from_wc(context_, 1, &wc, reinterpret_cast<ibv_grh*>(memory_.data()), &attributes), 0);
    EXPECT_EQ(attributes.is_global, 1);
    EXPECT_EQ(attributes.grh.sgid_index, gid_index);
    EXPECT_EQ(attributes.grh.traffic_class, 0x20);
    ibv_ah* back = ibv_create_ah_from_wc(pd_, &wc, reinterpret_cast<ibv_grh*>(memory_.data()), 1);
    ASSERT_NE(back, nullptr);
    ASSERT_EQ(Receive(first_, 1000, 200), 0);
    ibv_sge sge{reinterpret_cast<uint64_t>(memory_.data() + 3000), 6, mr_->lkey};
    ibv_send_wr wr = To(first_, &sge);
    wr.wr.ud.ah = back;
    wr.wr.ud.remote_qpn = wc.src_qp;
    ASSERT_EQ(Post(second_, wr), 0);
    ExpectSent();
    EXPECT_EQ(Next().src_qp, second_->qp_num);
    EXPECT_EQ(ibv_destroy_ah(back), 0);
  }
}

TEST_F(Datagrams, WakeWhoSleepsOnTheCompletionChannel) {
  ASSERT_EQ(Receive(second_, 0, 200), 0);
  ASSERT_EQ(ibv_req_notify_cq(cq_, 1), 0);  // solicited only
  ASSERT_EQ(Send(first_, second_, "quiet"), 0);
  pollfd ready{channel_->fd, POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 50), 0);
  ASSERT_EQ(Receive(second_, 0, 200), 0);
  ibv_send_wr wr = To(second_, nullptr);
  wr.send_flags |= IBV_SEND_SOLICITED;
  ASSERT_EQ(Post(first_, wr), 0);
  EXPECT_EQ(poll(&ready, 1, 5000), 1);
  ibv_cq* cq;
  void* of;
  ASSERT_EQ(ibv_get_cq_event(channel_, &cq, &of), 0);
  ibv_ack_cq_events(cq, 1);
}

TEST_F(Datagrams, AddressHandlesNeedAGlobalRouteThatExists) {
  const auto expect_refused = [&](ibv_ah_attr attributes) {
    errno = 0;
    EXPECT_EQ(ibv_create_ah(pd_, &attributes), nullptr);
    EXPECT_EQ(errno, EINVAL);
  };
  ibv_ah_attr wrong = Route(0);
  wrong.is_global = 0;
  wrong.dlid = 5;  // the port's is 0
  expect_refused(wrong);
  wrong = Route(0);
  wrong.port_num = 2;
  expect_refused(wrong);
  wrong = Route(0);
  wrong.grh.sgid_index = 200;
  expect_refused(wrong);
  wrong = Route(0);
  wrong.grh.dgid = {};
  expect_refused(wrong);
  ibv_wc wc{};
  ibv_ah_attr attributes;
  EXPECT_EQ(ibv_init_ah_from_wc(context_, 1, &wc, reinterpret_cast<ibv_grh*>(memory_.data()), &attributes), -1) << "no GRH";
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(Datagrams, ToTheOwnLidReachTheOwnHost) {
  ibv_ah_attr attributes{};
  attributes.port_num = 1;
  ASSERT_EQ(ibv_destroy_ah(ah_), 0);
  ah_ = ibv_create_ah(pd_, &attributes);
  ASSERT_NE(ah_, nullptr);
  ASSERT_EQ(Receive(second_, 0, 200), 0);
  ASSERT_EQ(Send(first_, second_, "lid"), 0);
  ExpectSent();
  EXPECT_EQ(Next().byte_len, kGrh + 3);
}

TEST_F(Datagrams, ArriveInASharedReceiveQueue) {
  ibv_srq_init_attr shared{};
  shared.attr = {8, 1, 0};
  ibv_srq* srq = ibv_create_srq(pd_, &shared);
  ASSERT_NE(srq, nullptr);
  ibv_qp* members[2];
  for (ibv_qp*& qp : members) {
    ibv_qp_init_attr init{};
    init.send_cq = send_cq_;
    init.recv_cq = cq_;
    init.srq = srq;
    init.qp_type = IBV_QPT_UD;
    init.cap = {8, 0, 1, 0, 0};
    qp = ibv_create_qp(pd_, &init);
    ASSERT_NE(qp, nullptr);
    BringUp(qp);
    EXPECT_EQ(Receive(qp, 0, 100), EINVAL);
  }
  ASSERT_EQ(Send(first_, members[0], "dropped"), 0);  // no receive yet
  ExpectSent();
  EXPECT_EQ(Next(50).status, kNothing);
  for (uint64_t id = 0; id < 2; ++id) {
    ibv_sge sge{reinterpret_cast<uint64_t>(memory_.data() + id * 200), 200, mr_->lkey};
    ibv_recv_wr wr{id, nullptr, &sge, 1}, *bad = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
  }
  for (uint64_t id = 0; id < 2; ++id) {
    ASSERT_EQ(Send(first_, members[id], std::string(1 + id, 's')), 0);
    ExpectSent();
    const ibv_wc wc = Next();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.qp_num, members[id]->qp_num);
    EXPECT_EQ(wc.byte_len, kGrh + 1 + id);
  }
  EXPECT_EQ(ibv_destroy_srq(srq), EBUSY);
  ASSERT_EQ(Modify(members[0], IBV_QPS_ERR, IBV_QP_STATE), 0);
  ibv_async_event event;
  ASSERT_EQ(ibv_get_async_event(context_, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  ibv_ack_async_event(&event);
  for (ibv_qp* qp : members) EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(Datagrams, ToAGroupReachEveryMemberAndOnlyMembers) {
  const ibv_gid group = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 7, 7, 7}};
  ibv_gid other = group;
  other.raw[15] = 8;
  ibv_ah* to_group = MakeGroupAh(group);
  ASSERT_NE(to_group, nullptr);
  ASSERT_EQ(ibv_attach_mcast(first_, &group, 0), 0);
  ASSERT_EQ(ibv_attach_mcast(second_, &group, 0), 0);
  ASSERT_EQ(ibv_attach_mcast(second_, &group, 0), 0) << "once more is no error";
  ibv_qp* stranger = MakeQp();
  BringUp(stranger);
  ASSERT_EQ(ibv_attach_mcast(stranger, &other, 0), 0);
  EXPECT_EQ(ibv_destroy_qp(stranger), EBUSY);
  for (ibv_qp* qp : {first_, second_, stranger}) {
    ASSERT_EQ(Receive(qp, 0, 200), 0);
    ASSERT_EQ(Receive(qp, 0, 200), 0);
  }
  ibv_send_wr wr = To(second_, nullptr);
  wr.wr.ud = {to_group, 0xffffff, kQkey};
  ASSERT_EQ(Post(first_, wr), 0);
  std::multiset<uint32_t> got;
  ExpectSent();
  for (int i = 0; i < 2; ++i) {
    const ibv_wc wc = Next();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.src_qp, first_->qp_num);
    got.insert(wc.qp_num);
  }
  EXPECT_EQ(got, (std::multiset<uint32_t>{first_->qp_num, second_->qp_num}));
  EXPECT_EQ(Next(50).status, kNothing) << "one copy each";

  ASSERT_EQ(ibv_detach_mcast(second_, &group, 0), 0);
  EXPECT_EQ(ibv_detach_mcast(second_, &group, 0), EINVAL);
  ASSERT_EQ(Post(first_, wr), 0);
  ExpectSent();
  EXPECT_EQ(Next().qp_num, first_->qp_num);
  EXPECT_EQ(Next(50).status, kNothing);
  ASSERT_EQ(ibv_detach_mcast(first_, &group, 0), 0);
  ASSERT_EQ(ibv_detach_mcast(stranger, &other, 0), 0);
  EXPECT_EQ(ibv_destroy_qp(stranger), 0);
  EXPECT_EQ(ibv_destroy_ah(to_group), 0);
}

TEST_F(Datagrams, OnlyGroupsAreAttachedTo) {
  ibv_gid host;
  ASSERT_EQ(ibv_query_gid(context_, 1, 0, &host), 0);
  EXPECT_EQ(ibv_attach_mcast(first_, &host, 0), EINVAL);
}

TEST_F(Datagrams, ArePostedByTheExtendedInterface) {
  ibv_qp_init_attr_ex init{};
  init.send_cq = send_cq_;
  init.recv_cq = cq_;
  init.qp_type = IBV_QPT_UD;
  init.cap = {8, 8, 1, 1, 64};
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  init.pd = pd_;
  init.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ;
  EXPECT_EQ(ibv_create_qp_ex(context_, &init), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  init.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  ibv_qp* qp = ibv_create_qp_ex(context_, &init);
  ASSERT_NE(qp, nullptr);
  BringUp(qp);
  ASSERT_EQ(Receive(second_, 0, 200), 0);
  ASSERT_EQ(Receive(second_, 1000, 200), 0);
  ibv_qp_ex* ex = ibv_qp_to_qp_ex(qp);
  ibv_wr_start(ex);
  ex->wr_id = 2;
  ex->wr_flags = 0;
  ibv_wr_send(ex);
  ibv_wr_set_ud_addr(ex, ah_, second_->qp_num, kQkey);
  ibv_wr_set_inline_data(ex, const_cast<char*>("plain"), 5);
  ex->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send_imm(ex, 0x55);
  ibv_wr_set_ud_addr(ex, ah_, second_->qp_num, kQkey);
  ibv_wr_set_inline_data(ex, const_cast<char*>("with imm"), 8);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  ExpectSent();
  EXPECT_EQ(Next().byte_len, kGrh + 5);
  const ibv_wc wc = Next();
  EXPECT_EQ(wc.byte_len, kGrh + 8);
  EXPECT_EQ(wc.imm_data, 0x55u);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

}  // namespace
}  // namespace weft::verbs
