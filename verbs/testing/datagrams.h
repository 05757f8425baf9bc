#ifndef VERBS_TESTING_DATAGRAMS_H_
#define VERBS_TESTING_DATAGRAMS_H_

// UD queue pairs of one process, for tests.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace weft::verbs::testing {

inline constexpr uint32_t kQkey = 0x11111111;
inline constexpr uint32_t kGrh = 40;
inline constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;

inline ibv_qp_attr InState(ibv_qp_state state, uint32_t qkey = kQkey) {
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  attributes.port_num = 1;
  attributes.qkey = qkey;
  return attributes;
}

inline int Modify(ibv_qp* qp, ibv_qp_state state, int mask, uint32_t qkey = kQkey) {
  ibv_qp_attr attributes = InState(state, qkey);
  return ibv_modify_qp(qp, &attributes, mask);
}

inline ibv_qp_state StateOf(ibv_qp* qp) {
  ibv_qp_attr attributes;
  ibv_qp_init_attr init;
  EXPECT_EQ(ibv_query_qp(qp, &attributes, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(init.qp_type, IBV_QPT_UD);
  return attributes.qp_state;
}

inline void BringUp(ibv_qp* qp, uint32_t qkey = kQkey) {
  ASSERT_EQ(Modify(qp, IBV_QPS_INIT, kInit, qkey), 0);
  ASSERT_EQ(Modify(qp, IBV_QPS_RTR, IBV_QP_STATE), 0);
  ASSERT_EQ(Modify(qp, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

inline constexpr ibv_wc_status kNothing = IBV_WC_TM_RNDV_INCOMPLETE;  // a status that no datagram's completion has

// Two queue pairs on the loopback device, ready to send, and memory for both.
class Datagrams : public ::testing::Test {
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

  // The address of this host with this GID index: 127.0.0.1 or ::1.
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
  // Sends `text`, from the end of the memory.
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
  // Expects that what was sent before is dropped: a datagram sent after it arrives first.
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
  ibv_cq *cq_ = nullptr, *send_cq_ = nullptr;  // for receives; for sends
  ibv_mr* mr_ = nullptr;
  ibv_qp *first_ = nullptr, *second_ = nullptr;
  ibv_ah* ah_ = nullptr;
  std::vector<uint8_t> memory_;
};

}  // namespace weft::verbs::testing

#endif  // VERBS_TESTING_DATAGRAMS_H_
