#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <pthread.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "verbs/testing/connected_pair.h"

// A thread that uses verbs is cancelled (pthread_cancel(3)). Posting, polling and their kin are no cancellation points: the thread ends at one of its own, with all
// done that it asked for, and nothing of the library's locked. ibv_get_cq_event is one, and loses no event.
namespace weft::verbs::testing {
namespace {

constexpr uint32_t kBytes = 64;
constexpr uint32_t kDepth = 16;

class Cancellation : public ::testing::Test {
 protected:
  void SetUp() override {
    context_ = OpenLoopback();
    ASSERT_NE(context_, nullptr);
    pd_ = ibv_alloc_pd(context_);
    memory_.resize(4 * kBytes);
    mr_ = ibv_reg_mr(pd_, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    channel_ = ibv_create_comp_channel(context_);
    Open();
  }

  void TearDown() override {
    Close();
    EXPECT_EQ(ibv_destroy_comp_channel(channel_), 0);
    EXPECT_EQ(ibv_dereg_mr(mr_), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    EXPECT_EQ(ibv_close_device(context_), 0);
  }

  void Open() {
    client_cq_ = ibv_create_cq(context_, 2 * kDepth, nullptr, nullptr, 0);
    server_cq_ = ibv_create_cq(context_, 2 * kDepth, nullptr, channel_, 0);
    client_ = MakeQp(client_cq_);
    server_ = MakeQp(server_cq_);
    connected_ = std::make_unique<Connected>(client_, server_);
  }

  void Close() {
    connected_.reset();
    EXPECT_EQ(ibv_destroy_qp(client_), 0);
    EXPECT_EQ(ibv_destroy_qp(server_), 0);
    EXPECT_EQ(ibv_destroy_cq(client_cq_), 0);
    EXPECT_EQ(ibv_destroy_cq(server_cq_), 0);
  }

  ibv_qp* MakeQp(ibv_cq* cq) {
    ibv_qp_init_attr init = {};
    init.send_cq = init.recv_cq = cq;
    init.qp_type = IBV_QPT_RC;
    init.cap = {kDepth, kDepth, 1, 1, 0};
    init.sq_sig_all = 1;
    ibv_qp* qp = ibv_create_qp(pd_, &init);
    EXPECT_EQ(ToInit(qp), 0);
    return qp;
  }

  // A thread that is cancelled before it begins with `work` gets to its end.
  void IsDoneByTheCancelled(const std::function<void()>& work) {
    struct Task {
      const std::function<void()>* work;
      bool done = false;
    } task{&work};
    pthread_t thread;
    const auto body = [](void* argument) -> void* {
      auto* const task = static_cast<Task*>(argument);
      pthread_cancel(pthread_self());  // to be acted on at the next cancellation point
      (*task->work)();
      task->done = true;
      pthread_testcancel();
      return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, nullptr, body, &task), 0);
    void* result = nullptr;
    ASSERT_EQ(pthread_join(thread, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    EXPECT_TRUE(task.done);
  }

  void PostReceive() {
    ibv_sge into = ElementOf(mr_, kBytes, kBytes);
    ibv_recv_wr receive = {.wr_id = 1, .next = nullptr, .sg_list = &into, .num_sge = 1};
    ibv_recv_wr* bad;
    EXPECT_EQ(ibv_post_recv(server_, &receive, &bad), 0);
  }

  void Post(ibv_wr_opcode opcode, uint32_t offset) {
    ibv_sge piece = ElementOf(mr_, offset, kBytes);
    ibv_send_wr request = {};
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = opcode;
    request.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(mr_->addr) + kBytes;
    request.wr.rdma.rkey = mr_->rkey;
    ibv_send_wr* bad;
    EXPECT_EQ(ibv_post_send(client_, &request, &bad), 0);
  }

  void Fill(uint8_t with) { std::memset(memory_.data(), with, kBytes); }
  bool Arrived(uint32_t offset) { return std::memcmp(memory_.data(), memory_.data() + offset, kBytes) == 0; }

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  std::vector<uint8_t> memory_;
  ibv_mr* mr_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq *client_cq_ = nullptr, *server_cq_ = nullptr;
  ibv_qp *client_ = nullptr, *server_ = nullptr;
  std::unique_ptr<Connected> connected_;
};

TEST_F(Cancellation, ASendArrives) {
  for (uint8_t round = 1; round <= 20; ++round) {
    Fill(round);
    IsDoneByTheCancelled([this] {
      PostReceive();
      Post(IBV_WR_SEND, 0);
      EXPECT_EQ(WaitForCompletion(server_cq_).status, IBV_WC_SUCCESS);
      EXPECT_EQ(WaitForCompletion(client_cq_).status, IBV_WC_SUCCESS);
    });
    EXPECT_TRUE(Arrived(kBytes));
  }
}

TEST_F(Cancellation, AWriteAndARead) {
  for (uint8_t round = 1; round <= 20; ++round) {
    Fill(round);
    IsDoneByTheCancelled([this] {
      Post(IBV_WR_RDMA_WRITE, 0);
      Post(IBV_WR_RDMA_READ, 2 * kBytes);
      EXPECT_EQ(WaitForCompletion(client_cq_).status, IBV_WC_SUCCESS);
      EXPECT_EQ(WaitForCompletion(client_cq_).status, IBV_WC_SUCCESS);
    });
    EXPECT_TRUE(Arrived(2 * kBytes));
  }
}

TEST_F(Cancellation, QueuePairsComeAndGo) {
  for (int round = 0; round < 5; ++round) {
    connected_.reset();
    IsDoneByTheCancelled([this] { Close(); });
    IsDoneByTheCancelled([this] {
      client_cq_ = ibv_create_cq(context_, 2 * kDepth, nullptr, nullptr, 0);
      server_cq_ = ibv_create_cq(context_, 2 * kDepth, nullptr, channel_, 0);
      client_ = MakeQp(client_cq_);
      server_ = MakeQp(server_cq_);
    });
    connected_ = std::make_unique<Connected>(client_, server_);
    PostReceive();
    Post(IBV_WR_SEND, 0);
    EXPECT_EQ(WaitForCompletion(server_cq_).status, IBV_WC_SUCCESS);
    EXPECT_EQ(WaitForCompletion(client_cq_).status, IBV_WC_SUCCESS);
  }
}

// As rping's thread of completions, which its program cancels.
TEST_F(Cancellation, WhoWaitsForAnEventEndsThere) {
  for (uint8_t round = 1; round <= 20; ++round) {
    pthread_t thread;
    const auto body = [](void* channel) -> void* {
      ibv_cq* cq;
      void* context;
      ibv_get_cq_event(static_cast<ibv_comp_channel*>(channel), &cq, &context);
      return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, nullptr, body, channel_), 0);
    ASSERT_EQ(pthread_cancel(thread), 0);
    void* result = nullptr;
    ASSERT_EQ(pthread_join(thread, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);

    IsDoneByTheCancelled([this] {
      EXPECT_EQ(ibv_req_notify_cq(server_cq_, 0), 0);
      PostReceive();
      Post(IBV_WR_SEND, 0);  // wakes whoever waits for events
      EXPECT_EQ(WaitForCompletion(client_cq_).status, IBV_WC_SUCCESS);
    });
    ibv_cq* cq = nullptr;
    void* context;
    ASSERT_EQ(ibv_get_cq_event(channel_, &cq, &context), 0);
    EXPECT_EQ(cq, server_cq_);
    ibv_ack_cq_events(cq, 1);
    EXPECT_EQ(WaitForCompletion(server_cq_).status, IBV_WC_SUCCESS);
  }
}

}  // namespace
}  // namespace weft::verbs::testing
