#include <cerrno>
#include <type_traits>

#include "verbs/export.h"
#include "verbs/objects.h"

// What this RNIC does not do: flows, work queues, counters. Each fails as its man page says:
// functions return EOPNOTSUPP, those that return an object return null with errno.
namespace weft::verbs {
namespace {

template <typename Result, typename... Arguments>
void Deny(Result (*&operation)(Arguments...)) {
  operation = [](Arguments...) -> Result {
    if constexpr (std::is_pointer_v<Result>) {
      return Fail<std::remove_pointer_t<Result>>(EOPNOTSUPP);
    } else {
      return Report(EOPNOTSUPP);
    }
  };
}

template <typename Object, typename Request>
int DenyPost(Object*, Request* request, Request** bad) {
  if (bad != nullptr) *bad = request;
  return Report(EOPNOTSUPP);
}

void DenyContextOperations(ibv_context_ops& ops) {
  Deny(ops._compat_query_device);
  Deny(ops._compat_query_port);
  Deny(ops._compat_alloc_pd);
  Deny(ops._compat_dealloc_pd);
  Deny(ops._compat_reg_mr);
  Deny(ops._compat_rereg_mr);
  Deny(ops._compat_dereg_mr);
  Deny(ops.alloc_mw);
  Deny(ops.bind_mw);
  Deny(ops.dealloc_mw);
  Deny(ops._compat_create_cq);
  Deny(ops.poll_cq);
  Deny(ops.req_notify_cq);
  Deny(ops._compat_cq_event);
  Deny(ops._compat_resize_cq);
  Deny(ops._compat_destroy_cq);
  Deny(ops._compat_create_srq);
  Deny(ops._compat_modify_srq);
  Deny(ops._compat_query_srq);
  Deny(ops._compat_destroy_srq);
  ops.post_srq_recv = DenyPost<ibv_srq, ibv_recv_wr>;
  Deny(ops._compat_create_qp);
  Deny(ops._compat_query_qp);
  Deny(ops._compat_modify_qp);
  Deny(ops._compat_destroy_qp);
  ops.post_send = DenyPost<ibv_qp, ibv_send_wr>;
  ops.post_recv = DenyPost<ibv_qp, ibv_recv_wr>;
  Deny(ops._compat_create_ah);
  Deny(ops._compat_destroy_ah);
  Deny(ops._compat_attach_mcast);
  Deny(ops._compat_detach_mcast);
  Deny(ops._compat_async_event);
}

}  // namespace

void FillUnsupportedOperations(verbs_context* vctx) {
  DenyContextOperations(vctx->context.ops);
  Deny(vctx->query_port);
  Deny(vctx->advise_mr);
  Deny(vctx->alloc_null_mr);
  Deny(vctx->read_counters);
  Deny(vctx->attach_counters_point_flow);
  Deny(vctx->create_counters);
  Deny(vctx->destroy_counters);
  Deny(vctx->reg_dm_mr);
  Deny(vctx->alloc_dm);
  Deny(vctx->free_dm);
  Deny(vctx->modify_flow_action_esp);
  Deny(vctx->destroy_flow_action);
  Deny(vctx->create_flow_action_esp);
  Deny(vctx->modify_qp_rate_limit);
  Deny(vctx->alloc_parent_domain);
  Deny(vctx->dealloc_td);
  Deny(vctx->alloc_td);
  Deny(vctx->modify_cq);
  vctx->post_srq_ops = DenyPost<ibv_srq, ibv_ops_wr>;
  Deny(vctx->destroy_rwq_ind_table);
  Deny(vctx->create_rwq_ind_table);
  Deny(vctx->destroy_wq);
  Deny(vctx->modify_wq);
  Deny(vctx->create_wq);
  Deny(vctx->query_rt_values);
  Deny(vctx->create_cq_ex);
  Deny(vctx->query_device_ex);
  Deny(vctx->ibv_destroy_flow);
  Deny(vctx->ibv_create_flow);
  Deny(vctx->open_qp);
  Deny(vctx->create_qp_ex);
  Deny(vctx->get_srq_num);
  Deny(vctx->create_srq_ex);
  Deny(vctx->open_xrcd);
  Deny(vctx->close_xrcd);
}

}  // namespace weft::verbs

using weft::verbs::Fail;
using weft::verbs::Report;

// What rdma-core has after release 44, as symbols. Programs know the structures by name only, or hand them in.

// Hints for a PCIe bus (ibv_alloc_dmah(3)), which there is not.
WEFT_VERBS_API void* weft_alloc_dmah(ibv_context*, void*) { return Fail<void>(EOPNOTSUPP); }
WEFT_VERBS_SYMBOL(weft_alloc_dmah, ibv_alloc_dmah, "IBVERBS_1.15");
WEFT_VERBS_API int weft_dealloc_dmah(void*) { return Report(EOPNOTSUPP); }
WEFT_VERBS_SYMBOL(weft_dealloc_dmah, ibv_dealloc_dmah, "IBVERBS_1.15");

WEFT_VERBS_API int weft_dm_export_dmabuf_fd(ibv_dm*) {
  errno = EOPNOTSUPP;
  return -1;
}
WEFT_VERBS_SYMBOL(weft_dm_export_dmabuf_fd, ibv_dm_export_dmabuf_fd, "IBVERBS_1.16");

// Completion counters: ENOTSUP (the same number) on a device without, ibv_create_comp_cntr(3).
WEFT_VERBS_API int weft_query_comp_cntr_caps(ibv_context*, void*, size_t) { return Report(EOPNOTSUPP); }
WEFT_VERBS_SYMBOL(weft_query_comp_cntr_caps, _ibv_query_comp_cntr_caps, "IBVERBS_1.18");
WEFT_VERBS_API void* weft_create_comp_cntr(ibv_context*, void*) { return Fail<void>(EOPNOTSUPP); }
WEFT_VERBS_SYMBOL(weft_create_comp_cntr, ibv_create_comp_cntr, "IBVERBS_1.18");
WEFT_VERBS_API int weft_destroy_comp_cntr(void*) { return Report(EOPNOTSUPP); }
WEFT_VERBS_SYMBOL(weft_destroy_comp_cntr, ibv_destroy_comp_cntr, "IBVERBS_1.18");
WEFT_VERBS_API int weft_qp_attach_comp_cntr(ibv_qp*, void*, void*) { return Report(EOPNOTSUPP); }
WEFT_VERBS_SYMBOL(weft_qp_attach_comp_cntr, ibv_qp_attach_comp_cntr, "IBVERBS_1.18");
WEFT_VERBS_API int weft_change_comp_cntr(void*, uint64_t) { return Report(EOPNOTSUPP); }
WEFT_VERBS_SYMBOL(weft_change_comp_cntr, ibv_set_comp_cntr, "IBVERBS_1.18");
WEFT_VERBS_SYMBOL(weft_change_comp_cntr, ibv_set_err_comp_cntr, "IBVERBS_1.18");
WEFT_VERBS_SYMBOL(weft_change_comp_cntr, ibv_inc_comp_cntr, "IBVERBS_1.18");
WEFT_VERBS_SYMBOL(weft_change_comp_cntr, ibv_inc_err_comp_cntr, "IBVERBS_1.18");
WEFT_VERBS_API int weft_read_comp_cntr(void*, uint64_t*) { return Report(EOPNOTSUPP); }
WEFT_VERBS_SYMBOL(weft_read_comp_cntr, ibv_read_comp_cntr, "IBVERBS_1.18");
WEFT_VERBS_SYMBOL(weft_read_comp_cntr, ibv_read_err_comp_cntr, "IBVERBS_1.18");
