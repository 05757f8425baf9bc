#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "verbs/testing/connected_pair.h"

// Shared receive queues as programs use them.
namespace {

using weft::verbs::testing::Connected;
using weft::verbs::testing::ElementOf;
using weft::verbs::testing::OpenLoopback;
using weft::verbs::testing::ToInit;
using weft::verbs::testing::WaitForCompletion;

constexpr uint32_t kBytes = 64;  // of each receive

class SharedReceives : public testing::Test {
 protected:
  void SetUp() override {
    context_ = OpenLoopback();
    ASSERT_NE(context_, nullptr);
    pd_ = ibv_alloc_pd(context_);
    sent_ = ibv_create_cq(context_, 256, nullptr, nullptr, 0);
    received_ = ibv_create_cq(context_, 256, nullptr, nullptr, 0);
    mr_ = ibv_reg_mr(pd_, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(mr_, nullptr);
    ibv_srq_init_attr attributes = {};
    attributes.srq_context = this;
    attributes.attr = {32, 2, 0};
    srq_ = ibv_create_srq(pd_, &attributes);
    ASSERT_NE(srq_, nullptr) << strerror(errno);
    EXPECT_GE(attributes.attr.max_wr, 32u);
  }

  void TearDown() override {
    connections_.clear();
    for (ibv_qp* qp : queue_pairs_) EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_destroy_srq(srq_), 0);
    EXPECT_EQ(ibv_dereg_mr(mr_), 0);
    EXPECT_EQ(ibv_destroy_cq(sent_), 0);
    EXPECT_EQ(ibv_destroy_cq(received_), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    EXPECT_EQ(ibv_close_device(context_), 0);
  }

  ibv_qp* MakeQp(ibv_srq* srq) {
    ibv_qp_init_attr attributes = {};
    attributes.send_cq = sent_;
    attributes.recv_cq = received_;
    attributes.srq = srq;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {64, 4, 1, 1, 0};
    attributes.sq_sig_all = 1;
    ibv_qp* qp = ibv_create_qp(pd_, &attributes);
    if (qp == nullptr) return nullptr;
    queue_pairs_.push_back(qp);
    EXPECT_EQ(ToInit(qp), 0);
    return qp;
  }

  // A queue pair that takes from the shared queue, and one connected to it.
  struct Pair {
    ibv_qp* client;
    ibv_qp* server;
  };
  Pair MakePair() {
    Pair pair{MakeQp(nullptr), MakeQp(srq_)};
    connections_.push_back(std::make_unique<Connected>(pair.client, pair.server));
    return pair;
  }

  void Post(uint64_t id) {
    ibv_sge element = ElementOf(mr_, id * kBytes, kBytes);
    ibv_recv_wr wr = {};
    wr.wr_id = id;
    wr.sg_list = &element;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(srq_, &wr, &bad), 0);
  }

  void Send(ibv_qp* qp, const char* text) {
    char* const at = memory_.data() + memory_.size() - kBytes;
    std::strcpy(at, text);
    ibv_sge element = ElementOf(mr_, memory_.size() - kBytes, static_cast<uint32_t>(std::strlen(text) + 1));
    ibv_send_wr wr = {};
    wr.sg_list = &element;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(qp, &wr, &bad), 0);
    ASSERT_EQ(WaitForCompletion(sent_).status, IBV_WC_SUCCESS);
  }

  // The next event, if one comes within five seconds.
  ibv_async_event NextEvent() {
    ibv_async_event event = {};
    event.event_type = IBV_EVENT_DEVICE_FATAL;
    pollfd ready = {context_->async_fd, POLLIN, 0};
    if (poll(&ready, 1, 5000) == 1) {
      EXPECT_EQ(ibv_get_async_event(context_, &event), 0);
      ibv_ack_async_event(&event);
    }
    return event;
  }

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq *sent_ = nullptr, *received_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_srq* srq_ = nullptr;
  std::array<char, 64 * kBytes> memory_{};
  std::vector<ibv_qp*> queue_pairs_;
  std::vector<std::unique_ptr<Connected>> connections_;
};

TEST_F(SharedReceives, SizesAreCheckedAndQueried) {
  ibv_device_attr limits;
  ASSERT_EQ(ibv_query_device(context_, &limits), 0);
  EXPECT_TRUE(limits.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
  for (const ibv_srq_attr& attr : {ibv_srq_attr{0, 1, 0}, ibv_srq_attr{static_cast<uint32_t>(limits.max_srq_wr) + 1, 1, 0},
                                   ibv_srq_attr{1, static_cast<uint32_t>(limits.max_srq_sge) + 1, 0}}) {
    ibv_srq_init_attr attributes = {nullptr, attr};
    errno = 0;
    EXPECT_EQ(ibv_create_srq(pd_, &attributes), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
  EXPECT_EQ(srq_->srq_context, this);
  ibv_srq_attr now = {};
  ASSERT_EQ(ibv_query_srq(srq_, &now), 0);
  EXPECT_EQ(now.max_wr, 32u);
  EXPECT_EQ(now.max_sge, 2u);
  EXPECT_EQ(now.srq_limit, 0u);
  ibv_srq_attr wanted = {64, 0, 10};
  ASSERT_EQ(ibv_modify_srq(srq_, &wanted, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
  ASSERT_EQ(ibv_query_srq(srq_, &now), 0);
  EXPECT_EQ(now.max_wr, 64u);
  EXPECT_EQ(now.srq_limit, 10u);
  wanted.srq_limit = 65;
  EXPECT_EQ(ibv_modify_srq(srq_, &wanted, IBV_SRQ_LIMIT), EINVAL);
}

TEST_F(SharedReceives, ExtendedCreationKnowsTheBasicType) {
  ibv_srq_init_attr_ex attributes = {};
  attributes.attr = {8, 1, 0};
  attributes.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  attributes.srq_type = IBV_SRQT_BASIC;
  attributes.pd = pd_;
  ibv_srq* other = ibv_create_srq_ex(context_, &attributes);
  ASSERT_NE(other, nullptr);
  uint32_t number = 0, other_number = 0;
  EXPECT_EQ(ibv_get_srq_num(srq_, &number), 0);
  EXPECT_EQ(ibv_get_srq_num(other, &other_number), 0);
  EXPECT_NE(number, other_number);
  EXPECT_EQ(ibv_destroy_srq(other), 0);

  attributes.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
  EXPECT_EQ(ibv_create_srq_ex(context_, &attributes), nullptr);
  EXPECT_EQ(errno, EINVAL) << "without a protection domain";
  attributes.srq_type = IBV_SRQT_TM;
  EXPECT_EQ(ibv_create_srq_ex(context_, &attributes), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(SharedReceives, KeepsItsDomainBusyAndIsKeptByQueuePairs) {
  ibv_pd* pd = ibv_alloc_pd(context_);
  ibv_srq_init_attr attributes = {};
  attributes.attr = {1, 1, 0};
  ibv_srq* srq = ibv_create_srq(pd, &attributes);
  ASSERT_NE(srq, nullptr);
  EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
  ibv_qp* qp = MakeQp(srq);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(ibv_destroy_srq(srq), EBUSY);
  ASSERT_EQ(ibv_destroy_qp(qp), 0);
  queue_pairs_.clear();
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

TEST_F(SharedReceives, AQueuePairOfTheQueueTakesNoReceivesOfItsOwn) {
  ibv_qp* qp = MakeQp(srq_);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(qp->srq, srq_);
  ibv_qp_attr state;
  ibv_qp_init_attr init;
  ASSERT_EQ(ibv_query_qp(qp, &state, IBV_QP_CAP, &init), 0);
  EXPECT_EQ(init.srq, srq_);
  EXPECT_EQ(init.cap.max_recv_wr, 0u);
  ibv_recv_wr wr = {};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_recv(qp, &wr, &bad), EINVAL);
  EXPECT_EQ(bad, &wr);
}

TEST_F(SharedReceives, SeveralQueuePairsTakeInTurn) {
  const Pair first = MakePair(), second = MakePair();
  for (uint64_t id = 0; id < 6; ++id) Post(id);
  for (uint64_t id = 0; id < 6; ++id) {
    const Pair& pair = id % 2 == 0 ? first : second;
    Send(pair.client, id % 2 == 0 ? "to the first" : "to the second");
    const ibv_wc completion = WaitForCompletion(received_);
    EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
    EXPECT_EQ(completion.wr_id, id);
    EXPECT_EQ(completion.qp_num, pair.server->qp_num);
    EXPECT_STREQ(memory_.data() + id * kBytes, id % 2 == 0 ? "to the first" : "to the second");
  }
}

TEST_F(SharedReceives, TheLimitIsAnAsynchronousEvent) {
  const Pair pair = MakePair();
  for (uint64_t id = 0; id < 3; ++id) Post(id);
  ibv_srq_attr limit = {};
  limit.srq_limit = 2;
  ASSERT_EQ(ibv_modify_srq(srq_, &limit, IBV_SRQ_LIMIT), 0);
  Send(pair.client, "one");
  EXPECT_EQ(WaitForCompletion(received_).wr_id, 0u);
  pollfd ready = {context_->async_fd, POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 0), 0);
  Send(pair.client, "two");
  EXPECT_EQ(WaitForCompletion(received_).wr_id, 1u);
  const ibv_async_event event = NextEvent();
  EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(event.element.srq, srq_);
}

TEST_F(SharedReceives, DestroyingWaitsUntilEventsAreAcknowledged) {
  const Pair pair = MakePair();
  Post(0);
  ibv_srq_attr limit = {};
  limit.srq_limit = 1;
  ASSERT_EQ(ibv_modify_srq(srq_, &limit, IBV_SRQ_LIMIT), 0);
  Send(pair.client, "one");
  EXPECT_EQ(WaitForCompletion(received_).wr_id, 0u);
  ibv_async_event event = {};
  ASSERT_EQ(ibv_get_async_event(context_, &event), 0);
  connections_.clear();
  for (ibv_qp* qp : queue_pairs_) EXPECT_EQ(ibv_destroy_qp(qp), 0);
  queue_pairs_.clear();
  std::atomic<bool> acknowledged = false;
  std::thread destroyer([&] {
    EXPECT_EQ(ibv_destroy_srq(srq_), 0);
    EXPECT_TRUE(acknowledged.load());
  });
  acknowledged = true;
  ibv_ack_async_event(&event);
  destroyer.join();
  ibv_srq_init_attr attributes = {};
  attributes.attr = {1, 1, 0};
  srq_ = ibv_create_srq(pd_, &attributes);
}

TEST_F(SharedReceives, AQueuePairInErrorLeavesTheReceivesToTheOthers) {
  const Pair first = MakePair(), second = MakePair();
  Post(0);
  Post(1);
  connections_[0]->Disconnect();
  const ibv_async_event event = NextEvent();
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(event.element.qp, first.server);
  ibv_wc completion;
  EXPECT_EQ(ibv_poll_cq(received_, 1, &completion), 0) << "receives of the shared queue are not flushed";
  Send(second.client, "still here");
  EXPECT_EQ(WaitForCompletion(received_).wr_id, 0u);
  Send(second.client, "still here");
  EXPECT_EQ(WaitForCompletion(received_).wr_id, 1u);
}

TEST_F(SharedReceives, KeysAreThoseOfTheQueuesDomain) {
  ibv_pd* pd = ibv_alloc_pd(context_);
  std::array<char, kBytes> bytes{};
  ibv_mr* mr = ibv_reg_mr(pd, bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE);
  ibv_srq_init_attr attributes = {};
  attributes.attr = {1, 1, 0};
  ibv_srq* srq = ibv_create_srq(pd, &attributes);
  ASSERT_NE(srq, nullptr);
  ibv_qp *client = MakeQp(nullptr), *server = MakeQp(srq);
  connections_.push_back(std::make_unique<Connected>(client, server));
  ibv_sge element = ElementOf(mr, 0, kBytes);
  ibv_recv_wr wr = {};
  wr.sg_list = &element;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
  Send(client, "hello");
  EXPECT_EQ(WaitForCompletion(received_).status, IBV_WC_SUCCESS);
  EXPECT_STREQ(bytes.data(), "hello");
  connections_.clear();
  for (ibv_qp* qp : queue_pairs_) EXPECT_EQ(ibv_destroy_qp(qp), 0);
  queue_pairs_.clear();
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

}  // namespace
