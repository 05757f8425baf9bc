#include <cerrno>

#include "verbs/export.h"
#include "verbs/objects.h"

// Memory windows. Those of type 2 are bound by ibv_post_send and ibv_wr_bind_mw.
namespace weft::verbs {
namespace {

ibv_mw* AllocMw(ibv_pd* pd, ibv_mw_type type) {
  if (!Known(FromPublic(pd))) return Fail<ibv_mw>(ENOENT);
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) return Fail<ibv_mw>(EINVAL);
  if (const int error = Fault(faults::Call::kAllocMw, pd->context)) return Fail<ibv_mw>(error);
  Context* context = FromPublic(pd->context);
  auto stag = context->rnic->memory().AllocateWindow(*FromPublic(pd)->domain, type);
  if (!stag.ok()) return Fail<ibv_mw>(stag.error());
  FromPublic(pd)->domain->users.fetch_add(1);
  auto* mw = new Mw{};
  Name(*mw, pd->context);
  mw->pd = pd;
  mw->rkey = stag->value;
  mw->type = type;
  return mw;
}

int DeallocMw(ibv_mw* public_mw) {
  Mw* mw = FromPublic(public_mw);
  if (!Known(mw)) return Report(ENOENT);
  FromPublic(mw->context)->rnic->DeallocateWindow(ddp::STag(mw->rkey));
  FromPublic(mw->pd)->domain->users.fetch_sub(1);
  delete mw;
  return 0;
}

// Type 1: the header has checked that, and that region and window are of one domain. The RNIC knows the type of each window; a work
// request to bind is written as one for type 2.
int BindMw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
  if (qp->context != mw->context) return EINVAL;
  ibv_mw window = *mw;
  window.type = IBV_MW_TYPE_2;
  ibv_send_wr wr = {};
  wr.wr_id = bind->wr_id;
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = bind->send_flags;
  wr.bind_mw.mw = &window;
  wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
  wr.bind_mw.bind_info = bind->bind_info;
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(qp, &wr, &bad);
  if (error == 0) mw->rkey = wr.bind_mw.rkey;
  return error;
}

}  // namespace

void FillMemoryWindowOperations(verbs_context* vctx) {
  vctx->context.ops.alloc_mw = AllocMw;
  vctx->context.ops.dealloc_mw = DeallocMw;
  vctx->context.ops.bind_mw = Reported<BindMw>;
}

}  // namespace weft::verbs
