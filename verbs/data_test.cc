#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sim/cm/api.h"

// Two connected queue pairs in one process, driven through the inline verbs of <infiniband/verbs.h>: the operation
// tables, the ibv_wr_* family and the ibv_start_poll family.
namespace {

using weft::sim::CmApi;
using weft::sim::CmEvent;

// Remembers events, so that the test can wait for one.
class Recorder : public weft::sim::CmObserver {
 public:
  void OnCmEvent(CmEvent event) override {
    std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    came_.notify_all();
  }
  bool WaitFor(CmEvent::Kind kind, CmEvent* out) {
    std::unique_lock lock(mutex_);
    return came_.wait_for(lock, std::chrono::seconds(10), [&] {
      for (CmEvent& event : events_) {
        if (event.kind != kind) continue;
        *out = event;
        return true;
      }
      return false;
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<CmEvent> events_;
};

struct Side {
  ibv_pd* pd = nullptr;
  ibv_cq_ex* cq = nullptr;
  ibv_qp* qp = nullptr;
  ibv_mr* mr = nullptr;
  std::array<char, 4096> memory{};
  std::shared_ptr<weft::sim::Endpoint> endpoint;
  std::shared_ptr<Recorder> recorder = std::make_shared<Recorder>();
};

class VerbsData : public testing::Test {
 protected:
  static constexpr uint64_t kOperations = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ |
                                          IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV;

  void SetUp() override {
    ibv_device** list = ibv_get_device_list(nullptr);
    ASSERT_NE(list, nullptr);
    for (int i = 0; list[i] != nullptr; ++i) {
      if (std::string(ibv_get_device_name(list[i])) == "weft_lo") context_ = ibv_open_device(list[i]);
    }
    ibv_free_device_list(list);
    ASSERT_NE(context_, nullptr);
    for (Side* side : {&client_, &server_}) ASSERT_NO_FATAL_FAILURE(MakeSide(side));
    ASSERT_NO_FATAL_FAILURE(Connect());
  }

  void TearDown() override {
    for (Side* side : {&client_, &server_}) {
      if (side->endpoint) {
        side->endpoint->SetObserver(nullptr);
        side->endpoint->Close();
      }
      if (side->qp != nullptr) {
        EXPECT_EQ(ibv_destroy_qp(side->qp), 0);
      }
      if (side->mr != nullptr) {
        EXPECT_EQ(ibv_dereg_mr(side->mr), 0);
      }
      if (side->cq != nullptr) {
        EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(side->cq)), 0);
      }
      if (side->pd != nullptr) {
        EXPECT_EQ(ibv_dealloc_pd(side->pd), 0);
      }
    }
    if (context_ != nullptr) {
      EXPECT_EQ(ibv_close_device(context_), 0);
    }
  }

  void MakeSide(Side* side) {
    side->pd = ibv_alloc_pd(context_);
    ASSERT_NE(side->pd, nullptr);
    ibv_cq_init_attr_ex cq = {};
    cq.cqe = 64;
    cq.wc_flags = IBV_WC_STANDARD_FLAGS;
    side->cq = ibv_create_cq_ex(context_, &cq);
    ASSERT_NE(side->cq, nullptr);
    ibv_qp_init_attr_ex qp = {};
    qp.send_cq = qp.recv_cq = ibv_cq_ex_to_cq(side->cq);
    qp.qp_type = IBV_QPT_RC;
    qp.cap = {16, 16, 4, 4, 128};
    qp.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    qp.pd = side->pd;
    qp.send_ops_flags = kOperations;
    side->qp = ibv_create_qp_ex(context_, &qp);
    ASSERT_NE(side->qp, nullptr) << strerror(errno);
    ASSERT_NE(ibv_qp_to_qp_ex(side->qp), nullptr);
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    side->mr = ibv_reg_mr(side->pd, side->memory.data(), side->memory.size(), access);
    ASSERT_NE(side->mr, nullptr);
    ibv_qp_attr attributes = {};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    attributes.qp_access_flags = access;
    ASSERT_EQ(
        ibv_modify_qp(side->qp, &attributes, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS), 0);
  }

  void Connect() {
    ASSERT_EQ(weft_private_cm_api(CmApi::kVersion + 1), nullptr);
    CmApi* cm = weft_private_cm_api(CmApi::kVersion);
    ASSERT_NE(cm, nullptr);
    const auto any_port = weft::transport::SocketAddress::Parse("127.0.0.1", 0);
    ASSERT_TRUE(any_port.has_value());
    auto requests = std::make_shared<Recorder>();
    auto listener = cm->Listen(*any_port, 4, false, false, requests);
    ASSERT_TRUE(listener.ok());
    client_.endpoint = cm->CreateEndpoint();
    client_.endpoint->SetObserver(client_.recorder);
    weft::sim::ConnectParameters parameters;
    parameters.ird = parameters.ord = 4;
    ASSERT_EQ(client_.endpoint->Connect(*any_port, (*listener)->local_address(), client_.qp, parameters), 0);
    CmEvent event;
    ASSERT_TRUE(requests->WaitFor(CmEvent::Kind::kConnectRequest, &event));
    server_.endpoint = event.endpoint;
    server_.endpoint->SetObserver(server_.recorder);
    ASSERT_EQ(server_.endpoint->Accept(server_.qp, parameters), 0);
    ASSERT_TRUE(client_.recorder->WaitFor(CmEvent::Kind::kEstablished, &event));
    ASSERT_TRUE(server_.recorder->WaitFor(CmEvent::Kind::kEstablished, &event));
    (*listener)->Close();
  }

  // The next completion, read through the extended queue.
  ibv_wc Next(Side& side) {
    ibv_poll_cq_attr attributes = {};
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (ibv_start_poll(side.cq, &attributes) == ENOENT) {
      if (std::chrono::steady_clock::now() > until) {
        ADD_FAILURE() << "no completion came";
        return {};
      }
    }
    ibv_wc completion = {};
    completion.wr_id = side.cq->wr_id;
    completion.status = side.cq->status;
    completion.opcode = ibv_wc_read_opcode(side.cq);
    completion.byte_len = ibv_wc_read_byte_len(side.cq);
    completion.qp_num = ibv_wc_read_qp_num(side.cq);
    completion.wc_flags = ibv_wc_read_wc_flags(side.cq);
    completion.invalidated_rkey = ibv_wc_read_invalidated_rkey(side.cq);
    ibv_end_poll(side.cq);
    return completion;
  }

  void PostReceive(Side& side, uint64_t id, uint32_t length) {
    ibv_sge sge = {reinterpret_cast<uintptr_t>(side.memory.data()), length, side.mr->lkey};
    ibv_recv_wr wr = {};
    wr.wr_id = id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(side.qp, &wr, &bad), 0);
  }

  uint64_t At(Side& side, size_t offset) { return reinterpret_cast<uintptr_t>(side.memory.data()) + offset; }

  ibv_context* context_ = nullptr;
  Side client_, server_;
};

TEST_F(VerbsData, SendsThroughTheOperationTable) {
  PostReceive(server_, 7, 64);
  memcpy(client_.memory.data(), "hello", 5);
  ibv_sge sge = {At(client_, 0), 5, client_.mr->lkey};
  ibv_send_wr wr = {};
  wr.wr_id = 3;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(client_.qp, &wr, &bad), 0);
  const ibv_wc received = Next(server_);
  EXPECT_EQ(received.status, IBV_WC_SUCCESS);
  EXPECT_EQ(received.opcode, IBV_WC_RECV);
  EXPECT_EQ(received.wr_id, 7u);
  EXPECT_EQ(received.byte_len, 5u);
  EXPECT_EQ(received.qp_num, server_.qp->qp_num);
  EXPECT_EQ(memcmp(server_.memory.data(), "hello", 5), 0);
  const ibv_wc sent = Next(client_);
  EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
  EXPECT_EQ(sent.wr_id, 3u);
}

TEST_F(VerbsData, BatchOfWriteInlineAndSendArrivesInOrder) {
  PostReceive(server_, 1, 16);
  memcpy(client_.memory.data() + 100, "written", 7);
  ibv_qp_ex* qp = ibv_qp_to_qp_ex(client_.qp);
  char scratch[] = "inline";
  ibv_wr_start(qp);
  qp->wr_id = 10;
  qp->wr_flags = 0;
  ibv_wr_rdma_write(qp, server_.mr->rkey, At(server_, 200));
  ibv_wr_set_sge(qp, client_.mr->lkey, At(client_, 100), 7);
  qp->wr_id = 11;
  ibv_wr_rdma_write(qp, server_.mr->rkey, At(server_, 300));
  const ibv_data_buf pieces[] = {{scratch, 2}, {scratch + 2, 4}};
  ibv_wr_set_inline_data_list(qp, 2, pieces);
  qp->wr_id = 12;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(qp);
  ibv_wr_set_inline_data(qp, scratch, 6);
  memset(scratch, 'x', sizeof scratch);  // inline data may be reused at once
  ASSERT_EQ(ibv_wr_complete(qp), 0);

  EXPECT_EQ(Next(server_).byte_len, 6u);
  EXPECT_EQ(memcmp(server_.memory.data(), "inline", 6), 0);
  EXPECT_EQ(memcmp(server_.memory.data() + 200, "written", 7), 0);
  EXPECT_EQ(memcmp(server_.memory.data() + 300, "inline", 6), 0);
  const ibv_wc sent = Next(client_);
  EXPECT_EQ(sent.wr_id, 12u) << "the two Writes are not signaled";
  EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
}

TEST_F(VerbsData, ReadsIntoAListOfElements) {
  memcpy(server_.memory.data() + 50, "fetched", 7);
  ibv_qp_ex* qp = ibv_qp_to_qp_ex(client_.qp);
  ibv_wr_start(qp);
  qp->wr_id = 20;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_rdma_read(qp, server_.mr->rkey, At(server_, 50));
  const ibv_sge sge = {At(client_, 500), 7, client_.mr->lkey};
  ibv_wr_set_sge_list(qp, 1, &sge);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  const ibv_wc read = Next(client_);
  EXPECT_EQ(read.status, IBV_WC_SUCCESS);
  EXPECT_EQ(read.opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(memcmp(client_.memory.data() + 500, "fetched", 7), 0);
}

TEST_F(VerbsData, SendWithInvalidateReportsTheKey) {
  PostReceive(server_, 1, 16);
  ibv_mr* extra = ibv_reg_mr(server_.pd, server_.memory.data() + 1024, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  ASSERT_NE(extra, nullptr);
  ibv_mw* window = ibv_alloc_mw(server_.pd, IBV_MW_TYPE_2);
  ASSERT_NE(window, nullptr);
  ibv_send_wr bind = {}, *bad = nullptr;
  bind.opcode = IBV_WR_BIND_MW;
  bind.send_flags = IBV_SEND_SIGNALED;
  bind.bind_mw.mw = window;
  bind.bind_mw.rkey = window->rkey;
  bind.bind_mw.bind_info = {.mr = extra, .addr = At(server_, 1024), .length = 64, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
  ASSERT_EQ(ibv_post_send(server_.qp, &bind, &bad), 0);
  ASSERT_EQ(Next(server_).status, IBV_WC_SUCCESS);
  ibv_qp_ex* qp = ibv_qp_to_qp_ex(client_.qp);
  ibv_wr_start(qp);
  qp->wr_id = 30;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send_inv(qp, window->rkey);
  ibv_wr_set_inline_data(qp, const_cast<char*>("bye"), 3);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  const ibv_wc received = Next(server_);
  EXPECT_EQ(received.status, IBV_WC_SUCCESS);
  EXPECT_TRUE(received.wc_flags & IBV_WC_WITH_INV);
  EXPECT_EQ(received.invalidated_rkey, window->rkey);
  EXPECT_EQ(ibv_dealloc_mw(window), 0) << "an invalidated window is still the program's to free";
  EXPECT_EQ(ibv_dereg_mr(extra), 0);
  EXPECT_EQ(Next(client_).status, IBV_WC_SUCCESS);
}

TEST_F(VerbsData, RefusedBatchPostsNothing) {
  ibv_qp_ex* qp = ibv_qp_to_qp_ex(client_.qp);
  std::vector<char> large(64 * 1024);
  ibv_wr_start(qp);
  qp->wr_id = 40;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(qp);
  ibv_wr_set_inline_data(qp, large.data(), large.size());
  EXPECT_EQ(ibv_wr_complete(qp), EINVAL);

  ibv_wr_start(qp);
  ibv_wr_atomic_fetch_add(qp, server_.mr->rkey, At(server_, 0), 1);
  EXPECT_EQ(ibv_wr_complete(qp), EOPNOTSUPP);

  ibv_wr_start(qp);
  ibv_wr_send(qp);
  ibv_wr_abort(qp);

  ibv_qp_attr now;
  ibv_qp_init_attr size;
  ASSERT_EQ(ibv_query_qp(client_.qp, &now, IBV_QP_CAP, &size), 0);
  ibv_wr_start(qp);
  for (uint32_t i = 0; i <= size.cap.max_send_wr; ++i) {  // one more than fit
    ibv_wr_rdma_write(qp, server_.mr->rkey, At(server_, 0));
    ibv_wr_set_inline_data(qp, const_cast<char*>("x"), 1);
  }
  EXPECT_EQ(ibv_wr_complete(qp), ENOMEM);

  ibv_poll_cq_attr attributes = {};
  EXPECT_EQ(ibv_start_poll(client_.cq, &attributes), ENOENT);
  PostReceive(server_, 1, 16);
  ibv_wr_start(qp);
  qp->wr_id = 41;
  ibv_wr_send(qp);
  ibv_wr_set_inline_data(qp, const_cast<char*>("ok"), 2);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_EQ(Next(client_).wr_id, 41u);
  EXPECT_EQ(Next(server_).byte_len, 2u);
  EXPECT_NE(server_.memory[0], 'x');
}

}  // namespace
