#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "verbs/export.h"
#include "verbs/objects.h"

namespace weft::verbs {
namespace {

// nullptr: not of a type that connects.
std::shared_ptr<sim::QueuePair> ResolveQueuePair(ibv_qp* qp) {
  return std::dynamic_pointer_cast<sim::QueuePair>(FromPublic(qp)->shared);
}

}  // namespace
}  // namespace weft::verbs

using weft::verbs::Context;
using weft::verbs::Fail;
using weft::verbs::FromPublic;

WEFT_VERBS_API ibv_context* ibv_open_device(ibv_device* device) {
  if (weft::faults::Enabled()) {
    if (const int error = weft::faults::FailureOf(weft::faults::Call::kOpenDevice, device->name)) return Fail<ibv_context>(error);
  }
  auto async = std::make_shared<weft::verbs::AsyncEvents>(FromPublic(device));
  if (async->queue.fd() < 0) return Fail<ibv_context>(EMFILE);
  weft::sim::Rnic::SetQueuePairResolver(weft::verbs::ResolveQueuePair);  // no ibv_qp can exist before this

  auto* context = new Context{};
  context->sz = sizeof(verbs_context);
  weft::verbs::FillUnsupportedOperations(context);
  weft::verbs::FillDeviceOperations(context);
  weft::verbs::FillCompletionOperations(context);
  weft::verbs::FillQueuePairOperations(context);
  weft::verbs::FillSharedReceiveOperations(context);
  weft::verbs::FillMemoryOperations(context);
  weft::verbs::FillDeviceMemoryOperations(context);
  weft::verbs::FillXrcOperations(context);
  weft::verbs::FillParentDomainOperations(context);
  weft::verbs::FillMemoryWindowOperations(context);
  context->rnic = &weft::sim::Rnic::Process();
  context->context.device = device;
  context->context.cmd_fd = -1;
  context->context.async_fd = async->queue.fd();
  context->context.num_comp_vectors = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  context->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  pthread_mutex_init(&context->context.mutex, nullptr);
  context->async = std::move(async);
  context->rnic->ports().Observe(device->name, context->async);
  context->rnic->device_faults().Opened(device->name, context->async);
  return &context->context;
}

WEFT_VERBS_API int ibv_close_device(ibv_context* context) {
  pthread_mutex_destroy(&context->mutex);
  delete FromPublic(context);
  return 0;
}

// There is no kernel object behind a device that another process could share.
WEFT_VERBS_API ibv_context* ibv_import_device(int) { return Fail<ibv_context>(EOPNOTSUPP); }
WEFT_VERBS_API ibv_pd* ibv_import_pd(ibv_context*, uint32_t) { return Fail<ibv_pd>(EOPNOTSUPP); }
WEFT_VERBS_API void ibv_unimport_pd(ibv_pd*) {}
WEFT_VERBS_API ibv_mr* ibv_import_mr(ibv_pd*, uint32_t) { return Fail<ibv_mr>(EOPNOTSUPP); }
WEFT_VERBS_API void ibv_unimport_mr(ibv_mr*) {}
WEFT_VERBS_API ibv_dm* ibv_import_dm(ibv_context*, uint32_t) { return Fail<ibv_dm>(EOPNOTSUPP); }
WEFT_VERBS_API void ibv_unimport_dm(ibv_dm*) {}

// Nothing is registered with hardware that a fork's copy-on-write could pull away.
WEFT_VERBS_API int ibv_fork_init(void) { return 0; }
WEFT_VERBS_API ibv_fork_status ibv_is_fork_initialized(void) { return IBV_FORK_UNNEEDED; }
WEFT_VERBS_API int ibv_dontfork_range(void*, size_t) { return 0; }
WEFT_VERBS_API int ibv_dofork_range(void*, size_t) { return 0; }
