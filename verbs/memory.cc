#include <cerrno>
#include <cstdint>
#include <vector>

#include "sim/memory/pages.h"
#include "verbs/export.h"
#include "verbs/objects.h"

// Protection domains and memory regions.
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace weft::verbs {
namespace {

ibv_mr* NewMr(ibv_pd* pd, void* address, size_t length, const sim::RegionInfo& region) {
  auto* mr = new Mr{};
  Name(*mr, pd->context);
  mr->pd = pd;
  mr->addr = address;
  mr->length = length;
  mr->lkey = mr->rkey = region.stag.value;
  mr->access = region.access;
  mr->iova = region.offset;
  FromPublic(pd)->domain->users.fetch_add(1);
  return mr;
}

ibv_mr* RegisterRegion(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access) {
  if (!Known(FromPublic(pd))) return Fail<ibv_mr>(ENOENT);
  if (const int error = Fault(faults::Call::kRegMr, pd->context)) return Fail<ibv_mr>(error);
  // Optional flags are hints that a device may ignore (ibv_reg_mr(3)).
  access &= ~static_cast<int>(IBV_ACCESS_OPTIONAL_RANGE);
  auto region = FromPublic(pd->context)->rnic->memory().Register(*FromPublic(pd)->domain, reinterpret_cast<uintptr_t>(address),
                                                                 length, iova, access);
  return region.ok() ? NewMr(pd, address, length, *region) : Fail<ibv_mr>(region.error());
}

ibv_mr* AllocNullMr(ibv_pd* pd) {
  if (!Known(FromPublic(pd))) return Fail<ibv_mr>(ENOENT);
  auto region = FromPublic(pd->context)->rnic->memory().RegisterNull(*FromPublic(pd)->domain);
  if (!region.ok()) return Fail<ibv_mr>(region.error());
  ibv_mr* mr = NewMr(pd, nullptr, SIZE_MAX, *region);
  mr->rkey = 0;
  FromPublic(mr)->null = true;
  return mr;
}

// Each element is looked at before any is fetched. To prefetch without faulting is to look whether the pages are there, which is all
// that a table walked by a processor needs.
int AdviseMr(ibv_pd* pd, ibv_advise_mr_advice advice, uint32_t flags, ibv_sge* list, uint32_t count) {
  const bool no_fault = advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
  const bool write = advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE;
  if (!Known(FromPublic(pd))) return ENOENT;
  if (advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH && !write && !no_fault) return ENOTSUP;
  if (flags & ~uint32_t{IB_UVERBS_ADVISE_MR_FLAG_FLUSH}) return EINVAL;
  if (count == 0 || list == nullptr) return EINVAL;
  std::vector<uint64_t> addresses(count);
  for (uint32_t i = 0; i < count; ++i) {
    const auto region = FromPublic(pd->context)->rnic->memory().Find(*FromPublic(pd)->domain, list[i].lkey);
    if (!region.has_value() || !(region->access & IBV_ACCESS_ON_DEMAND)) return EFAULT;
    if (write && !(region->access & IBV_ACCESS_LOCAL_WRITE)) return EPERM;
    const uint64_t offset = list[i].addr - region->offset;
    if (list[i].addr < region->offset || offset > region->length || list[i].length > region->length - offset) return EFAULT;
    addresses[i] = region->address + offset;
  }
  for (uint32_t i = 0; i < count && !no_fault; ++i) {
    if (int error = sim::PopulatePages(addresses[i], list[i].length, write)) return error;
  }
  return 0;
}

}  // namespace

void FillMemoryOperations(verbs_context* vctx) {
  vctx->alloc_null_mr = AllocNullMr;
  vctx->advise_mr = Reported<AdviseMr>;
}

}  // namespace weft::verbs

using weft::verbs::Context;
using weft::verbs::Fail;
using weft::verbs::FromPublic;
using weft::verbs::Mr;
using weft::verbs::Pd;
using weft::verbs::Report;

WEFT_VERBS_API ibv_pd* ibv_alloc_pd(ibv_context* public_context) {
  Context* context = FromPublic(public_context);
  if (const int error = weft::verbs::Fault(weft::faults::Call::kAllocPd, public_context)) return Fail<ibv_pd>(error);
  if (!FromPublic(public_context->device)->pds.Take()) return Fail<ibv_pd>(ENOMEM);
  auto* pd = new Pd{};
  weft::verbs::Name(*pd, public_context);
  pd->domain = context->rnic->AllocatePd();
  return pd;
}

WEFT_VERBS_API int ibv_dealloc_pd(ibv_pd* public_pd) {
  Pd* pd = FromPublic(public_pd);
  if (!weft::verbs::Known(pd)) return Report(ENOENT);
  if (pd->domain->users.load() != 0) return Report(EBUSY);
  if (pd->base != nullptr) pd->base->domain->users.fetch_sub(1);
  if (pd->td != nullptr) pd->td->users.fetch_sub(1);
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
  if (!weft::verbs::Known(mr)) return Report(ENOENT);
  if (FromPublic(mr->context)->rnic->DeregisterMemory(weft::ddp::STag(mr->lkey)) == EBUSY) return Report(EBUSY);  // windows are bound to it
  FromPublic(mr->pd)->domain->users.fetch_sub(1);
  if (mr->dm != nullptr) mr->dm->regions.fetch_sub(1);
  delete mr;
  return 0;
}

// Keys stay, as adapters leave them. Every failure leaves the region valid: IBV_REREG_MR_ERR_INPUT.
WEFT_VERBS_API int ibv_rereg_mr(ibv_mr* public_mr, int flags, ibv_pd* new_pd, void* address, size_t length,
                                int access) {
  Mr* mr = FromPublic(public_mr);
  const auto refuse = [](int error) {
    errno = error;
    return IBV_REREG_MR_ERR_INPUT;
  };
  if (!weft::verbs::Known(mr)) return refuse(ENOENT);
  const bool moved = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
  const bool new_access = flags & IBV_REREG_MR_CHANGE_ACCESS;
  if ((flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0 || flags == 0 || mr->null || mr->dm != nullptr) return refuse(EINVAL);
  if (moved && (address == nullptr || length == 0)) return refuse(EINVAL);
  if (access != 0 && !new_access) return refuse(EINVAL);
  if ((flags & IBV_REREG_MR_CHANGE_PD) && (new_pd == nullptr || new_pd->context != mr->context)) return refuse(EINVAL);
  if ((flags & IBV_REREG_MR_CHANGE_PD) && !weft::verbs::Known(FromPublic(new_pd))) return refuse(ENOENT);
  ibv_pd* pd = flags & IBV_REREG_MR_CHANGE_PD ? new_pd : mr->pd;
  if (new_access) access &= ~static_cast<int>(IBV_ACCESS_OPTIONAL_RANGE);
  auto region = FromPublic(mr->context)->rnic->ReregisterMemory(
      weft::ddp::STag(mr->lkey), *FromPublic(pd)->domain, reinterpret_cast<uintptr_t>(moved ? address : mr->addr),
      moved ? length : mr->length, moved ? reinterpret_cast<uintptr_t>(address) : mr->iova, new_access ? access : mr->access);
  if (!region.ok()) return refuse(region.error());
  FromPublic(pd)->domain->users.fetch_add(1);
  FromPublic(mr->pd)->domain->users.fetch_sub(1);
  mr->pd = pd;
  if (moved) {
    mr->addr = address;
    mr->length = length;
  }
  mr->access = region->access;
  mr->iova = region->offset;
  return 0;
}
