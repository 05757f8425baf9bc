#include "verbs/xrc.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <tuple>
#include <utility>

#include "verbs/export.h"

// XRC domains. A domain of several processes (which open the same file) is not possible: each process is an RNIC of its own.
namespace weft::verbs {

void SharedOwners::Add(ibv_qp* qp) {
  std::lock_guard lock(mutex_);
  owners_.push_back(qp);
}

bool SharedOwners::Remove(ibv_qp* qp) {
  std::lock_guard lock(mutex_);
  std::erase(owners_, qp);
  return owners_.empty();
}

void SharedOwners::OnAsyncEvent(ibv_event_type type, void*) {
  std::lock_guard lock(mutex_);
  for (ibv_qp* qp : owners_) FromPublic(qp->context)->async->OnAsyncEvent(type, qp);
}

void XrcShared::Add(const Receiver& receiver) {
  std::lock_guard lock(mutex_);
  receivers_[receiver.engine->number()] = receiver;
}

bool XrcShared::Open(uint32_t number, ibv_qp* qp, Receiver* out) {
  std::lock_guard lock(mutex_);
  const auto found = receivers_.find(number);
  if (found == receivers_.end()) return false;
  *out = found->second;
  out->owners->Add(qp);
  return true;
}

bool XrcShared::Close(uint32_t number, ibv_qp* qp) {
  std::lock_guard lock(mutex_);
  const auto found = receivers_.find(number);
  if (found == receivers_.end() || !found->second.owners->Remove(qp)) return false;
  receivers_.erase(found);
  return true;
}

namespace {

// Domains that a file names, of this process.
class Files {
 public:
  using Key = std::tuple<const ibv_device*, dev_t, ino_t>;

  static Files& Process() {
    static Files* const files = new Files;
    return *files;
  }
  // Errors, as the kernel's verbs have them: EAGAIN (there is none, and O_CREAT was not given), EINVAL (O_EXCL, and there is one).
  Result<std::shared_ptr<XrcShared>, int> Open(const Key& key, int flags, sim::Rnic& rnic) {
    std::lock_guard lock(mutex_);
    std::erase_if(domains_, [](const auto& known) { return known.second.expired(); });
    const auto found = domains_.find(key);
    std::shared_ptr<XrcShared> domain = found != domains_.end() ? found->second.lock() : nullptr;
    if (domain != nullptr && (flags & O_EXCL)) return EINVAL;
    if (domain != nullptr) return domain;
    if ((flags & O_CREAT) == 0) return EAGAIN;
    domain = std::make_shared<XrcShared>(std::make_shared<sim::XrcDomain>(rnic.AllocatePd()));
    domains_[key] = domain;
    return domain;
  }

 private:
  std::mutex mutex_;  // guards domains_
  std::map<Key, std::weak_ptr<XrcShared>> domains_;
};

ibv_xrcd* OpenXrcd(ibv_context* public_context, ibv_xrcd_init_attr* attributes) {
  constexpr uint32_t kNeeded = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  Context* context = FromPublic(public_context);
  if (context->rnic->settings().persona != Persona::kRoce) return Fail<ibv_xrcd>(EOPNOTSUPP);
  if (attributes->comp_mask & ~kNeeded) return Fail<ibv_xrcd>(EOPNOTSUPP);
  if ((attributes->comp_mask & kNeeded) != kNeeded || (attributes->oflags & ~(O_CREAT | O_EXCL))) return Fail<ibv_xrcd>(EINVAL);
  auto xrcd = std::make_unique<Xrcd>();
  xrcd->context = public_context;
  if (attributes->fd == -1) {
    xrcd->shared = std::make_shared<XrcShared>(std::make_shared<sim::XrcDomain>(context->rnic->AllocatePd()));
    return xrcd.release();
  }
  struct stat file {};
  if (fstat(attributes->fd, &file) != 0) return Fail<ibv_xrcd>(errno);
  auto opened = Files::Process().Open({public_context->device, file.st_dev, file.st_ino}, attributes->oflags, *context->rnic);
  if (!opened.ok()) return Fail<ibv_xrcd>(opened.error());
  xrcd->shared = std::move(*opened);
  return xrcd.release();
}

int CloseXrcd(ibv_xrcd* xrcd) {
  if (FromPublic(xrcd)->users.load() != 0) return EBUSY;
  delete FromPublic(xrcd);
  return 0;
}

}  // namespace

void FillXrcOperations(verbs_context* vctx) {
  vctx->open_xrcd = OpenXrcd;
  vctx->close_xrcd = Reported<CloseXrcd>;
}

}  // namespace weft::verbs
