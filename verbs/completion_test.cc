#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "verbs/testing/connected_pair.h"

// Extended completion queues, resizing under traffic, moderation, thread and parent domains.
namespace {

using weft::verbs::testing::Connected;
using weft::verbs::testing::OpenLoopback;
using weft::verbs::testing::ToInit;
using weft::verbs::testing::WaitForCompletion;

class Completions : public testing::Test {
 protected:
  void SetUp() override {
    context_ = OpenLoopback();
    ASSERT_NE(context_, nullptr);
    pd_ = ibv_alloc_pd(context_);
    ASSERT_NE(pd_, nullptr);
  }
  void TearDown() override {
    EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    EXPECT_EQ(ibv_close_device(context_), 0);
  }

  ibv_cq_init_attr_ex CqAttributes(uint64_t wc_flags, uint32_t flags = 0) {
    ibv_cq_init_attr_ex attributes = {};
    attributes.cqe = 256;
    attributes.wc_flags = wc_flags;
    attributes.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    attributes.flags = flags;
    return attributes;
  }

  ibv_qp* MakeQp(ibv_pd* pd, ibv_cq* send_cq, ibv_cq* receive_cq) {
    ibv_qp_init_attr attributes = {};
    attributes.send_cq = send_cq;
    attributes.recv_cq = receive_cq;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {64, 64, 1, 1, 8};
    attributes.sq_sig_all = 1;
    ibv_qp* qp = ibv_create_qp(pd, &attributes);
    EXPECT_NE(qp, nullptr) << strerror(errno);
    EXPECT_EQ(ToInit(qp), 0);
    return qp;
  }

  // `count` completions of flushed receives with consecutive ids.
  void Flush(ibv_qp* qp, uint64_t first, int count) {
    for (int i = 0; i < count; ++i) {
      ibv_recv_wr wr = {};
      wr.wr_id = first + static_cast<uint64_t>(i);
      ibv_recv_wr* bad = nullptr;
      ASSERT_EQ(ibv_post_recv(qp, &wr, &bad), 0);
    }
  }
  void ToError(ibv_qp* qp) {
    ibv_qp_attr attributes = {};
    attributes.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(ibv_modify_qp(qp, &attributes, IBV_QP_STATE), 0);
  }

  uint64_t RawClock() {
    ibv_values_ex values = {};
    values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    EXPECT_EQ(ibv_query_rt_values_ex(context_, &values), 0);
    EXPECT_EQ(values.comp_mask, uint32_t{IBV_VALUES_MASK_RAW_CLOCK});
    EXPECT_EQ(values.raw_clock.tv_sec, 0);
    return static_cast<uint64_t>(values.raw_clock.tv_nsec);
  }
  static uint64_t WallClock() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  }

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
};

TEST_F(Completions, TheDeviceSaysWhatItCan) {
  ibv_device_attr_ex attributes;
  ASSERT_EQ(ibv_query_device_ex(context_, nullptr, &attributes), 0);
  EXPECT_EQ(attributes.completion_timestamp_mask, UINT64_MAX);
  EXPECT_EQ(attributes.hca_core_clock, 1'000'000u) << "kHz: time stamps are nanoseconds";
  EXPECT_EQ(attributes.tso_caps.max_tso, 0u);
  EXPECT_EQ(attributes.rss_caps.max_rwq_indirection_tables, 0u);
  EXPECT_EQ(attributes.max_wq_type_rq, 0u);
  EXPECT_EQ(attributes.raw_packet_caps, 0u);
  EXPECT_EQ(attributes.tm_caps.max_num_tags, 0u);
  EXPECT_EQ(attributes.cq_mod_caps.max_cq_count, UINT16_MAX);
  EXPECT_EQ(attributes.cq_mod_caps.max_cq_period, UINT16_MAX);
  const bool has_xrc = context_->device->transport_type == IBV_TRANSPORT_IB;
  EXPECT_EQ(attributes.xrc_odp_caps != 0, has_xrc);
}

TEST_F(Completions, CarryTimeStampsOfBothClocks) {
  ibv_cq_init_attr_ex attributes = CqAttributes(uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                                IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
  ibv_cq_ex* cq = ibv_create_cq_ex(context_, &attributes);
  ASSERT_NE(cq, nullptr) << strerror(errno);
  ibv_qp* qp = MakeQp(pd_, ibv_cq_ex_to_cq(cq), ibv_cq_ex_to_cq(cq));
  Flush(qp, 0, 10);
  const uint64_t raw_before = RawClock(), wall_before = WallClock();
  ToError(qp);
  const uint64_t raw_after = RawClock(), wall_after = WallClock();
  constexpr uint64_t kSlack = 100'000'000;  // the wall clock is one of two readings of other clocks
  ibv_poll_cq_attr poll = {};
  ASSERT_EQ(ibv_start_poll(cq, &poll), 0);
  uint64_t last = raw_before;
  for (uint64_t id = 0; id < 10; ++id) {
    if (id > 0) {
      ASSERT_EQ(ibv_next_poll(cq), 0);
    }
    EXPECT_EQ(cq->wr_id, id);
    EXPECT_EQ(cq->status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_GE(ibv_wc_read_completion_ts(cq), last);
    last = ibv_wc_read_completion_ts(cq);
    EXPECT_GE(ibv_wc_read_completion_wallclock_ns(cq) + kSlack, wall_before);
    EXPECT_LE(ibv_wc_read_completion_wallclock_ns(cq), wall_after + kSlack);
  }
  EXPECT_LE(last, raw_after);
  EXPECT_EQ(ibv_next_poll(cq), ENOENT);
  ibv_end_poll(cq);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

TEST_F(Completions, FieldsThatNobodyHasAreRefused) {
  for (uint64_t flag : {uint64_t{IBV_WC_EX_WITH_CVLAN}, uint64_t{IBV_WC_EX_WITH_FLOW_TAG}, uint64_t{IBV_WC_EX_WITH_TM_INFO},
                        uint64_t{1} << 40}) {
    ibv_cq_init_attr_ex attributes = CqAttributes(flag);
    errno = 0;
    EXPECT_EQ(ibv_create_cq_ex(context_, &attributes), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
  ibv_cq_init_attr_ex attributes = CqAttributes(0, 1u << 9);
  EXPECT_EQ(ibv_create_cq_ex(context_, &attributes), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  attributes = CqAttributes(0);
  attributes.comp_mask = 1u << 9;
  EXPECT_EQ(ibv_create_cq_ex(context_, &attributes), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(Completions, AQueueThatIgnoresOverrunsRaisesNoEvent) {
  ibv_cq_init_attr_ex attributes = CqAttributes(0, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
  attributes.cqe = 4;
  ibv_cq_ex* cq = ibv_create_cq_ex(context_, &attributes);
  ASSERT_NE(cq, nullptr);
  ibv_qp* qp = MakeQp(pd_, ibv_cq_ex_to_cq(cq), ibv_cq_ex_to_cq(cq));
  Flush(qp, 0, 10);
  ToError(qp);
  pollfd ready = {context_->async_fd, POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 0), 0);
  std::array<ibv_wc, 10> out;
  ASSERT_EQ(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 10, out.data()), cq->cqe);
  EXPECT_EQ(out[static_cast<size_t>(cq->cqe) - 1].wr_id, 9u);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

// Each completion is read by one thread, whole.
TEST_F(Completions, SeveralThreadsMayReadOneQueue) {
  ibv_cq_init_attr_ex attributes = CqAttributes(uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
  attributes.cqe = 4096;
  ibv_cq_ex* cq = ibv_create_cq_ex(context_, &attributes);
  ASSERT_NE(cq, nullptr);
  ibv_qp* qp = MakeQp(pd_, ibv_cq_ex_to_cq(cq), ibv_cq_ex_to_cq(cq));
  constexpr uint64_t kCompletions = 3000;
  ToError(qp);
  std::atomic<uint64_t> read{0};
  std::vector<std::atomic<int>> seen(kCompletions);
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (read.load() < kCompletions) {
        ibv_poll_cq_attr poll = {};
        if (ibv_start_poll(cq, &poll) == ENOENT) {
          std::this_thread::yield();
          continue;
        }
        do {
          seen[cq->wr_id].fetch_add(1);
          read.fetch_add(1);
        } while (ibv_next_poll(cq) == 0);
        ibv_end_poll(cq);
      }
    });
  }
  for (uint64_t id = 0; id < kCompletions; ++id) Flush(qp, id, 1);
  for (std::thread& reader : readers) reader.join();
  for (uint64_t id = 0; id < kCompletions; ++id) ASSERT_EQ(seen[id].load(), 1) << id;
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

TEST_F(Completions, ResizingUnderTrafficLosesNothing) {
  ibv_cq* client_cq = ibv_create_cq(context_, 64, nullptr, nullptr, 0);
  ibv_cq* server_cq = ibv_create_cq(context_, 64, nullptr, nullptr, 0);
  ibv_qp *client = MakeQp(pd_, client_cq, client_cq), *server = MakeQp(pd_, server_cq, server_cq);
  {
    Connected connection(client, server);
    constexpr uint64_t kMessages = 20000;
    constexpr uint64_t kWindow = 32;
    std::atomic<bool> over = false;
    std::thread resizer([&] {
      for (int size = 64; !over; size = size % 1000 + 64) {
        EXPECT_EQ(ibv_resize_cq(server_cq, size), 0);
        EXPECT_EQ(ibv_resize_cq(client_cq, 1100 - size), 0);
        EXPECT_GE(server_cq->cqe, size);
        std::this_thread::yield();
      }
    });
    uint64_t posted = 0, sent = 0, sent_done = 0, received = 0;
    std::array<ibv_wc, 16> out;
    while (received < kMessages || sent_done < kMessages) {
      while (posted < kMessages && posted - received < 64) {
        ibv_recv_wr wr = {};
        wr.wr_id = posted;
        ibv_recv_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_recv(server, &wr, &bad), 0);
        ++posted;
      }
      while (sent < posted && sent - sent_done < kWindow) {
        ibv_send_wr wr = {};
        wr.wr_id = sent;
        wr.opcode = IBV_WR_SEND;
        ibv_send_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_send(client, &wr, &bad), 0);
        ++sent;
      }
      for (int i = 0, count = ibv_poll_cq(client_cq, 16, out.data()); i < count; ++i) {
        ASSERT_EQ(out[static_cast<size_t>(i)].status, IBV_WC_SUCCESS);
        ASSERT_EQ(out[static_cast<size_t>(i)].wr_id, sent_done++);
      }
      for (int i = 0, count = ibv_poll_cq(server_cq, 16, out.data()); i < count; ++i) {
        ASSERT_EQ(out[static_cast<size_t>(i)].status, IBV_WC_SUCCESS);
        ASSERT_EQ(out[static_cast<size_t>(i)].wr_id, received++);
      }
    }
    over = true;
    resizer.join();
  }
  EXPECT_EQ(ibv_destroy_qp(client), 0);
  EXPECT_EQ(ibv_destroy_qp(server), 0);
  EXPECT_EQ(ibv_destroy_cq(client_cq), 0);
  EXPECT_EQ(ibv_destroy_cq(server_cq), 0);
}

TEST_F(Completions, ModeratedEventsStillCome) {
  ibv_comp_channel* channel = ibv_create_comp_channel(context_);
  ibv_cq* client_cq = ibv_create_cq(context_, 64, nullptr, nullptr, 0);
  ibv_cq* server_cq = ibv_create_cq(context_, 64, nullptr, channel, 0);
  ibv_qp *client = MakeQp(pd_, client_cq, client_cq), *server = MakeQp(pd_, server_cq, server_cq);
  {
    Connected connection(client, server);
    ibv_modify_cq_attr attributes = {};
    attributes.attr_mask = IBV_CQ_ATTR_MODERATE;
    attributes.moderate = {1000, 500};
    ASSERT_EQ(ibv_modify_cq(server_cq, &attributes), 0);
    ASSERT_EQ(ibv_req_notify_cq(server_cq, 0), 0);
    ibv_recv_wr receive = {};
    ibv_recv_wr* bad_receive = nullptr;
    ASSERT_EQ(ibv_post_recv(server, &receive, &bad_receive), 0);
    ibv_send_wr send = {};
    send.opcode = IBV_WR_SEND;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(client, &send, &bad), 0);
    pollfd ready = {channel->fd, POLLIN, 0};
    EXPECT_EQ(poll(&ready, 1, 10000), 1) << "one completion, told of after the period";
    ibv_cq* event_cq = nullptr;
    void* event_context = nullptr;
    ASSERT_EQ(ibv_get_cq_event(channel, &event_cq, &event_context), 0);
    ibv_ack_cq_events(event_cq, 1);
    attributes.attr_mask = 1u << 5;
    EXPECT_EQ(ibv_modify_cq(server_cq, &attributes), EINVAL);
  }
  EXPECT_EQ(ibv_destroy_qp(client), 0);
  EXPECT_EQ(ibv_destroy_qp(server), 0);
  EXPECT_EQ(ibv_destroy_cq(client_cq), 0);
  EXPECT_EQ(ibv_destroy_cq(server_cq), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

TEST_F(Completions, AParentDomainIsAsGoodAsItsBase) {
  ibv_td_init_attr td_attributes = {};
  ibv_td* td = ibv_alloc_td(context_, &td_attributes);
  ASSERT_NE(td, nullptr);
  ibv_parent_domain_init_attr attributes = {};
  attributes.pd = pd_;
  attributes.td = td;
  ibv_pd* parent = ibv_alloc_parent_domain(context_, &attributes);
  ASSERT_NE(parent, nullptr) << strerror(errno);
  EXPECT_EQ(ibv_dealloc_td(td), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);

  ibv_cq_init_attr_ex cq_attributes = CqAttributes(IBV_WC_STANDARD_FLAGS, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
  cq_attributes.comp_mask |= IBV_CQ_INIT_ATTR_MASK_PD;
  cq_attributes.parent_domain = pd_;
  EXPECT_EQ(ibv_create_cq_ex(context_, &cq_attributes), nullptr) << "not a parent domain";
  EXPECT_EQ(errno, EINVAL);
  cq_attributes.parent_domain = parent;
  ibv_cq_ex* cq_ex = ibv_create_cq_ex(context_, &cq_attributes);
  ASSERT_NE(cq_ex, nullptr) << strerror(errno);
  ibv_cq* cq = ibv_cq_ex_to_cq(cq_ex);

  // A region of the base, queue pairs of base and parent.
  std::array<char, 64> memory{};
  ibv_mr* mr = ibv_reg_mr(pd_, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  ibv_qp *client = MakeQp(parent, cq, cq), *server = MakeQp(pd_, cq, cq);
  EXPECT_EQ(client->pd, parent);
  {
    Connected connection(client, server);
    std::strcpy(memory.data(), "of both");
    ibv_sge element = {reinterpret_cast<uintptr_t>(memory.data()), 8, mr->lkey};
    ibv_send_wr wr = {};
    wr.sg_list = &element;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(memory.data()) + 32;
    wr.wr.rdma.rkey = mr->rkey;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(client, &wr, &bad), 0);
    EXPECT_EQ(WaitForCompletion(cq).status, IBV_WC_SUCCESS);
  }
  EXPECT_EQ(ibv_dealloc_pd(parent), EBUSY);
  EXPECT_EQ(ibv_destroy_qp(client), 0);
  EXPECT_EQ(ibv_destroy_qp(server), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_dealloc_pd(parent), EBUSY) << "the completion queue's";
  EXPECT_EQ(ibv_destroy_cq(cq), 0);

  attributes.pd = parent;
  EXPECT_EQ(ibv_alloc_parent_domain(context_, &attributes), nullptr) << "of a parent domain";
  attributes.pd = nullptr;
  EXPECT_EQ(ibv_alloc_parent_domain(context_, &attributes), nullptr);
  EXPECT_EQ(errno, EINVAL);
  attributes.pd = pd_;
  attributes.comp_mask = 1u << 9;
  EXPECT_EQ(ibv_alloc_parent_domain(context_, &attributes), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_dealloc_pd(parent), 0);
  EXPECT_EQ(ibv_dealloc_td(td), 0);
}

}  // namespace
