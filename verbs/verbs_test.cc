#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

// What a program sees of the library, through the public API only: errors as the man pages have them.
namespace {

class Verbs : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    ASSERT_NE(list, nullptr) << strerror(errno);
    ASSERT_GT(count, 0);
    context_ = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    ASSERT_NE(context_, nullptr);
    pd_ = ibv_alloc_pd(context_);
    ASSERT_NE(pd_, nullptr);
  }

  void TearDown() override {
    EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    EXPECT_EQ(ibv_close_device(context_), 0);
  }

  ibv_qp_init_attr QpAttributes(ibv_cq* cq) {
    ibv_qp_init_attr attributes = {};
    attributes.send_cq = attributes.recv_cq = cq;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {16, 16, 2, 2, 64};
    return attributes;
  }

  ibv_qp* MakeQp(ibv_cq* cq) {
    ibv_qp_init_attr attributes = QpAttributes(cq);
    return ibv_create_qp(pd_, &attributes);
  }

  int ToState(ibv_qp* qp, ibv_qp_state state) {
    ibv_qp_attr attributes = {};
    attributes.qp_state = state;
    attributes.port_num = 1;
    int mask = IBV_QP_STATE;
    if (state == IBV_QPS_INIT) mask |= IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS;
    return ibv_modify_qp(qp, &attributes, mask);
  }

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
};

TEST(VerbsDevices, ListNamesLoopbackAsAnIwarpNic) {
  int count = -1;
  ibv_device** list = ibv_get_device_list(&count);
  ASSERT_NE(list, nullptr);
  ibv_device* loopback = nullptr;
  for (int i = 0; i < count; ++i) {
    if (std::string(ibv_get_device_name(list[i])) == "weft_lo") loopback = list[i];
  }
  EXPECT_EQ(list[count], nullptr);
  ASSERT_NE(loopback, nullptr);
  EXPECT_EQ(loopback->node_type, IBV_NODE_RNIC);
  EXPECT_EQ(loopback->transport_type, IBV_TRANSPORT_IWARP);
  EXPECT_NE(ibv_get_device_guid(loopback), 0u);
  EXPECT_GT(ibv_get_device_index(loopback), 0);
  EXPECT_STREQ(loopback->ibdev_path, "/sys/class/infiniband/weft_lo");
  ibv_free_device_list(list);
}

TEST(VerbsDevices, StayTheSameFromListToList) {
  ibv_device** first = ibv_get_device_list(nullptr);
  ibv_device** second = ibv_get_device_list(nullptr);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  for (int i = 0; first[i] != nullptr; ++i) EXPECT_EQ(first[i], second[i]);
  ibv_free_device_list(first);
  ibv_free_device_list(second);
}

// libmlx5 and libefa read what rdma-core keeps behind an ibv_device.
TEST(VerbsDevices, HaveZeroesBehindThem) {
  ibv_device** list = ibv_get_device_list(nullptr);
  ASSERT_NE(list, nullptr);
  const auto* behind = reinterpret_cast<const unsigned char*>(list[0]) + sizeof(ibv_device);
  for (size_t i = 0; i < 512; ++i) ASSERT_EQ(behind[i], 0);
  ibv_free_device_list(list);
}

TEST_F(Verbs, ContextHasAFullOperationTable) {
  verbs_context* vctx = verbs_get_ctx(context_);
  ASSERT_NE(vctx, nullptr);
  EXPECT_EQ(vctx->sz, sizeof(verbs_context));
  EXPECT_GE(context_->num_comp_vectors, 1);
  EXPECT_GE(context_->async_fd, 0);
  void* const* ops = reinterpret_cast<void* const*>(&context_->ops);
  for (size_t i = 0; i < sizeof context_->ops / sizeof *ops; ++i) EXPECT_NE(ops[i], nullptr) << "entry " << i;
  EXPECT_NE(verbs_get_ctx_op(context_, query_port), nullptr);
  EXPECT_NE(verbs_get_ctx_op(context_, close_xrcd), nullptr);
}

TEST_F(Verbs, QueriesDeviceInBothForms) {
  ibv_device_attr attributes;
  ASSERT_EQ(ibv_query_device(context_, &attributes), 0);
  EXPECT_EQ(attributes.phys_port_cnt, 1);
  EXPECT_GT(attributes.max_qp, 0);
  ibv_device_attr_ex extended;
  ASSERT_EQ(ibv_query_device_ex(context_, nullptr, &extended), 0);
  EXPECT_EQ(memcmp(&extended.orig_attr, &attributes, sizeof attributes), 0);
  EXPECT_EQ(extended.phys_port_cnt_ex, 1u);
  ibv_query_device_ex_input input = {1};
  EXPECT_EQ(ibv_query_device_ex(context_, &input, &extended), EINVAL);
}

TEST_F(Verbs, QueriesPortInBothForms) {
  ibv_port_attr attributes;
  ASSERT_EQ(ibv_query_port(context_, 1, &attributes), 0);
  EXPECT_EQ(attributes.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(ibv_query_port(context_, 0, &attributes), EINVAL);
  EXPECT_EQ(ibv_query_port(context_, 2, &attributes), EINVAL);

  ibv_port_attr old;
  memset(static_cast<void*>(&old), 0xee, sizeof old);
  ASSERT_EQ((ibv_query_port)(context_, 1, reinterpret_cast<_compat_ibv_port_attr*>(&old)), 0);
  EXPECT_EQ(memcmp(&old, &attributes, offsetof(ibv_port_attr, port_cap_flags2)), 0);
  EXPECT_EQ(old.port_cap_flags2, 0xeeee) << "programs compiled without this field have no room for it";
}

TEST_F(Verbs, GidsAreThoseOfTheTable) {
  ibv_port_attr port;
  ASSERT_EQ(ibv_query_port(context_, 1, &port), 0);
  std::vector<ibv_gid_entry> entries(static_cast<size_t>(port.gid_tbl_len));
  const ssize_t count = ibv_query_gid_table(context_, entries.data(), entries.size(), 0);
  ASSERT_GT(count, 0);
  for (ssize_t i = 0; i < count; ++i) {
    ibv_gid gid;
    ASSERT_EQ(ibv_query_gid(context_, 1, static_cast<int>(i), &gid), 0);
    EXPECT_EQ(memcmp(&gid, &entries[static_cast<size_t>(i)].gid, sizeof gid), 0);
    ibv_gid_entry entry;
    ASSERT_EQ(ibv_query_gid_ex(context_, 1, static_cast<uint32_t>(i), &entry, 0), 0);
    EXPECT_EQ(entry.gid_index, static_cast<uint32_t>(i));
    EXPECT_GT(entry.ndev_ifindex, 0u);
  }
  ibv_gid gid;
  EXPECT_EQ(ibv_query_gid(context_, 1, port.gid_tbl_len, &gid), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_query_gid(context_, 1, -1, &gid), -1);
  EXPECT_EQ(ibv_query_gid(context_, 2, 0, &gid), -1);
  ibv_gid_entry entry;
  EXPECT_EQ(ibv_query_gid_ex(context_, 1, static_cast<uint32_t>(port.gid_tbl_len), &entry, 0), EINVAL);
  if (count < port.gid_tbl_len) {
    EXPECT_EQ(ibv_query_gid_ex(context_, 1, static_cast<uint32_t>(count), &entry, 0), ENODATA);
    EXPECT_EQ(ibv_query_gid(context_, 1, static_cast<int>(count), &gid), 0);
    EXPECT_EQ(gid.global.interface_id, 0u);
  }
  EXPECT_EQ(ibv_query_gid_table(context_, entries.data(), static_cast<size_t>(count) - 1, 0), -EINVAL) << "too small for all";
  EXPECT_EQ(ibv_query_gid_table(context_, entries.data(), static_cast<size_t>(count), 0), count);
}

TEST_F(Verbs, PkeysOutsideTheTableAreRefused) {
  ibv_port_attr port;
  ASSERT_EQ(ibv_query_port(context_, 1, &port), 0);
  __be16 pkey = 0;
  errno = 0;
  EXPECT_EQ(ibv_query_pkey(context_, 1, port.pkey_tbl_len, &pkey), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_get_pkey_index(context_, 1, 0x1234), -1);
}

TEST_F(Verbs, RawClockCounts) {
  ibv_values_ex values = {};
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  ASSERT_EQ(ibv_query_rt_values_ex(context_, &values), 0);
  EXPECT_EQ(values.comp_mask, uint32_t{IBV_VALUES_MASK_RAW_CLOCK});
  EXPECT_GT(values.raw_clock.tv_sec + values.raw_clock.tv_nsec, 0);
}

TEST_F(Verbs, ForkNeedsNothing) {
  EXPECT_EQ(ibv_fork_init(), 0);
  EXPECT_EQ(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

TEST_F(Verbs, PdIsBusyWhileARegionUsesIt) {
  char buffer[64];
  ibv_mr* mr = ibv_reg_mr(pd_, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->addr, buffer);
  EXPECT_EQ(mr->length, sizeof buffer);
  EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Verbs, RegionsAreRefusedWithTheReason) {
  const size_t page = 4096;
  void* gone = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(gone, page);
  errno = 0;
  EXPECT_EQ(ibv_reg_mr(pd_, gone, page, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EFAULT);
  char buffer[64];
  EXPECT_EQ(ibv_reg_mr(pd_, buffer, sizeof buffer, IBV_ACCESS_REMOTE_WRITE), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_reg_dmabuf_mr(pd_, 0, page, 0, 0, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(Verbs, RelaxedOrderingIsAHint) {
  char buffer[64];
  int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING;
  ibv_mr* mr = ibv_reg_mr(pd_, buffer, sizeof buffer, access);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Verbs, ReregisteringMovesTheRegionAndItsDomain) {
  char first[64], second[128];
  ibv_pd* other = ibv_alloc_pd(context_);
  ibv_mr* mr = ibv_reg_mr(pd_, first, sizeof first, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(mr->addr, first);
  ASSERT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD, other, second, sizeof second, 0),
            0);
  EXPECT_EQ(mr->addr, second);
  EXPECT_EQ(mr->length, sizeof second);
  EXPECT_EQ(ibv_dealloc_pd(other), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_dealloc_pd(other), 0);
}

TEST_F(Verbs, CompletionQueueSizeAndVectorAreChecked) {
  ibv_device_attr limits;
  ASSERT_EQ(ibv_query_device(context_, &limits), 0);
  EXPECT_EQ(ibv_create_cq(context_, 0, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_create_cq(context_, limits.max_cqe + 1, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_create_cq(context_, 1, nullptr, nullptr, context_->num_comp_vectors), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_cq* cq = ibv_create_cq(context_, 10, this, nullptr, context_->num_comp_vectors - 1);
  ASSERT_NE(cq, nullptr);
  EXPECT_GE(cq->cqe, 10);
  EXPECT_EQ(cq->cq_context, this);
  EXPECT_EQ(ibv_resize_cq(cq, 20), 0);
  EXPECT_GE(cq->cqe, 20);
  EXPECT_EQ(ibv_resize_cq(cq, 0), EINVAL);
  ibv_wc completion;
  EXPECT_EQ(ibv_poll_cq(cq, 1, &completion), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(Verbs, ChannelIsBusyWhileAQueueUsesIt) {
  ibv_comp_channel* channel = ibv_create_comp_channel(context_);
  ASSERT_NE(channel, nullptr);
  ibv_cq* cq = ibv_create_cq(context_, 1, nullptr, channel, 0);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), EBUSY);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

TEST_F(Verbs, NonBlockingFetchOfEventsSaysTryAgain) {
  ibv_comp_channel* channel = ibv_create_comp_channel(context_);
  ASSERT_NE(channel, nullptr);
  for (int fd : {channel->fd, context_->async_fd}) {
    ASSERT_EQ(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
  }
  ibv_cq* cq;
  void* cq_context;
  EXPECT_EQ(ibv_get_cq_event(channel, &cq, &cq_context), -1);
  EXPECT_EQ(errno, EAGAIN);
  ibv_async_event event;
  EXPECT_EQ(ibv_get_async_event(context_, &event), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

TEST_F(Verbs, QueuePairsBeyondTheDeviceAreRefused) {
  ibv_cq* cq = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  for (ibv_qp_type type : {IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, IBV_QPT_DRIVER}) {
    ibv_qp_init_attr attributes = QpAttributes(cq);
    attributes.qp_type = type;
    errno = 0;
    EXPECT_EQ(ibv_create_qp(pd_, &attributes), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP) << type;
  }
  ibv_device_attr limits;
  ASSERT_EQ(ibv_query_device(context_, &limits), 0);
  for (int field = 0; field < 5; ++field) {
    ibv_qp_init_attr attributes = QpAttributes(cq);
    uint32_t* const fields[] = {&attributes.cap.max_send_wr, &attributes.cap.max_recv_wr, &attributes.cap.max_send_sge,
                                &attributes.cap.max_recv_sge, &attributes.cap.max_inline_data};
    *fields[field] = field < 2 ? static_cast<uint32_t>(limits.max_qp_wr) + 1 : 1u << 20;
    errno = 0;
    EXPECT_EQ(ibv_create_qp(pd_, &attributes), nullptr) << field;
    EXPECT_EQ(errno, EINVAL) << field;
  }
  ibv_qp_init_attr no_queue = QpAttributes(nullptr);
  EXPECT_EQ(ibv_create_qp(pd_, &no_queue), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(Verbs, QueuePairKeepsItsQueuesAndDomainBusy) {
  ibv_cq* cq = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
  ibv_qp_init_attr attributes = QpAttributes(cq);
  attributes.qp_context = this;
  ibv_qp* qp = ibv_create_qp(pd_, &attributes);
  ASSERT_NE(qp, nullptr);
  EXPECT_GE(attributes.cap.max_inline_data, 64u);
  EXPECT_EQ(qp->state, IBV_QPS_RESET);
  EXPECT_NE(qp->qp_num, 0u);
  EXPECT_EQ(ibv_destroy_cq(cq), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);

  ibv_qp_attr state;
  ibv_qp_init_attr init;
  ASSERT_EQ(ibv_query_qp(qp, &state, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(state.qp_state, IBV_QPS_RESET);
  EXPECT_EQ(init.send_cq, cq);
  EXPECT_EQ(init.recv_cq, cq);
  EXPECT_EQ(init.qp_context, this);
  EXPECT_EQ(init.qp_type, IBV_QPT_RC);
  EXPECT_EQ(init.cap.max_send_wr, attributes.cap.max_send_wr);

  EXPECT_EQ(ibv_qp_to_qp_ex(qp), nullptr) << "created without send_ops_flags";
  EXPECT_EQ(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0), 0);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(Verbs, PostingInTheWrongStateNamesTheRequest) {
  ibv_cq* cq = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
  ibv_qp* qp = MakeQp(cq);
  ASSERT_NE(qp, nullptr);
  ibv_recv_wr receive = {};
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(ibv_post_recv(qp, &receive, &bad_receive), EINVAL);
  EXPECT_EQ(bad_receive, &receive);
  ASSERT_EQ(ToState(qp, IBV_QPS_INIT), 0);
  EXPECT_EQ(qp->state, IBV_QPS_INIT);
  EXPECT_EQ(ibv_post_recv(qp, &receive, &bad_receive), 0);
  ibv_send_wr send = {};
  send.opcode = IBV_WR_SEND;
  ibv_send_wr* bad_send = nullptr;
  EXPECT_EQ(ibv_post_send(qp, &send, &bad_send), EINVAL);
  EXPECT_EQ(bad_send, &send);
  EXPECT_EQ(ToState(qp, IBV_QPS_RTS), EINVAL);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(Verbs, FlushedReceiveRaisesAnEventThatDestroyWaitsFor) {
  ibv_comp_channel* channel = ibv_create_comp_channel(context_);
  ASSERT_NE(channel, nullptr);
  ibv_cq* cq = ibv_create_cq(context_, 16, this, channel, 0);
  ASSERT_NE(cq, nullptr);
  ibv_qp* qp = MakeQp(cq);
  ASSERT_NE(qp, nullptr);
  ASSERT_EQ(ToState(qp, IBV_QPS_INIT), 0);
  ibv_recv_wr receive = {};
  receive.wr_id = 42;
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(qp, &receive, &bad), 0);
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  ASSERT_EQ(ToState(qp, IBV_QPS_ERR), 0);

  pollfd ready = {channel->fd, POLLIN, 0};
  ASSERT_EQ(poll(&ready, 1, 5000), 1);
  ibv_cq* event_cq = nullptr;
  void* event_context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(channel, &event_cq, &event_context), 0);
  EXPECT_EQ(event_cq, cq);
  EXPECT_EQ(event_context, this);
  ibv_wc completion = {};
  ASSERT_EQ(ibv_poll_cq(cq, 1, &completion), 1);
  EXPECT_EQ(completion.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(completion.wr_id, 42u);
  EXPECT_EQ(completion.qp_num, qp->qp_num);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);

  std::atomic<bool> acknowledged = false;
  std::thread destroyer([&] {
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    EXPECT_TRUE(acknowledged.load());
  });
  acknowledged = true;
  ibv_ack_cq_events(cq, 1);
  destroyer.join();
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

TEST_F(Verbs, UnfetchedEventsOfADestroyedQueueAreGone) {
  ibv_comp_channel* channel = ibv_create_comp_channel(context_);
  ibv_cq* cq = ibv_create_cq(context_, 16, nullptr, channel, 0);
  ASSERT_NE(cq, nullptr);
  ibv_qp* qp = MakeQp(cq);
  ASSERT_NE(qp, nullptr);
  ASSERT_EQ(ToState(qp, IBV_QPS_INIT), 0);
  ibv_recv_wr receive = {};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(qp, &receive, &bad), 0);
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  ASSERT_EQ(ToState(qp, IBV_QPS_ERR), 0);
  pollfd ready = {channel->fd, POLLIN, 0};
  ASSERT_EQ(poll(&ready, 1, 5000), 1);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(poll(&ready, 1, 0), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

TEST_F(Verbs, OverrunOfACompletionQueueIsAnAsyncEvent) {
  ibv_cq* cq = ibv_create_cq(context_, 1, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  ibv_qp* qp = MakeQp(cq);
  ASSERT_NE(qp, nullptr);
  ASSERT_EQ(ToState(qp, IBV_QPS_INIT), 0);
  ibv_recv_wr receives[2] = {};
  receives[0].next = &receives[1];
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(qp, receives, &bad), 0);
  ASSERT_EQ(ToState(qp, IBV_QPS_ERR), 0);
  pollfd ready = {context_->async_fd, POLLIN, 0};
  ASSERT_EQ(poll(&ready, 1, 5000), 1);
  ibv_async_event event = {};
  ASSERT_EQ(ibv_get_async_event(context_, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, cq);
  ibv_ack_async_event(&event);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(Verbs, WhatIsNotSupportedSaysSo) {
  const auto expect_null = [](const void* object, const char* what) {
    EXPECT_EQ(object, nullptr) << what;
    EXPECT_EQ(errno, EOPNOTSUPP) << what;
    errno = 0;
  };
  errno = 0;
  ibv_ah_attr ah = {};
  expect_null(ibv_create_ah(pd_, &ah), "ibv_create_ah");
  expect_null(ibv_create_ah_from_wc(pd_, nullptr, nullptr, 1), "ibv_create_ah_from_wc");
  ibv_xrcd_init_attr xrcd = {};
  expect_null(ibv_open_xrcd(context_, &xrcd), "ibv_open_xrcd");
  ibv_wq_init_attr wq = {};
  expect_null(ibv_create_wq(context_, &wq), "ibv_create_wq");
  ibv_counters_init_attr counters = {};
  expect_null(ibv_create_counters(context_, &counters), "ibv_create_counters");
  expect_null(ibv_import_device(0), "ibv_import_device");
  expect_null(ibv_import_pd(context_, 0), "ibv_import_pd");
  EXPECT_EQ(ibv_init_ah_from_wc(context_, 1, nullptr, nullptr, &ah), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);

  ibv_cq* cq = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
  ibv_qp* qp = MakeQp(cq);
  ASSERT_NE(qp, nullptr);
  ibv_gid gid = {};
  EXPECT_EQ(ibv_attach_mcast(qp, &gid, 0), EOPNOTSUPP);
  ibv_flow_attr flow = {};
  errno = 0;
  expect_null(ibv_create_flow(qp, &flow), "ibv_create_flow");
  EXPECT_EQ(ibv_destroy_qp(qp), 0);

  ibv_qp_init_attr_ex immediate = {};
  immediate.send_cq = immediate.recv_cq = cq;
  immediate.qp_type = IBV_QPT_RC;
  immediate.cap = {16, 16, 1, 1, 0};
  immediate.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  immediate.pd = pd_;
  immediate.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP;
  expect_null(ibv_create_qp_ex(context_, &immediate), "ibv_create_qp_ex with atomics");
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

}  // namespace
