#include <cerrno>
#include <cstdint>

#include "base/log.h"
#include "verbs/export.h"

// IBVERBS_1.0, the ABI before 2007, with other structures behind the same names. It is not offered: a program that was
// linked against it gets no devices, and the log says what to do. The symbols are there so that such a program starts
// and hears it.
namespace {

void* NoObject() {
  errno = ENOSYS;
  return nullptr;
}
int NoFunction() {
  errno = ENOSYS;
  return ENOSYS;
}

}  // namespace

#define WEFT_OLD(type, name, result)            \
  WEFT_VERBS_API type weft_1_0_##name(void);    \
  type weft_1_0_##name(void) { return result; } \
  WEFT_VERBS_OLD_SYMBOL(weft_1_0_##name, name, "IBVERBS_1.0")

WEFT_VERBS_API void* weft_1_0_ibv_get_device_list(int* count) {
  weft::LogWarning("this program was linked against libibverbs before 1.1, whose ABI is not supported: rebuild it");
  if (count != nullptr) *count = 0;
  return NoObject();
}
WEFT_VERBS_OLD_SYMBOL(weft_1_0_ibv_get_device_list, ibv_get_device_list, "IBVERBS_1.0");

WEFT_OLD(void, ibv_free_device_list, void());
WEFT_OLD(void*, ibv_get_device_name, NoObject());
WEFT_OLD(uint64_t, ibv_get_device_guid, 0);
WEFT_OLD(void*, ibv_open_device, NoObject());
WEFT_OLD(int, ibv_close_device, NoFunction());
WEFT_OLD(int, ibv_get_async_event, NoFunction());
WEFT_OLD(void, ibv_ack_async_event, void());
WEFT_OLD(int, ibv_query_device, NoFunction());
WEFT_OLD(int, ibv_query_port, NoFunction());
WEFT_OLD(int, ibv_query_gid, NoFunction());
WEFT_OLD(int, ibv_query_pkey, NoFunction());
WEFT_OLD(void*, ibv_alloc_pd, NoObject());
WEFT_OLD(int, ibv_dealloc_pd, NoFunction());
WEFT_OLD(void*, ibv_reg_mr, NoObject());
WEFT_OLD(int, ibv_dereg_mr, NoFunction());
WEFT_OLD(void*, ibv_create_cq, NoObject());
WEFT_OLD(int, ibv_resize_cq, NoFunction());
WEFT_OLD(int, ibv_destroy_cq, NoFunction());
WEFT_OLD(int, ibv_get_cq_event, NoFunction());
WEFT_OLD(void, ibv_ack_cq_events, void());
WEFT_OLD(void*, ibv_create_srq, NoObject());
WEFT_OLD(int, ibv_modify_srq, NoFunction());
WEFT_OLD(int, ibv_query_srq, NoFunction());
WEFT_OLD(int, ibv_destroy_srq, NoFunction());
WEFT_OLD(void*, ibv_create_qp, NoObject());
WEFT_OLD(int, ibv_query_qp, NoFunction());
WEFT_OLD(int, ibv_modify_qp, NoFunction());
WEFT_OLD(int, ibv_destroy_qp, NoFunction());
WEFT_OLD(void*, ibv_create_ah, NoObject());
WEFT_OLD(int, ibv_destroy_ah, NoFunction());
WEFT_OLD(int, ibv_attach_mcast, NoFunction());
WEFT_OLD(int, ibv_detach_mcast, NoFunction());

#undef WEFT_OLD

// How providers announced themselves before the private node; hidden from new programs.
WEFT_VERBS_API void weft_1_1_ibv_register_driver(const char*, void*) {}
WEFT_VERBS_OLD_SYMBOL(weft_1_1_ibv_register_driver, ibv_register_driver, "IBVERBS_1.1");
