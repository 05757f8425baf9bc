#include <cerrno>

#include "verbs/export.h"
#include "verbs/objects.h"

// The private nodes. rdma-core's provider libraries, which many programs drag in (Debian's perftest links libmlx5 and
// libefa, all bound at load), must find every name that they import. No device of ours is theirs, so nothing here is
// reached in good order; what is reached all the same says that there is no kernel driver. Arguments are those of
// private structures and are not looked at.
//
// What rdma-core changes between releases is the meaning of arguments, so one function serves every node (verbs/export.h).

#define WEFT_NO_KERNEL_COMMAND_SINCE(release, name)                                     \
  WEFT_VERBS_API int weft_##name(void);                                                 \
  int weft_##name(void) { return weft::verbs::Report(EOPNOTSUPP); }                     \
  WEFT_PRIVATE_SYMBOL_SINCE_##release(weft_##name, name)
#define WEFT_NO_KERNEL_COMMAND(name) WEFT_NO_KERNEL_COMMAND_SINCE(34, name);

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
WEFT_NO_KERNEL_COMMAND(ibv_cmd_create_cq_ex2)
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

WEFT_NO_KERNEL_COMMAND_SINCE(59, ibv_cmd_alloc_dmah);
WEFT_NO_KERNEL_COMMAND_SINCE(59, ibv_cmd_free_dmah);
WEFT_NO_KERNEL_COMMAND_SINCE(59, ibv_cmd_reg_mr_ex);
WEFT_NO_KERNEL_COMMAND_SINCE(59, ibv_cmd_export_dmabuf_fd);
WEFT_NO_KERNEL_COMMAND_SINCE(59, ibv_cmd_query_port_speed);
WEFT_NO_KERNEL_COMMAND_SINCE(65, ibv_cmd_create_comp_cntr);
WEFT_NO_KERNEL_COMMAND_SINCE(65, ibv_cmd_destroy_comp_cntr);
WEFT_NO_KERNEL_COMMAND_SINCE(65, ibv_cmd_inc_comp_cntr);
WEFT_NO_KERNEL_COMMAND_SINCE(65, ibv_cmd_inc_err_comp_cntr);
WEFT_NO_KERNEL_COMMAND_SINCE(65, ibv_cmd_qp_attach_comp_cntr);
WEFT_NO_KERNEL_COMMAND_SINCE(65, ibv_cmd_query_comp_cntr_caps);
WEFT_NO_KERNEL_COMMAND_SINCE(65, ibv_cmd_read_comp_cntr);
WEFT_NO_KERNEL_COMMAND_SINCE(65, ibv_cmd_read_err_comp_cntr);
WEFT_NO_KERNEL_COMMAND_SINCE(65, ibv_cmd_set_comp_cntr);
WEFT_NO_KERNEL_COMMAND_SINCE(65, ibv_cmd_set_err_comp_cntr);

#undef WEFT_NO_KERNEL_COMMAND
#undef WEFT_NO_KERNEL_COMMAND_SINCE

WEFT_VERBS_API int weft_execute_ioctl(ibv_context*, void*) { return weft::verbs::Report(EOPNOTSUPP); }
WEFT_PRIVATE_SYMBOL_SINCE_34(weft_execute_ioctl, execute_ioctl);
WEFT_VERBS_API unsigned int weft_ioctl_final_num_attrs(unsigned int count, void*) { return count; }
WEFT_PRIVATE_SYMBOL_SINCE_34(weft_ioctl_final_num_attrs, __ioctl_final_num_attrs);

// Heaps of memory that devices share (dma-buf), which a provider makes for its allocators: there are none.
WEFT_VERBS_API void* weft_ibv_dmabuf_heap_alloc(void*, size_t, int*) { return weft::verbs::Fail<void>(EOPNOTSUPP); }
WEFT_PRIVATE_SYMBOL_SINCE_64(weft_ibv_dmabuf_heap_alloc, ibv_dmabuf_heap_alloc);
WEFT_VERBS_API void* weft_ibv_dmabuf_heap_cc_shared_init(void) { return weft::verbs::Fail<void>(EOPNOTSUPP); }
WEFT_PRIVATE_SYMBOL_SINCE_64(weft_ibv_dmabuf_heap_cc_shared_init, ibv_dmabuf_heap_cc_shared_init);
WEFT_VERBS_API void weft_ibv_dmabuf_heap_destroy(void*) {}
WEFT_PRIVATE_SYMBOL_SINCE_64(weft_ibv_dmabuf_heap_destroy, ibv_dmabuf_heap_destroy);
WEFT_VERBS_API void weft_ibv_dmabuf_heap_free(void*, size_t, int) {}
WEFT_PRIVATE_SYMBOL_SINCE_64(weft_ibv_dmabuf_heap_free, ibv_dmabuf_heap_free);

// Providers announce themselves from constructors, by the name of their release. They are ignored: our devices have their provider built in.
WEFT_VERBS_API void weft_register_driver(const void*) {}
WEFT_VERBS_SYMBOL(weft_register_driver, verbs_register_driver_34, "IBVERBS_PRIVATE_34");
WEFT_VERBS_SYMBOL(weft_register_driver, verbs_register_driver_57, "IBVERBS_PRIVATE_57");
WEFT_VERBS_SYMBOL(weft_register_driver, verbs_register_driver_59, "IBVERBS_PRIVATE_59");
WEFT_VERBS_SYMBOL(weft_register_driver, verbs_register_driver_64, "IBVERBS_PRIVATE_64");
WEFT_VERBS_SYMBOL(weft_register_driver, verbs_register_driver_65, "IBVERBS_PRIVATE_65");

WEFT_VERBS_API ibv_context* weft_verbs_open_device(ibv_device*, void*) { return weft::verbs::Fail<ibv_context>(EOPNOTSUPP); }
WEFT_PRIVATE_SYMBOL_SINCE_34(weft_verbs_open_device, verbs_open_device);
WEFT_VERBS_API void* weft_verbs_init_and_alloc_context(ibv_device*, int, size_t, void*, uint32_t) {
  return weft::verbs::Fail<void>(EOPNOTSUPP);
}
WEFT_PRIVATE_SYMBOL_SINCE_34(weft_verbs_init_and_alloc_context, _verbs_init_and_alloc_context);
WEFT_VERBS_API void weft_verbs_uninit_context(void*) {}
WEFT_PRIVATE_SYMBOL_SINCE_34(weft_verbs_uninit_context, verbs_uninit_context);
WEFT_VERBS_API void weft_verbs_set_ops(void*, const void*) {}
WEFT_PRIVATE_SYMBOL_SINCE_34(weft_verbs_set_ops, verbs_set_ops);
WEFT_VERBS_API void weft_verbs_init_cq(ibv_cq*, ibv_context*, ibv_comp_channel*, void*) {}
WEFT_PRIVATE_SYMBOL_SINCE_34(weft_verbs_init_cq, verbs_init_cq);
WEFT_VERBS_API void weft_verbs_log(void*, uint32_t, const char*, ...) {}
WEFT_PRIVATE_SYMBOL_SINCE_34(weft_verbs_log, __verbs_log);

// Data: providers read it when a kernel device was unplugged.
extern "C" {
__attribute__((visibility("default"), used)) bool weft_verbs_allow_disassociate_destroy = false;
}
WEFT_PRIVATE_SYMBOL_SINCE_34(weft_verbs_allow_disassociate_destroy, verbs_allow_disassociate_destroy);
