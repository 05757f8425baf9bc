#include <cerrno>
#include <cstdint>

#include "verbs/export.h"
#include "verbs/objects.h"

// Protection domains and memory regions.
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace weft::verbs {
namespace {

ibv_mr* RegisterRegion(ibv_pd* public_pd, void* address, size_t length, uint64_t iova, int access) {
  Pd* pd = FromPublic(public_pd);
  Context* context = FromPublic(pd->context);
  // Optional flags are hints that a device may ignore (ibv_reg_mr(3)).
  access &= ~static_cast<int>(IBV_ACCESS_OPTIONAL_RANGE);
  if (access & IBV_ACCESS_ON_DEMAND) return Fail<ibv_mr>(EOPNOTSUPP);
  auto region =
      context->rnic->memory().Register(*pd->domain, reinterpret_cast<uintptr_t>(address), length, iova, access);
  if (!region.ok()) return Fail<ibv_mr>(region.error());
  auto* mr = new Mr{};
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = address;
  mr->length = length;
  mr->handle = context->next_handle.fetch_add(1);
  mr->lkey = mr->rkey = region->stag.value;
  mr->access = access;
  mr->iova = iova;
  pd->domain->users.fetch_add(1);
  return mr;
}

}  // namespace
}  // namespace weft::verbs

using weft::verbs::Context;
using weft::verbs::Fail;
using weft::verbs::FromPublic;
using weft::verbs::Mr;
using weft::verbs::Pd;

WEFT_VERBS_API ibv_pd* ibv_alloc_pd(ibv_context* public_context) {
  Context* context = FromPublic(public_context);
  if (!FromPublic(public_context->device)->pds.Take()) return Fail<ibv_pd>(ENOMEM);
  auto* pd = new Pd{};
  pd->context = public_context;
  pd->handle = context->next_handle.fetch_add(1);
  pd->domain = context->rnic->AllocatePd();
  return pd;
}

WEFT_VERBS_API int ibv_dealloc_pd(ibv_pd* public_pd) {
  Pd* pd = FromPublic(public_pd);
  if (pd->domain->users.load() != 0) return EBUSY;
  FromPublic(pd->context->device)->pds.Return();
  delete pd;
  return 0;
}

WEFT_VERBS_API ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int access) {
  return weft::verbs::RegisterRegion(pd, address, length, reinterpret_cast<uintptr_t>(address), access);
}

WEFT_VERBS_API ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access) {
  return weft::verbs::RegisterRegion(pd, address, length, iova, access);
}

WEFT_VERBS_API ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, size_t length, uint64_t iova, unsigned int access) {
  return weft::verbs::RegisterRegion(pd, address, length, iova, static_cast<int>(access));
}

WEFT_VERBS_API ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, uint64_t, size_t, uint64_t, int, int) {
  return Fail<ibv_mr>(EOPNOTSUPP);
}

WEFT_VERBS_API int ibv_dereg_mr(ibv_mr* public_mr) {
  Mr* mr = FromPublic(public_mr);
  // The STag may be unknown by now: a peer or a local work request can have invalidated it.
  FromPublic(mr->context)->rnic->DeregisterMemory(weft::ddp::STag(mr->lkey));
  FromPublic(mr->pd)->domain->users.fetch_sub(1);
  delete mr;
  return 0;
}

// The new region is made before the old one goes, so that every failure leaves the old one valid:
// IBV_REREG_MR_ERR_INPUT. Keys change, as they may.
WEFT_VERBS_API int ibv_rereg_mr(ibv_mr* public_mr, int flags, ibv_pd* new_pd, void* address, size_t length,
                                int access) {
  Mr* mr = FromPublic(public_mr);
  const bool bad_flags = (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0 || flags == 0;
  const bool no_memory = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (address == nullptr || length == 0);
  const bool no_pd = (flags & IBV_REREG_MR_CHANGE_PD) && new_pd == nullptr;
  if (bad_flags || no_memory || no_pd) {
    errno = EINVAL;
    return IBV_REREG_MR_ERR_INPUT;
  }
  ibv_pd* pd = flags & IBV_REREG_MR_CHANGE_PD ? new_pd : mr->pd;
  const bool moved = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
  ibv_mr* fresh = weft::verbs::RegisterRegion(pd, moved ? address : mr->addr, moved ? length : mr->length,
                                              moved ? reinterpret_cast<uintptr_t>(address) : mr->iova,
                                              flags & IBV_REREG_MR_CHANGE_ACCESS ? access : mr->access);
  if (fresh == nullptr) return IBV_REREG_MR_ERR_INPUT;
  FromPublic(mr->context)->rnic->DeregisterMemory(weft::ddp::STag(mr->lkey));
  FromPublic(mr->pd)->domain->users.fetch_sub(1);
  const uint32_t handle = mr->handle;
  *mr = *FromPublic(fresh);
  mr->handle = handle;
  delete FromPublic(fresh);
  return 0;
}
