#ifndef PRELOAD_PATHS_H_
#define PRELOAD_PATHS_H_

#include <cstddef>

// Decides which paths are Weft's, and where they are in the tree. Allocates no memory and takes no lock; errno may
// change.
namespace weft::preload {

inline constexpr size_t kMaxPath = 4096;  // with the terminator

// Writes the canonical form of `path` into `out` (kMaxPath bytes): without "//" and "/./", and without a slash at the
// end unless it had one. A relative path is below `base`. Only if the path is one of
//   /sys/class/infiniband, /sys/class/infiniband_verbs, /sys/class/misc/rdma_cm, /dev/infiniband,
//   /sys/devices/virtual/infiniband, /sys/devices/virtual/infiniband_verbs, /sys/devices/virtual/misc/rdma_cm,
//   /sys/class/net/IF/device/infiniband, /sys/class/net/IF/device/infiniband_verbs,
// or below it. Returns false if it is not, or is too long. Keeps "..", so that symbolic links keep their meaning.
bool CanonicalIfOurs(const char* base, const char* path, char* out);

// Whether `path`, absolute or relative, may be one of these: cheap, and true for all of them.
bool MayBeOurs(const char* path);

// Whether a result of CanonicalIfOurs is below /dev.
bool IsDevicePath(const char* canonical);

// The part of `path` behind `root`, which is the path that programs know, if `path` is the root or below it; otherwise
// null. "" stands for the root itself.
const char* BelowRoot(const char* root, const char* path);

}  // namespace weft::preload

#endif  // PRELOAD_PATHS_H_
