#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>
#include <string>
#include <vector>

// Unreliable datagrams between queue pairs of this process, over the loopback interface.
namespace {

constexpr uint32_t kQkey = 0x11111111;
constexpr uint32_t kGrh = 40;
constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;

ibv_qp_attr InState(ibv_qp_state state, uint32_t qkey = kQkey) {
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  attributes.port_num = 1;
  attributes.qkey = qkey;
  return attributes;
}

int Modify(ibv_qp* qp, ibv_qp_state state, int mask, uint32_t qkey = kQkey) {
  ibv_qp_attr attributes = InState(state, qkey);
  return ibv_modify_qp(qp, &attributes, mask);
}

ibv_qp_state StateOf(ibv_qp* qp) {
  ibv_qp_attr attributes;
  ibv_qp_init_attr init;
  EXPECT_EQ(ibv_query_qp(qp, &attributes, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(init.qp_type, IBV_QPT_UD);
  return attributes.qp_state;
}

void BringUp(ibv_qp* qp, uint32_t qkey = kQkey) {
  ASSERT_EQ(Modify(qp, IBV_QPS_INIT, kInit, qkey), 0);
  ASSERT_EQ(Modify(qp, IBV_QPS_RTR, IBV_QP_STATE), 0);
  ASSERT_EQ(Modify(qp, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

constexpr ibv_wc_status kNothing = IBV_WC_TM_RNDV_INCOMPLETE;  // of no datagram's completion

class Datagrams : public testing::Test {
 protected:
  void SetUp() override {
    ibv_device** list = ibv_get_device_list(nullptr);
    ASSERT_NE(list, nullptr);
    for (int i = 0; list[i] != nullptr; ++i) {
      if (std::string(ibv_get_device_name(list[i])) == "weft_lo") context_ = ibv_open_device(list[i]);
    }
    ibv_free_device_list(list);
    ASSERT_NE(context_, nullptr);
    pd_ = ibv_alloc_pd(context_);
    channel_ = ibv_create_comp_channel(context_);
    cq_ = ibv_create_cq(context_, 100, nullptr, channel_, 0);
    send_cq_ = ibv_create_cq(context_, 100, nullptr, nullptr, 0);
    memory_.resize(64 * 1024);
    mr_ = ibv_reg_mr(pd_, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(mr_, nullptr);
    first_ = MakeQp();
    second_ = MakeQp();
    ASSERT_NE(first_, nullptr);
    ASSERT_NE(second_, nullptr);
    BringUp(first_);
    BringUp(second_);
    ah_ = MakeAh(0);
    ASSERT_NE(ah_, nullptr);
  }
  void TearDown() override {
    EXPECT_EQ(ibv_destroy_ah(ah_), 0);
    EXPECT_EQ(ibv_destroy_qp(first_), 0);
    EXPECT_EQ(ibv_destroy_qp(second_), 0);
    EXPECT_EQ(ibv_dereg_mr(mr_), 0);
    EXPECT_EQ(ibv_destroy_cq(cq_), 0);
    EXPECT_EQ(ibv_destroy_cq(send_cq_), 0);
    EXPECT_EQ(ibv_destroy_comp_channel(channel_), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    EXPECT_EQ(ibv_close_device(context_), 0);
  }

  ibv_qp* MakeQp(uint32_t depth = 40) {
    ibv_qp_init_attr init{};
    init.send_cq = send_cq_;
    init.recv_cq = cq_;
    init.qp_type = IBV_QPT_UD;
    init.cap = {depth, depth, 4, 4, 64};
    return ibv_create_qp(pd_, &init);
  }

  // Of this host; by GID index, which is 127.0.0.1 or ::1.
  ibv_ah_attr Route(uint8_t gid_index) {
    ibv_ah_attr attributes{};
    attributes.is_global = 1;
    attributes.port_num = 1;
    attributes.grh.sgid_index = gid_index;
    attributes.grh.hop_limit = 7;
    attributes.grh.traffic_class = 0x20;
    EXPECT_EQ(ibv_query_gid(context_, 1, gid_index, &attributes.grh.dgid), 0);
    return attributes;
  }
  ibv_ah* MakeAh(uint8_t gid_index) {
    ibv_ah_attr attributes = Route(gid_index);
    return ibv_create_ah(pd_, &attributes);
  }
  ibv_ah* MakeGroupAh(const ibv_gid& group) {
    ibv_ah_attr attributes = Route(0);
    attributes.grh.dgid = group;
    return ibv_create_ah(pd_, &attributes);
  }

  int Receive(ibv_qp* qp, uint32_t offset, uint32_t length, uint64_t id = 1) {
    ibv_sge sge{reinterpret_cast<uint64_t>(memory_.data() + offset), length, mr_->lkey};
    ibv_recv_wr wr{id, nullptr, &sge, 1}, *bad = nullptr;
    return ibv_post_recv(qp, &wr, &bad);
  }

  ibv_send_wr To(ibv_qp* to, ibv_sge* sge, uint32_t qkey = kQkey) {
    ibv_send_wr wr{};
    wr.wr_id = 2;
    wr.sg_list = sge;
    wr.num_sge = sge != nullptr ? 1 : 0;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud = {ah_, to->qp_num, qkey};
    return wr;
  }
  int Post(ibv_qp* from, ibv_send_wr& wr) {
    ibv_send_wr* bad = nullptr;
    const int error = ibv_post_send(from, &wr, &bad);
    EXPECT_EQ(bad, error == 0 ? nullptr : &wr);
    return error;
  }
  // Sends `text`, out of the end of the memory.
  int Send(ibv_qp* from, ibv_qp* to, const std::string& text, uint32_t qkey = kQkey) {
    uint8_t* at = memory_.data() + memory_.size() - 8192;
    memcpy(at, text.data(), text.size());
    ibv_sge sge{reinterpret_cast<uint64_t>(at), static_cast<uint32_t>(text.size()), mr_->lkey};
    ibv_send_wr wr = To(to, &sge, qkey);
    return Post(from, wr);
  }

  // The next completion; status kNothing if none comes in time.
  ibv_wc NextOf(ibv_cq* cq, int milliseconds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    ibv_wc wc{};
    do {
      if (ibv_poll_cq(cq, 1, &wc) == 1) return wc;
    } while (std::chrono::steady_clock::now() < deadline);
    wc.status = kNothing;
    return wc;
  }
  ibv_wc Next(int milliseconds = 5000) { return NextOf(cq_, milliseconds); }
  ibv_wc NextSend(int milliseconds = 5000) { return NextOf(send_cq_, milliseconds); }
  void ExpectSent() {
    const ibv_wc wc = NextSend();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_SEND);
    EXPECT_EQ(wc.wr_id, 2u);
  }
  // That what was sent before is dropped: a datagram behind it comes first.
  void ExpectOnlyMarker(uint32_t offset = 0) {
    ASSERT_EQ(Send(first_, second_, "marker"), 0);
    ExpectSent();
    const ibv_wc wc = Next();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.byte_len, kGrh + 6);
    EXPECT_EQ(memcmp(memory_.data() + offset + kGrh, "marker", 6), 0);
  }

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq *cq_ = nullptr, *send_cq_ = nullptr;  // of receives; of sends
  ibv_mr* mr_ = nullptr;
  ibv_qp *first_ = nullptr, *second_ = nullptr;
  ibv_ah* ah_ = nullptr;
  std::vector<uint8_t> memory_;
};

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

TEST_F(Datagrams, OfTheLargestSizeArriveAndLargerOnesAreRefused) {
  ASSERT_EQ(Receive(second_, 0, kGrh + 4096), 0);
  ASSERT_EQ(Send(first_, second_, std::string(4096, 'm')), 0);
  ExpectSent();
  EXPECT_EQ(Next().byte_len, kGrh + 4096);
  EXPECT_EQ(Send(first_, second_, std::string(4097, 'm')), EINVAL);
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

TEST_F(Datagrams, AreNotSentByWorkRequestsThatAreWrong) {
  ibv_send_wr wr = To(second_, nullptr);
  wr.wr.ud.ah = nullptr;
  EXPECT_EQ(Post(first_, wr), EINVAL);
  wr = To(second_, nullptr);
  wr.wr.ud.remote_qpn = 0x1000000;
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
  ibv_pd* other = ibv_alloc_pd(context_);
  ibv_ah_attr attributes = Route(0);
  ibv_ah* stranger = ibv_create_ah(other, &attributes);
  EXPECT_EQ(ibv_dealloc_pd(other), EBUSY);
  wr = To(second_, nullptr);
  wr.wr.ud.ah = stranger;
  EXPECT_EQ(Post(first_, wr), EINVAL);
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
