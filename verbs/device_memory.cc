#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "verbs/export.h"
#include "verbs/objects.h"

// Device memory. A simulated RNIC's memory is the process's.
namespace weft::verbs {
namespace {

constexpr uint32_t kLargestAlignment = 21;  // log2 of bytes

constexpr uint64_t kAccessUnit = 4;           // bytes: adapters want copies aligned so, and a program is to learn it here

bool Within(const Dm& dm, uint64_t offset, uint64_t length) { return offset <= dm.length && length <= dm.length - offset; }

bool MayCopy(const Dm& dm, uint64_t offset, uint64_t length) {
  return offset % kAccessUnit == 0 && length % kAccessUnit == 0 && Within(dm, offset, length);
}

int CopyTo(ibv_dm* public_dm, uint64_t offset, const void* from, size_t length) {
  Dm* dm = FromPublic(public_dm);
  if (!MayCopy(*dm, offset, length)) return EFAULT;
  if (length > 0) std::memcpy(dm->bytes + offset, from, length);
  return 0;
}

int CopyFrom(void* to, ibv_dm* public_dm, uint64_t offset, size_t length) {
  Dm* dm = FromPublic(public_dm);
  if (!MayCopy(*dm, offset, length)) return EFAULT;
  if (length > 0) std::memcpy(to, dm->bytes + offset, length);
  return 0;
}

ibv_dm* AllocDm(ibv_context* context, ibv_alloc_dm_attr* attributes) {
  if (attributes->comp_mask != 0) return Fail<ibv_dm>(EOPNOTSUPP);
  if (attributes->length == 0 || attributes->log_align_req > kLargestAlignment) return Fail<ibv_dm>(EINVAL);
  std::atomic<uint64_t>& used = FromPublic(context->device)->device_memory;
  const uint64_t length = attributes->length;
  if (length > kMaxDeviceMemory) return Fail<ibv_dm>(ENOMEM);
  if (used.fetch_add(length) + length > kMaxDeviceMemory) {
    used.fetch_sub(length);
    return Fail<ibv_dm>(ENOMEM);
  }
  void* bytes = nullptr;
  if (posix_memalign(&bytes, std::max<size_t>(size_t{1} << attributes->log_align_req, 64), length) != 0) {
    used.fetch_sub(length);
    return Fail<ibv_dm>(ENOMEM);
  }
  std::memset(bytes, 0, length);  // another user's data are nobody's business
  auto* dm = new Dm{};
  dm->memcpy_to_dm = Reported<CopyTo>;
  dm->memcpy_from_dm = Reported<CopyFrom>;
  dm->comp_mask = IBV_DM_MASK_HANDLE;
  Name(*dm, context);
  dm->bytes = static_cast<uint8_t*>(bytes);
  dm->length = length;
  return dm;
}

int FreeDm(ibv_dm* public_dm) {
  Dm* dm = FromPublic(public_dm);
  if (!Known(dm)) return ENOENT;
  if (dm->regions.load() != 0) return EBUSY;
  FromPublic(dm->context->device)->device_memory.fetch_sub(dm->length);
  free(dm->bytes);
  delete dm;
  return 0;
}

ibv_mr* RegDmMr(ibv_pd* pd, ibv_dm* public_dm, uint64_t offset, size_t length, unsigned int access) {
  Dm* dm = FromPublic(public_dm);
  if (!Known(dm)) return Fail<ibv_mr>(ENOENT);
  if (!(access & IBV_ACCESS_ZERO_BASED) || dm->context != pd->context || !Within(*dm, offset, length)) return Fail<ibv_mr>(EINVAL);
  ibv_mr* mr = ibv_reg_mr_iova2(pd, dm->bytes + offset, length, 0, access);
  if (mr == nullptr) return nullptr;
  mr->addr = nullptr;
  FromPublic(mr)->dm = dm;
  dm->regions.fetch_add(1);
  return mr;
}

}  // namespace

void FillDeviceMemoryOperations(verbs_context* vctx) {
  vctx->alloc_dm = AllocDm;
  vctx->free_dm = Reported<FreeDm>;
  vctx->reg_dm_mr = RegDmMr;
}

}  // namespace weft::verbs
