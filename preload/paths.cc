#include "preload/paths.h"

#include <cstring>

namespace weft::preload {
namespace {

constexpr const char* kPrefixes[] = {
    "/sys/class/infiniband",
    "/sys/class/infiniband_verbs",
    "/sys/class/misc/rdma_cm",
    "/sys/devices/virtual/infiniband",
    "/sys/devices/virtual/infiniband_verbs",
    "/sys/devices/virtual/misc/rdma_cm",
    "/dev/infiniband",
};
constexpr char kNet[] = "/sys/class/net/";
constexpr const char* kBelowNet[] = {"/device/infiniband", "/device/infiniband_verbs"};

bool StartsWith(const char* text, const char* prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

// `prefix` as whole components.
bool IsAtOrBelow(const char* path, const char* prefix) {
  const size_t length = strlen(prefix);
  return strncmp(path, prefix, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

bool IsOurs(const char* canonical) {
  for (const char* prefix : kPrefixes) {
    if (IsAtOrBelow(canonical, prefix)) return true;
  }
  if (!StartsWith(canonical, kNet)) return false;
  const char* rest = strchr(canonical + sizeof kNet - 1, '/');
  if (rest == nullptr) return false;
  for (const char* below : kBelowNet) {
    if (IsAtOrBelow(rest, below)) return true;
  }
  return false;
}

// Appends the components of `path` to the `length` bytes in `out`; the new length, 0 when there is no room.
size_t Append(const char* path, char* out, size_t length) {
  while (*path != '\0') {
    while (*path == '/') ++path;
    const size_t size = strcspn(path, "/");
    const bool is_dot = size == 1 && path[0] == '.';
    if (size > 0 && !is_dot) {
      if (length + 1 + size + 1 >= kMaxPath) return 0;
      out[length++] = '/';
      memcpy(out + length, path, size);
      length += size;
    } else if (size == 0 && length > 0 && out[length - 1] != '/') {
      out[length++] = '/';  // a slash at the end asks for a directory
    }
    path += size;
  }
  out[length] = '\0';
  return length;
}

}  // namespace

bool MayBeOurs(const char* path) { return strstr(path, "infiniband") != nullptr || strstr(path, "rdma_cm") != nullptr; }

bool CanonicalIfOurs(const char* base, const char* path, char* out) {
  size_t length = 0;
  if (path[0] != '/') {
    if (base == nullptr || base[0] != '/') return false;
    length = Append(base, out, 0);
  }
  length = Append(path, out, length);
  return length != 0 && IsOurs(out);
}

bool IsDevicePath(const char* canonical) { return StartsWith(canonical, "/dev/"); }

const char* BelowRoot(const char* root, const char* path) {
  const size_t length = strlen(root);
  if (length == 0 || !IsAtOrBelow(path, root)) return nullptr;
  return path + length;
}

}  // namespace weft::preload
