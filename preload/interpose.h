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

// What the interposed functions of the C library have in common.

// Declares weft_NAME to be the C library's NAME for the program, and next_NAME() to be the one that would have been called without us. The
// assembler's name, not C's: the headers' declarations differ in attributes between versions.
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

// The path of the tree for `path` below the directory `dirfd`. False: not ours, or there is no tree. errno stays. redirect.cc
bool Map(int dirfd, const char* path, Mapped* mapped);

template <typename Call>
__attribute__((noinline)) auto RedirectedSlowly(int dirfd, const char* path, Call call) {
  Mapped mapped;  // large: only here
  if (Map(dirfd, path, &mapped)) return call(AT_FDCWD, static_cast<const char*>(mapped.path), mapped.place);
  return call(dirfd, path, Place::kElsewhere);
}

// call(dirfd, path, place) with the tree's path if `path` is ours.
template <typename Call>
auto Redirected(int dirfd, const char* path, Call call) {
  if (path == nullptr || !MayBeOurs(path)) [[likely]] return call(dirfd, path, Place::kElsewhere);
  return RedirectedSlowly(dirfd, path, call);
}

// Shortens `path` (terminated), which the C library made, to what the program knows it by. redirect.cc
void ShowAsProgramKnows(char* path);
// The same of `length` bytes without terminator; the new length. redirect.cc
size_t ShowAsProgramKnows(char* path, size_t length);

}  // namespace weft::preload

#endif  // PRELOAD_INTERPOSE_H_
