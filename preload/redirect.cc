#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <initializer_list>

#include "preload/interpose.h"

namespace weft::preload {
namespace {

// The directory that relative paths start at; not one of the tree, below which the kernel finds its way by itself.
bool BaseOf(int dirfd, char* out) {
  long length;
  if (dirfd == AT_FDCWD) {
    length = syscall(SYS_getcwd, out, kMaxPath);
  } else {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
    length = syscall(SYS_readlinkat, AT_FDCWD, link, out, kMaxPath - 1);
    if (length >= 0) out[length] = '\0';
  }
  return length > 0 && out[0] == '/';
}

__attribute__((noinline)) bool CanonicalBelow(int dirfd, const char* path, char* out) {
  char base[kMaxPath];
  return BaseOf(dirfd, base) && CanonicalIfOurs(base, path, out);
}

// Where weft-paths makes trees: a process that inherited its working directory learns from it that there is one.
bool LooksLikeATree(const char* path) {
  for (const char* home : {"/dev/shm/weft-", "/tmp/weft-"}) {
    if (strncmp(path, home, strlen(home)) != 0) continue;
    const char* user = path + strlen(home);
    const size_t digits = strspn(user, "0123456789");
    // "weft-UID" or "weft-UID.XXXXXX" (home.h)
    const char* rest = user + digits;
    if (digits > 0 && *rest == '.') rest += strcspn(rest, "/");
    return digits > 0 && *rest == '/';
  }
  return false;
}

bool RootAbove(const char* path, char* root) { return LooksLikeATree(path) && AskForRoot(root) && BelowRoot(root, path) != nullptr; }

}  // namespace

bool Map(int dirfd, const char* path, Mapped* mapped) {
  const int error = errno;
  char* const canonical = mapped->bytes + kMaxRoot;
  const bool ours = path[0] == '/' ? CanonicalIfOurs(nullptr, path, canonical) : CanonicalBelow(dirfd, path, canonical);
  errno = error;
  char root[kMaxRoot];
  if (!ours || !AskForRoot(root)) return false;
  const size_t length = strlen(root);
  mapped->place = IsDevicePath(canonical) ? Place::kDevice : Place::kSys;
  mapped->path = static_cast<char*>(memcpy(canonical - length, root, length));
  return true;
}

size_t ShowAsProgramKnows(char* path, size_t length) {
  char whole[kMaxPath];
  if (length >= sizeof whole) return length;
  memcpy(whole, path, length);
  whole[length] = '\0';
  char root[kMaxRoot];
  if (!RootAbove(whole, root)) return length;
  const size_t cut = strlen(root);
  if (cut == length) return path[0] = '/', 1;
  memmove(path, path + cut, length - cut);
  return length - cut;
}

void ShowAsProgramKnows(char* path) { path[ShowAsProgramKnows(path, strlen(path))] = '\0'; }

}  // namespace weft::preload
