#ifndef PRELOAD_INTERPOSE_H_
#define PRELOAD_INTERPOSE_H_

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "preload/paths.h"
#include "preload/root.h"

// Common parts of the interposed functions of the C library.

// Declares weft_NAME, which the program gets as the C library's NAME, and next_NAME(), the function that would be
// called without Weft. Uses the assembler's name, since the attributes in the headers' declarations differ between
// versions.
#define WEFT_INTERPOSE(result, name, ...)                                                                              \
  extern "C" __attribute__((visibility("default"), used)) result weft_##name(__VA_ARGS__) __asm__(#name);              \
  [[maybe_unused]] static auto next_##name() {                                                                         \
    static constinit std::atomic<void*> slot{nullptr};                                                                 \
    return reinterpret_cast<decltype(&weft_##name)>(::weft::preload::Next(slot, #name));                               \
  }                                                                                                                    \
  extern "C" result weft_##name(__VA_ARGS__)

namespace weft::preload {

inline void* Next(std::atomic<void*>& slot, const char* name) {
  void* function = slot.load(std::memory_order_relaxed);
  if (function != nullptr) return function;
  function = dlsym(RTLD_NEXT, name);
  slot.store(function, std::memory_order_relaxed);
  return function;
}

enum class Place {
  kElsewhere,
  kSys,     // /sys/...
  kDevice,  // /dev/infiniband/...
};

// `canonical` starts at this offset, so that the root fits in front of it.
struct Mapped {
  char bytes[kMaxRoot + kMaxPath];
  const char* path = nullptr;
  Place place = Place::kElsewhere;
};

// The path in the tree for `path` below the directory `dirfd`. Returns false if the path is not Weft's, or there is no
// tree. errno is unchanged. redirect.cc
bool Map(int dirfd, const char* path, Mapped* mapped);

template <typename Call>
__attribute__((noinline)) auto RedirectedSlowly(int dirfd, const char* path, Call call) {
  Mapped mapped;  // large, so only here
  if (Map(dirfd, path, &mapped)) return call(AT_FDCWD, static_cast<const char*>(mapped.path), mapped.place);
  return call(dirfd, path, Place::kElsewhere);
}

// Calls call(dirfd, path, place), with the path in the tree if `path` is Weft's.
template <typename Call>
auto Redirected(int dirfd, const char* path, Call call) {
  if (path == nullptr || !MayBeOurs(path)) [[likely]] return call(dirfd, path, Place::kElsewhere);
  return RedirectedSlowly(dirfd, path, call);
}

// Shortens `path` (terminated), which the C library made, to the path that the program knows. redirect.cc
void ShowAsProgramKnows(char* path);
// The same for `length` bytes without terminator. Returns the new length. redirect.cc
size_t ShowAsProgramKnows(char* path, size_t length);

}  // namespace weft::preload

#endif  // PRELOAD_INTERPOSE_H_
