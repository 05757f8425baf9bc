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


