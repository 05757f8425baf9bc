#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "verbs/export.h"
#include "verbs/newer.h"
#include "verbs/objects.h"

// ibv_reg_mr_ex (rdma-core 59) and buffers that the library allocates (64): ibv_reg_mr(3), ibv_alloc_buf(3).

namespace weft::verbs {
namespace {

// Whether `attributes` name a range of their buffer: 0 or EINVAL.
int CheckBuffer(const ibv_pd* pd, const RegionAttributes& attributes) {
  constexpr uint64_t kFile = RegionAttributes::kFd | RegionAttributes::kFdOffset;
  if (!(attributes.comp_mask & RegionAttributes::kAddress) || (attributes.comp_mask & kFile)) return EINVAL;
  const Buffer& buffer = *attributes.buffer;
  const auto begin = reinterpret_cast<uintptr_t>(buffer.bytes), address = reinterpret_cast<uintptr_t>(attributes.address);
  if (pd != buffer.pd || address < begin || address - begin > buffer.size) return EINVAL;
  return attributes.length <= buffer.size - (address - begin) ? 0 : EINVAL;
}

}  // namespace
}  // namespace weft::verbs

using weft::verbs::Buffer;
using weft::verbs::Fail;
using weft::verbs::FromPublic;
using weft::verbs::RegionAttributes;

WEFT_VERBS_API ibv_mr* weft_reg_mr_ex(ibv_pd* pd, const RegionAttributes* attributes) {
  const uint64_t mask = attributes->comp_mask;
  if (mask & RegionAttributes::kBuffer) {
    if (const int error = weft::verbs::CheckBuffer(pd, *attributes)) return Fail<ibv_mr>(error);
  }
  // Hints for PCIe (ibv_alloc_dmah) need a handle, which nobody has; and what came after rdma-core 65.
  constexpr uint64_t kKnown = RegionAttributes::kIova | RegionAttributes::kAddress | RegionAttributes::kFd | RegionAttributes::kFdOffset |
                              RegionAttributes::kBuffer;
  if (mask & ~kKnown) return Fail<ibv_mr>(EOPNOTSUPP);
  if (mask & RegionAttributes::kFd) {
    constexpr uint64_t kWanted = RegionAttributes::kFdOffset | RegionAttributes::kIova;
    if ((mask & RegionAttributes::kAddress) || (mask & kWanted) != kWanted) return Fail<ibv_mr>(EINVAL);
    return ibv_reg_dmabuf_mr(pd, attributes->fd_offset, attributes->length, attributes->iova, attributes->fd, attributes->access);
  }
  if (!(mask & RegionAttributes::kAddress) || (mask & RegionAttributes::kFdOffset)) return Fail<ibv_mr>(EINVAL);
  const uint64_t iova = mask & RegionAttributes::kIova ? attributes->iova : reinterpret_cast<uintptr_t>(attributes->address);
  return ibv_reg_mr_iova2(pd, attributes->address, attributes->length, iova, static_cast<unsigned>(attributes->access));
}
WEFT_VERBS_SYMBOL(weft_reg_mr_ex, ibv_reg_mr_ex, "IBVERBS_1.15");

// Page aligned, of ordinary memory: a simulated RNIC has no other.
WEFT_VERBS_API void* weft_alloc_buf(ibv_pd* pd, size_t size, Buffer** buffer) {
  if (!weft::verbs::Known(FromPublic(pd))) return Fail<void>(ENOENT);
  auto* made = new (std::nothrow) Buffer{.pd = pd, .bytes = nullptr, .size = size};
  if (made == nullptr) return Fail<void>(ENOMEM);
  void* bytes = nullptr;
  if (posix_memalign(&bytes, static_cast<size_t>(sysconf(_SC_PAGESIZE)), size) != 0) {
    delete made;
    return Fail<void>(ENOMEM);
  }
  made->bytes = static_cast<unsigned char*>(bytes);
  *buffer = made;
  return bytes;
}
WEFT_VERBS_SYMBOL(weft_alloc_buf, ibv_alloc_buf, "IBVERBS_1.17");

WEFT_VERBS_API void weft_free_buf(Buffer* buffer) {
  free(buffer->bytes);
  delete buffer;
}
WEFT_VERBS_SYMBOL(weft_free_buf, ibv_free_buf, "IBVERBS_1.17");

WEFT_VERBS_API ibv_mr* weft_reg_buf_mr(ibv_pd* pd, Buffer* buffer, void* address, size_t length, int access) {
  const RegionAttributes attributes{.length = length,
                                    .access = access,
                                    .comp_mask = RegionAttributes::kBuffer | RegionAttributes::kAddress,
                                    .iova = 0,
                                    .address = address,
                                    .fd = -1,
                                    .fd_offset = 0,
                                    .dma_handle = nullptr,
                                    .buffer = buffer};
  return weft_reg_mr_ex(pd, &attributes);
}
WEFT_VERBS_SYMBOL(weft_reg_buf_mr, ibv_reg_buf_mr, "IBVERBS_1.17");

// No buffer of ours is a dma-buf.
WEFT_VERBS_API int weft_export_buf_dmabuf_fd(Buffer*) {
  errno = ENODATA;
  return -1;
}
WEFT_VERBS_SYMBOL(weft_export_buf_dmabuf_fd, ibv_export_buf_dmabuf_fd, "IBVERBS_1.18");
