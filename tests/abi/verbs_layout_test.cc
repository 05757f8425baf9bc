#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <pthread.h>

#include <cstddef>

// The layout of what programs share with the library, as rdma-core 44 has it on 64-bit machines: sizes and offsets in
// bytes. A header of another rdma-core must not change them unnoticed, since binaries of the distribution are compiled
// with these.
#if defined(__x86_64__) || defined(__aarch64__)

// A pthread_mutex_t has 40 bytes on x86-64, which the numbers count, and 48 on arm64.
constexpr size_t kMutex = sizeof(pthread_mutex_t) - 40;

static_assert(sizeof(ibv_device) == 664);
static_assert(offsetof(ibv_device, node_type) == 16);
static_assert(offsetof(ibv_device, transport_type) == 20);
static_assert(offsetof(ibv_device, name) == 24);
static_assert(offsetof(ibv_device, dev_name) == 88);
static_assert(offsetof(ibv_device, dev_path) == 152);
static_assert(offsetof(ibv_device, ibdev_path) == 408);

static_assert(sizeof(ibv_context_ops) == 256);
static_assert(offsetof(ibv_context_ops, alloc_mw) == 56);
static_assert(offsetof(ibv_context_ops, poll_cq) == 88);
static_assert(offsetof(ibv_context_ops, req_notify_cq) == 96);
static_assert(offsetof(ibv_context_ops, post_srq_recv) == 160);
static_assert(offsetof(ibv_context_ops, post_send) == 200);
static_assert(offsetof(ibv_context_ops, post_recv) == 208);
static_assert(offsetof(ibv_context_ops, _compat_async_event) == 248);

static_assert(sizeof(ibv_context) == 328 + kMutex);
static_assert(offsetof(ibv_context, device) == 0);
static_assert(offsetof(ibv_context, ops) == 8);
static_assert(offsetof(ibv_context, cmd_fd) == 264);
static_assert(offsetof(ibv_context, async_fd) == 268);
static_assert(offsetof(ibv_context, num_comp_vectors) == 272);
static_assert(offsetof(ibv_context, mutex) == 280);
static_assert(offsetof(ibv_context, abi_compat) == 320 + kMutex);

static_assert(sizeof(verbs_context) == 648 + kMutex);
static_assert(offsetof(verbs_context, query_port) == 0);
static_assert(offsetof(verbs_context, advise_mr) == 8);
static_assert(offsetof(verbs_context, alloc_td) == 128);
static_assert(offsetof(verbs_context, query_rt_values) == 192);
static_assert(offsetof(verbs_context, create_cq_ex) == 200);
static_assert(offsetof(verbs_context, priv) == 208);
static_assert(offsetof(verbs_context, query_device_ex) == 216);
static_assert(offsetof(verbs_context, create_qp_ex) == 264);
static_assert(offsetof(verbs_context, close_xrcd) == 296);
static_assert(offsetof(verbs_context, sz) == 312);
static_assert(offsetof(verbs_context, context) == 320);

static_assert(sizeof(ibv_device_attr) == 232);
static_assert(offsetof(ibv_device_attr, node_guid) == 64);
static_assert(offsetof(ibv_device_attr, max_mr_size) == 80);
static_assert(offsetof(ibv_device_attr, device_cap_flags) == 116);
static_assert(offsetof(ibv_device_attr, max_cqe) == 132);
static_assert(offsetof(ibv_device_attr, max_qp_rd_atom) == 144);
static_assert(offsetof(ibv_device_attr, phys_port_cnt) == 227);

static_assert(sizeof(ibv_device_attr_ex) == 400);
static_assert(offsetof(ibv_device_attr_ex, comp_mask) == 232);
static_assert(offsetof(ibv_device_attr_ex, odp_caps) == 240);
static_assert(offsetof(ibv_device_attr_ex, completion_timestamp_mask) == 264);
static_assert(offsetof(ibv_device_attr_ex, hca_core_clock) == 272);
static_assert(offsetof(ibv_device_attr_ex, phys_port_cnt_ex) == 396);

static_assert(sizeof(ibv_port_attr) == 52 || sizeof(ibv_port_attr) == 56);  // active_speed_ex came with rdma-core 49
static_assert(offsetof(ibv_port_attr, gid_tbl_len) == 12);
static_assert(offsetof(ibv_port_attr, pkey_tbl_len) == 32);
static_assert(offsetof(ibv_port_attr, link_layer) == 46);
static_assert(offsetof(ibv_port_attr, flags) == 47);
static_assert(offsetof(ibv_port_attr, port_cap_flags2) == 48);

static_assert(sizeof(ibv_gid_entry) == 32);
static_assert(offsetof(ibv_gid_entry, gid_index) == 16);
static_assert(offsetof(ibv_gid_entry, ndev_ifindex) == 28);

static_assert(sizeof(ibv_pd) == 16);
static_assert(offsetof(ibv_pd, context) == 0);
static_assert(offsetof(ibv_pd, handle) == 8);

static_assert(sizeof(ibv_mr) == 48);
static_assert(offsetof(ibv_mr, context) == 0);
static_assert(offsetof(ibv_mr, pd) == 8);
static_assert(offsetof(ibv_mr, addr) == 16);
static_assert(offsetof(ibv_mr, length) == 24);
static_assert(offsetof(ibv_mr, handle) == 32);
static_assert(offsetof(ibv_mr, lkey) == 36);
static_assert(offsetof(ibv_mr, rkey) == 40);

static_assert(sizeof(ibv_comp_channel) == 16);
static_assert(offsetof(ibv_comp_channel, context) == 0);
static_assert(offsetof(ibv_comp_channel, fd) == 8);
static_assert(offsetof(ibv_comp_channel, refcnt) == 12);

static_assert(sizeof(ibv_cq) == 128 + kMutex);
static_assert(offsetof(ibv_cq, context) == 0);
static_assert(offsetof(ibv_cq, channel) == 8);
static_assert(offsetof(ibv_cq, cq_context) == 16);
static_assert(offsetof(ibv_cq, handle) == 24);
static_assert(offsetof(ibv_cq, cqe) == 28);
static_assert(offsetof(ibv_cq, mutex) == 32);
static_assert(offsetof(ibv_cq, cond) == 72 + kMutex);
static_assert(offsetof(ibv_cq, comp_events_completed) == 120 + kMutex);
static_assert(offsetof(ibv_cq, async_events_completed) == 124 + kMutex);

static_assert(sizeof(ibv_cq_ex) == 288 + kMutex);
static_assert(offsetof(ibv_cq_ex, comp_mask) == 128 + kMutex);
static_assert(offsetof(ibv_cq_ex, status) == 132 + kMutex);
static_assert(offsetof(ibv_cq_ex, wr_id) == 136 + kMutex);
static_assert(offsetof(ibv_cq_ex, start_poll) == 144 + kMutex);
static_assert(offsetof(ibv_cq_ex, next_poll) == 152 + kMutex);
static_assert(offsetof(ibv_cq_ex, end_poll) == 160 + kMutex);
static_assert(offsetof(ibv_cq_ex, read_opcode) == 168 + kMutex);
static_assert(offsetof(ibv_cq_ex, read_completion_wallclock_ns) == 280 + kMutex);

static_assert(sizeof(ibv_qp) == 160 + kMutex);
static_assert(offsetof(ibv_qp, context) == 0);
static_assert(offsetof(ibv_qp, qp_context) == 8);
static_assert(offsetof(ibv_qp, pd) == 16);
static_assert(offsetof(ibv_qp, send_cq) == 24);
static_assert(offsetof(ibv_qp, recv_cq) == 32);
static_assert(offsetof(ibv_qp, srq) == 40);
static_assert(offsetof(ibv_qp, handle) == 48);
static_assert(offsetof(ibv_qp, qp_num) == 52);
static_assert(offsetof(ibv_qp, state) == 56);
static_assert(offsetof(ibv_qp, qp_type) == 60);
static_assert(offsetof(ibv_qp, mutex) == 64);
static_assert(offsetof(ibv_qp, cond) == 104 + kMutex);
static_assert(offsetof(ibv_qp, events_completed) == 152 + kMutex);

static_assert(sizeof(ibv_qp_ex) == 352 || sizeof(ibv_qp_ex) == 360);  // wr_flush came with rdma-core 45
static_assert(offsetof(ibv_qp_ex, qp_base) == 0);
static_assert(offsetof(ibv_qp_ex, comp_mask) == 160 + kMutex);
static_assert(offsetof(ibv_qp_ex, wr_id) == 168 + kMutex);
static_assert(offsetof(ibv_qp_ex, wr_flags) == 176 + kMutex);
static_assert(offsetof(ibv_qp_ex, wr_atomic_cmp_swp) == 184 + kMutex);
static_assert(offsetof(ibv_qp_ex, wr_send) == 240 + kMutex);
static_assert(offsetof(ibv_qp_ex, wr_start) == 320 + kMutex);
static_assert(offsetof(ibv_qp_ex, wr_complete) == 328 + kMutex);
static_assert(offsetof(ibv_qp_ex, wr_abort) == 336 + kMutex);
static_assert(offsetof(ibv_qp_ex, wr_atomic_write) == 344 + kMutex);

static_assert(sizeof(ibv_wc) == 48);
static_assert(offsetof(ibv_wc, wr_id) == 0);
static_assert(offsetof(ibv_wc, status) == 8);
static_assert(offsetof(ibv_wc, opcode) == 12);
static_assert(offsetof(ibv_wc, vendor_err) == 16);
static_assert(offsetof(ibv_wc, byte_len) == 20);
static_assert(offsetof(ibv_wc, imm_data) == 24);
static_assert(offsetof(ibv_wc, qp_num) == 28);
static_assert(offsetof(ibv_wc, src_qp) == 32);
static_assert(offsetof(ibv_wc, wc_flags) == 36);
static_assert(offsetof(ibv_wc, pkey_index) == 40);
static_assert(offsetof(ibv_wc, dlid_path_bits) == 45);

static_assert(sizeof(ibv_send_wr) == 128);
static_assert(offsetof(ibv_send_wr, wr_id) == 0);
static_assert(offsetof(ibv_send_wr, next) == 8);
static_assert(offsetof(ibv_send_wr, sg_list) == 16);
static_assert(offsetof(ibv_send_wr, num_sge) == 24);
static_assert(offsetof(ibv_send_wr, opcode) == 28);
static_assert(offsetof(ibv_send_wr, send_flags) == 32);
static_assert(offsetof(ibv_send_wr, imm_data) == 36);
static_assert(offsetof(ibv_send_wr, wr) == 40);
static_assert(offsetof(ibv_send_wr, qp_type) == 72);

static_assert(sizeof(ibv_recv_wr) == 32);
static_assert(offsetof(ibv_recv_wr, wr_id) == 0);
static_assert(offsetof(ibv_recv_wr, next) == 8);
static_assert(offsetof(ibv_recv_wr, sg_list) == 16);
static_assert(offsetof(ibv_recv_wr, num_sge) == 24);

static_assert(sizeof(ibv_sge) == 16);
static_assert(offsetof(ibv_sge, addr) == 0);
static_assert(offsetof(ibv_sge, length) == 8);
static_assert(offsetof(ibv_sge, lkey) == 12);

static_assert(sizeof(ibv_qp_init_attr) == 64);
static_assert(offsetof(ibv_qp_init_attr, send_cq) == 8);
static_assert(offsetof(ibv_qp_init_attr, cap) == 32);
static_assert(offsetof(ibv_qp_init_attr, qp_type) == 52);
static_assert(offsetof(ibv_qp_init_attr, sq_sig_all) == 56);

static_assert(sizeof(ibv_qp_init_attr_ex) == 136);
static_assert(offsetof(ibv_qp_init_attr_ex, comp_mask) == 60);
static_assert(offsetof(ibv_qp_init_attr_ex, pd) == 64);
static_assert(offsetof(ibv_qp_init_attr_ex, create_flags) == 80);
static_assert(offsetof(ibv_qp_init_attr_ex, send_ops_flags) == 128);

static_assert(sizeof(ibv_qp_attr) == 144);
static_assert(offsetof(ibv_qp_attr, qp_state) == 0);
static_assert(offsetof(ibv_qp_attr, dest_qp_num) == 28);
static_assert(offsetof(ibv_qp_attr, cap) == 36);
static_assert(offsetof(ibv_qp_attr, ah_attr) == 56);
static_assert(offsetof(ibv_qp_attr, alt_ah_attr) == 88);
static_assert(offsetof(ibv_qp_attr, pkey_index) == 120);
static_assert(offsetof(ibv_qp_attr, max_rd_atomic) == 126);
static_assert(offsetof(ibv_qp_attr, rate_limit) == 136);

static_assert(sizeof(ibv_async_event) == 16);
static_assert(offsetof(ibv_async_event, element) == 0);
static_assert(offsetof(ibv_async_event, event_type) == 8);

static_assert(sizeof(ibv_cq_init_attr_ex) == 56);
static_assert(offsetof(ibv_cq_init_attr_ex, cqe) == 0);
static_assert(offsetof(ibv_cq_init_attr_ex, channel) == 16);
static_assert(offsetof(ibv_cq_init_attr_ex, wc_flags) == 32);
static_assert(offsetof(ibv_cq_init_attr_ex, comp_mask) == 40);
static_assert(offsetof(ibv_cq_init_attr_ex, flags) == 44);
static_assert(offsetof(ibv_cq_init_attr_ex, parent_domain) == 48);

// ibv_cq is the head of ibv_cq_ex, which ibv_cq_ex_to_cq relies on.
static_assert(offsetof(ibv_cq_ex, async_events_completed) == offsetof(ibv_cq, async_events_completed));
// verbs_get_ctx steps back from the public context; `sz` stands right before it.
static_assert(offsetof(verbs_context, sz) + sizeof(size_t) == offsetof(verbs_context, context));
#endif

namespace {

// The assertions above are the test; this reports that they were compiled.
TEST(VerbsLayout, IsThatOfRdmaCore44) {
#if defined(__x86_64__) || defined(__aarch64__)
  EXPECT_EQ(sizeof(verbs_context), offsetof(verbs_context, context) + sizeof(ibv_context));
#else
  GTEST_SKIP() << "offsets are known for x86-64 and arm64 only";
#endif
}

}  // namespace
