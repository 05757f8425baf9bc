#ifndef VERBS_NEWER_H_
#define VERBS_NEWER_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

// Structures of <infiniband/verbs.h> that are newer than rdma-core 44, the oldest version whose headers can build this
// tree. Programs of newer distributions pass them in. The names are Weft's own, so that newer headers do not collide
// with them.
namespace weft::verbs {

// ibv_mr_init_attr, rdma-core 59. `buffer` came with 64. Like every field but the first three, it is valid only if its
// bit of comp_mask is set.
struct RegionAttributes {
  static constexpr uint64_t kIova = 1 << 0;
  static constexpr uint64_t kAddress = 1 << 1;
  static constexpr uint64_t kFd = 1 << 2;
  static constexpr uint64_t kFdOffset = 1 << 3;
  static constexpr uint64_t kDmaHandle = 1 << 4;
  static constexpr uint64_t kBuffer = 1 << 5;

  size_t length;
  int access;
  uint64_t comp_mask;
  uint64_t iova;
  void* address;
  int fd;
  uint64_t fd_offset;
  void* dma_handle;
  struct Buffer* buffer;
};
static_assert(sizeof(void*) != 8 || (offsetof(RegionAttributes, comp_mask) == 16 && offsetof(RegionAttributes, fd) == 40 &&
                                     offsetof(RegionAttributes, buffer) == 64 && sizeof(RegionAttributes) == 72));

// ibv_buf, rdma-core 64; opaque to programs. Made by ibv_alloc_buf, freed by ibv_free_buf.
struct Buffer {
  ibv_pd* pd;
  unsigned char* bytes;
  size_t size;
};

}  // namespace weft::verbs

#endif  // VERBS_NEWER_H_
