#include <cerrno>

#include "verbs/export.h"
#include "verbs/objects.h"

// The private node. rdma-core's provider libraries, which many programs drag in (Debian's perftest links libmlx5 and
// libefa, all bound at load), must find every name that they import. No device of ours is theirs, so nothing here is
// reached in good order; what is reached all the same says that there is no kernel driver. Arguments are those of
// private structures and are not looked at.

#define WEFT_NO_KERNEL_COMMAND(name) \
  WEFT_VERBS_API int name(void) { return weft::verbs::Report(EOPNOTSUPP); }

WEFT_NO_KERNEL_COMMAND(ibv_cmd_advise_mr)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_alloc_dm)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_alloc_mw)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_alloc_pd)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_attach_mcast)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_close_xrcd)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_create_ah)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_create_counters)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_create_cq)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_create_cq_ex)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_create_flow)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_create_flow_action_esp)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_create_qp)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_create_qp_ex)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_create_qp_ex2)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_create_rwq_ind_table)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_create_srq)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_create_srq_ex)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_create_wq)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_dealloc_mw)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_dealloc_pd)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_dereg_mr)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_destroy_ah)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_destroy_counters)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_destroy_cq)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_destroy_flow)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_destroy_flow_action)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_destroy_qp)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_destroy_rwq_ind_table)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_destroy_srq)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_destroy_wq)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_detach_mcast)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_free_dm)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_get_context)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_modify_cq)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_modify_flow_action_esp)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_modify_qp)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_modify_qp_ex)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_modify_srq)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_modify_wq)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_open_qp)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_open_xrcd)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_poll_cq)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_post_recv)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_post_send)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_post_srq_recv)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_query_context)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_query_device_any)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_query_mr)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_query_port)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_query_qp)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_query_srq)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_read_counters)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_reg_dm_mr)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_reg_dmabuf_mr)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_reg_mr)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_req_notify_cq)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_rereg_mr)
WEFT_NO_KERNEL_COMMAND(ibv_cmd_resize_cq)

#undef WEFT_NO_KERNEL_COMMAND

WEFT_VERBS_API int execute_ioctl(ibv_context*, void*) { return weft::verbs::Report(EOPNOTSUPP); }
WEFT_VERBS_API unsigned int __ioctl_final_num_attrs(unsigned int count, void*) { return count; }

// Providers announce themselves from constructors. They are ignored: our devices have their provider built in.
WEFT_VERBS_API void verbs_register_driver_34(const void*) {}
WEFT_VERBS_API ibv_context* verbs_open_device(ibv_device*, void*) { return weft::verbs::Fail<ibv_context>(EOPNOTSUPP); }
WEFT_VERBS_API void* _verbs_init_and_alloc_context(ibv_device*, int, size_t, void*, uint32_t) {
  return weft::verbs::Fail<void>(EOPNOTSUPP);
}
WEFT_VERBS_API void verbs_uninit_context(void*) {}
WEFT_VERBS_API void verbs_set_ops(void*, const void*) {}
WEFT_VERBS_API void verbs_init_cq(ibv_cq*, ibv_context*, ibv_comp_channel*, void*) {}
WEFT_VERBS_API void __verbs_log(void*, uint32_t, const char*, ...) {}

// Data: providers read it when a kernel device was unplugged.
extern "C" {
__attribute__((visibility("default"), used)) bool verbs_allow_disassociate_destroy = false;
}
