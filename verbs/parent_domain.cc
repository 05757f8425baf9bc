#include <cerrno>
#include <memory>

#include "verbs/export.h"
#include "verbs/objects.h"

// Thread domains and parent domains. All objects are thread safe whatever a program promises.
namespace weft::verbs {
namespace {

ibv_td* AllocTd(ibv_context* context, ibv_td_init_attr* attributes) {
  if (attributes->comp_mask != 0) return Fail<ibv_td>(EINVAL);
  auto* td = new Td{};
  td->context = context;
  return td;
}

int DeallocTd(ibv_td* td) {
  if (FromPublic(td)->users.load() != 0) return EBUSY;
  delete FromPublic(td);
  return 0;
}

// The program's allocators are for what an adapter and the library share, of which there is nothing here: they are never called.
ibv_pd* AllocParentDomain(ibv_context* public_context, ibv_parent_domain_init_attr* attributes) {
  constexpr uint32_t kKnownMask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  if (attributes->comp_mask & ~kKnownMask) return Fail<ibv_pd>(EINVAL);
  if (attributes->pd == nullptr || attributes->pd->context != public_context) return Fail<ibv_pd>(EINVAL);
  if (attributes->td != nullptr && attributes->td->context != public_context) return Fail<ibv_pd>(EINVAL);
  Pd* base = FromPublic(attributes->pd);
  if (!Known(base)) return Fail<ibv_pd>(ENOENT);
  if (base->base != nullptr) return Fail<ibv_pd>(EINVAL);  // a parent domain itself
  if (!FromPublic(public_context->device)->pds.Take()) return Fail<ibv_pd>(ENOMEM);
  auto* pd = new Pd{};
  Name(*pd, public_context, base->handle);
  pd->domain = std::make_shared<sim::Pd>(base->domain->id);
  pd->base = base;
  pd->td = attributes->td == nullptr ? nullptr : FromPublic(attributes->td);
  base->domain->users.fetch_add(1);
  if (pd->td != nullptr) pd->td->users.fetch_add(1);
  return pd;
}

}  // namespace

void FillParentDomainOperations(verbs_context* vctx) {
  vctx->alloc_td = AllocTd;
  vctx->dealloc_td = Reported<DeallocTd>;
  vctx->alloc_parent_domain = AllocParentDomain;
}

}  // namespace weft::verbs
