// What a UD queue pair refuses, its states, and its number.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <vector>

#include "verbs/testing/datagrams.h"

namespace weft::verbs {
namespace {

using testing::BringUp;
using testing::Datagrams;
using testing::InState;
using testing::kGrh;
using testing::kInit;
using testing::kNothing;
using testing::Modify;
using testing::StateOf;

TEST_F(Datagrams, AreNotSentByWorkRequestsThatAreWrong) {
  ibv_send_wr wr = To(second_, nullptr);
  wr.wr.ud.ah = nullptr;
  EXPECT_EQ(Post(first_, wr), EINVAL);
  wr = To(second_, nullptr);
  wr.wr.ud.remote_qpn = 0xffffff;  // of groups, but the address is a host's
  EXPECT_EQ(Post(first_, wr), EINVAL);
  wr = To(second_, nullptr);
  wr.opcode = IBV_WR_RDMA_WRITE;
  EXPECT_EQ(Post(first_, wr), EINVAL);
  wr = To(second_, nullptr);
  wr.num_sge = 5;
  EXPECT_EQ(Post(first_, wr), EINVAL);
}

// The completion says so (IBTA volume 1, C10-10), and what was posted before it has been sent.
TEST_F(Datagrams, ByAnAddressHandleOfAnotherDomainStopTheSendQueueOnly) {
  ibv_pd* other = ibv_alloc_pd(context_);
  ibv_ah_attr attributes = Route(0);
  ibv_ah* stranger = ibv_create_ah(other, &attributes);
  EXPECT_EQ(ibv_dealloc_pd(other), EBUSY);
  ibv_send_wr before = To(second_, nullptr), wr = To(second_, nullptr);
  before.next = &wr;
  wr.wr.ud.ah = stranger;
  ASSERT_EQ(Receive(second_, 0, 100), 0);
  ASSERT_EQ(Post(first_, before), 0);
  ExpectSent();
  EXPECT_EQ(NextSend().status, IBV_WC_LOC_QP_OP_ERR);
  EXPECT_EQ(StateOf(first_), IBV_QPS_SQE);
  EXPECT_EQ(Next().status, IBV_WC_SUCCESS);
  ASSERT_EQ(Send(first_, second_, "flushed"), 0);
  EXPECT_EQ(NextSend().status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(ibv_destroy_ah(stranger), 0);
  EXPECT_EQ(ibv_dealloc_pd(other), 0);
}

TEST_F(Datagrams, FromMemoryThatIsNotRegisteredStopTheSendQueueOnly) {
  uint64_t stray = 0;
  ibv_sge sge{reinterpret_cast<uint64_t>(&stray), 8, mr_->lkey};
  ibv_send_wr wr = To(second_, &sge);
  ASSERT_EQ(Post(first_, wr), 0);
  EXPECT_EQ(NextSend().status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(StateOf(first_), IBV_QPS_SQE);
  ASSERT_EQ(Send(first_, second_, "flushed"), 0);
  EXPECT_EQ(NextSend().status, IBV_WC_WR_FLUSH_ERR);
  ASSERT_EQ(Receive(first_, 0, 200), 0);
  ASSERT_EQ(Send(second_, first_, "received"), 0);
  ExpectSent();
  EXPECT_EQ(Next().byte_len, kGrh + 8);
  ASSERT_EQ(Modify(first_, IBV_QPS_RTS, IBV_QP_STATE), 0);
  ASSERT_EQ(Receive(second_, 0, 200), 0);
  ExpectOnlyMarker();
}

TEST_F(Datagrams, IntoMemoryThatIsNotRegisteredAreAnError) {
  uint8_t stray[100];
  ibv_sge sge{reinterpret_cast<uint64_t>(stray), sizeof stray, mr_->lkey};
  ibv_recv_wr wr{5, nullptr, &sge, 1}, *bad = nullptr;
  ASSERT_EQ(ibv_post_recv(second_, &wr, &bad), 0);
  ASSERT_EQ(Receive(second_, 0, 200, 6), 0);
  ASSERT_EQ(Send(first_, second_, "x"), 0);
  ExpectSent();
  ibv_wc wc = Next();
  EXPECT_EQ(wc.status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(wc.wr_id, 5u);
  wc = Next();
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(wc.wr_id, 6u);
  EXPECT_EQ(StateOf(second_), IBV_QPS_ERR);
  ibv_async_event event;
  ASSERT_EQ(ibv_get_async_event(context_, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
  EXPECT_EQ(event.element.qp, second_);
  ibv_ack_async_event(&event);
}

TEST_F(Datagrams, DoNotLookAtMemoryThatNoByteGoesInto) {
  const auto at = reinterpret_cast<uint64_t>(memory_.data());
  // The first element ends beyond its region, and there is no such region as the second's.
  ibv_sge sges[] = {{at + memory_.size() - 100, 1000, mr_->lkey}, {0, 1024, 0}};
  ibv_recv_wr wr{7, nullptr, sges, 2}, *bad = nullptr;
  ASSERT_EQ(ibv_post_recv(second_, &wr, &bad), 0);
  ASSERT_EQ(Send(first_, second_, "short"), 0);
  ExpectSent();
  const ibv_wc wc = Next();
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.wr_id, 7u);
  EXPECT_EQ(wc.byte_len, kGrh + 5);
  EXPECT_EQ(memcmp(memory_.data() + memory_.size() - 100 + kGrh, "short", 5), 0);
}

TEST_F(Datagrams, ErrorStateFlushesBothQueues) {
  ASSERT_EQ(Receive(second_, 0, 200, 9), 0);
  ASSERT_EQ(Modify(second_, IBV_QPS_ERR, IBV_QP_STATE), 0);
  ibv_wc wc = Next();
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(wc.wr_id, 9u);
  ASSERT_EQ(Receive(second_, 0, 200, 10), 0);
  EXPECT_EQ(Next().status, IBV_WC_WR_FLUSH_ERR);
  ASSERT_EQ(Send(second_, first_, "x"), 0);
  EXPECT_EQ(NextSend().status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(Datagrams, ResetForgetsAndTheQueuePairWorksAgainWithItsNumber) {
  const uint32_t number = second_->qp_num;
  ASSERT_EQ(Receive(second_, 0, 200), 0);
  ASSERT_EQ(Modify(second_, IBV_QPS_RESET, IBV_QP_STATE), 0);
  ASSERT_EQ(Send(first_, second_, "to a queue pair in RESET"), 0);
  ExpectSent();
  EXPECT_EQ(Next(50).status, kNothing);
  BringUp(second_);
  EXPECT_EQ(second_->qp_num, number);
  ASSERT_EQ(Receive(second_, 0, 200), 0);
  ExpectOnlyMarker();
}

TEST_F(Datagrams, PostingNeedsTheRightState) {
  ibv_qp* fresh = MakeQp();
  ASSERT_NE(fresh, nullptr);
  EXPECT_EQ(Receive(fresh, 0, 100), EINVAL);
  EXPECT_EQ(Send(fresh, second_, "x"), EINVAL);
  ASSERT_EQ(Modify(fresh, IBV_QPS_INIT, kInit), 0);
  EXPECT_EQ(Receive(fresh, 0, 100), 0);
  EXPECT_EQ(Send(fresh, second_, "x"), EINVAL);
  ASSERT_EQ(Modify(fresh, IBV_QPS_RTR, IBV_QP_STATE), 0);
  EXPECT_EQ(Send(fresh, second_, "x"), EINVAL);
  EXPECT_EQ(ibv_destroy_qp(fresh), 0);
}

TEST_F(Datagrams, IllegalModificationsLeaveTheStateAsItWas) {
  ibv_qp* fresh = MakeQp();
  ASSERT_NE(fresh, nullptr);
  EXPECT_EQ(Modify(fresh, IBV_QPS_RTR, IBV_QP_STATE), EINVAL);
  EXPECT_EQ(Modify(fresh, IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT), EINVAL) << "no Q_Key";
  EXPECT_EQ(Modify(fresh, IBV_QPS_INIT, kInit | IBV_QP_ACCESS_FLAGS), EINVAL) << "not of datagrams";
  ibv_qp_attr attributes = InState(IBV_QPS_INIT);
  attributes.port_num = 2;
  EXPECT_EQ(ibv_modify_qp(fresh, &attributes, kInit), EINVAL);
  EXPECT_EQ(StateOf(fresh), IBV_QPS_RESET);
  ASSERT_EQ(Modify(fresh, IBV_QPS_INIT, kInit), 0);
  EXPECT_EQ(Modify(fresh, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN), EINVAL);
  EXPECT_EQ(Modify(fresh, IBV_QPS_RTR, IBV_QP_STATE | IBV_QP_DEST_QPN), EINVAL);
  EXPECT_EQ(StateOf(fresh), IBV_QPS_INIT);
  ASSERT_EQ(Modify(fresh, IBV_QPS_RTR, IBV_QP_STATE), 0);
  EXPECT_EQ(Modify(fresh, IBV_QPS_RTS, IBV_QP_STATE), EINVAL) << "no SQ_PSN";
  EXPECT_EQ(StateOf(fresh), IBV_QPS_RTR);
  EXPECT_EQ(ibv_destroy_qp(fresh), 0);
}

TEST_F(Datagrams, QkeyMayChangeWhileRunning) {
  ASSERT_EQ(Modify(second_, IBV_QPS_RTS, IBV_QP_QKEY, 0x22), 0);
  ASSERT_EQ(Receive(second_, 0, 200), 0);
  ASSERT_EQ(Send(first_, second_, "old"), 0);
  ExpectSent();
  ASSERT_EQ(Send(first_, second_, "new!", 0x22), 0);
  ExpectSent();
  EXPECT_EQ(Next().byte_len, kGrh + 4);
  ibv_qp_attr attributes;
  ibv_qp_init_attr init;
  ASSERT_EQ(ibv_query_qp(second_, &attributes, IBV_QP_QKEY, &init), 0);
  EXPECT_EQ(attributes.qkey, 0x22u);
}

TEST_F(Datagrams, SendsWaitWhileTheQueueIsDrained) {
  ibv_qp_attr attributes = InState(IBV_QPS_SQD);
  attributes.en_sqd_async_notify = 1;
  ASSERT_EQ(ibv_modify_qp(first_, &attributes, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
  ibv_async_event event;
  ASSERT_EQ(ibv_get_async_event(context_, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_SQ_DRAINED);
  ibv_ack_async_event(&event);
  ASSERT_EQ(Receive(second_, 0, 200), 0);
  ASSERT_EQ(Send(first_, second_, "later"), 0);
  EXPECT_EQ(NextSend(20).status, kNothing);
  ASSERT_EQ(Modify(first_, IBV_QPS_RTS, IBV_QP_STATE), 0);
  ExpectSent();
  EXPECT_EQ(Next().byte_len, kGrh + 5);
}

TEST_F(Datagrams, NumbersAreUniqueBeyondTheQueuePairsOfOnePort) {
  std::vector<ibv_qp*> many;
  std::set<uint32_t> numbers{first_->qp_num, second_->qp_num};
  for (int i = 0; i < 300; ++i) {
    many.push_back(MakeQp(1));
    ASSERT_NE(many.back(), nullptr);
    EXPECT_TRUE(numbers.insert(many.back()->qp_num).second);
    EXPECT_LT(many.back()->qp_num, 0xffffffu);
  }
  ibv_qp* last = many.back();
  EXPECT_NE(last->qp_num >> 8, first_->qp_num >> 8);
  BringUp(last);
  ASSERT_EQ(Receive(last, 0, 200), 0);
  ASSERT_EQ(Send(first_, last, "far"), 0);
  ExpectSent();
  EXPECT_EQ(Next().qp_num, last->qp_num);
  for (ibv_qp* qp : many) EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

// UCX does that when it ends; an adapter would write to the pages, which it has pinned.
TEST_F(Datagrams, IntoMemoryThatIsRegisteredButUnmappedDoNoHarm) {
  constexpr size_t kPage = 4096;
  void* const gone = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gone, MAP_FAILED);
  ibv_mr* const mr = ibv_reg_mr(pd_, gone, kPage, IBV_ACCESS_LOCAL_WRITE);
  ibv_sge sge{reinterpret_cast<uint64_t>(gone), 200, mr->lkey};
  ibv_recv_wr wr{1, nullptr, &sge, 1}, *bad = nullptr;
  ASSERT_EQ(ibv_post_recv(second_, &wr, &bad), 0);
  ASSERT_EQ(munmap(gone, kPage), 0);
  ASSERT_EQ(Send(first_, second_, "lost"), 0);
  ExpectSent();
  EXPECT_EQ(Next().byte_len, kGrh + 4);
  ASSERT_EQ(Receive(second_, 1000, 200), 0);
  ExpectOnlyMarker(1000);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Datagrams, ReachNoMemoryOfADestroyedQueuePair) {
  ibv_qp* gone = MakeQp();
  BringUp(gone);
  memset(memory_.data(), 0, 200);
  ASSERT_EQ(Receive(gone, 0, 200), 0);
  ibv_send_wr wr = To(gone, nullptr);
  ASSERT_EQ(ibv_destroy_qp(gone), 0);
  ASSERT_EQ(Post(first_, wr), 0);
  ASSERT_EQ(Receive(second_, 1000, 200), 0);
  ExpectOnlyMarker(1000);
  EXPECT_EQ(memory_[20], 0);
}

}  // namespace
}  // namespace weft::verbs
