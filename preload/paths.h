#ifndef PRELOAD_PATHS_H_
#define PRELOAD_PATHS_H_

#include <cstddef>

// Which paths are Weft's, and where the tree has them. No memory is allocated, no lock taken; errno may change.
namespace weft::preload {

inline constexpr size_t kMaxPath = 4096;  // with the terminator

// Writes into `out` (kMaxPath bytes) the canonical form of `path` ("//" and "/./" gone, no slash at the end unless it had one), below
// `base` when it is relative, if that is one of
//   /sys/class/infiniband, /sys/class/infiniband_verbs, /sys/class/misc/rdma_cm, /dev/infiniband,
//   /sys/devices/virtual/infiniband, /sys/devices/virtual/infiniband_verbs, /sys/devices/virtual/misc/rdma_cm,
//   /sys/class/net/IF/device/infiniband, /sys/class/net/IF/device/infiniband_verbs,
// or below it. False: it is not, or is too long. ".." stands as it is, so that symbolic links keep their meaning.
bool CanonicalIfOurs(const char* base, const char* path, char* out);

// Whether `path`, absolute or not, may be one of these: cheap, and true of all of them.
bool MayBeOurs(const char* path);

// What CanonicalIfOurs gave is below /dev.
bool IsDevicePath(const char* canonical);

// The part of `path` behind `root` where it is root or below it, which is how programs know it; else null. "" stands for root itself.
const char* BelowRoot(const char* root, const char* path);

}  // namespace weft::preload

#endif  // PRELOAD_PATHS_H_
