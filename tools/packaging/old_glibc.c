// What the archive's programs and libraries would ask of a glibc that is newer than 2.31: libstdc++.a was compiled for the glibc of this machine
// and wants two symbols of glibc 2.32 and 2.36. Linked into each by tools/packaging/compiler.
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

#define HIDDEN __attribute__((visibility("hidden")))

// 2.32. Zero: there may be several threads, and locks are always taken.
HIDDEN char __libc_single_threaded = 0;

// 2.36; getrandom(2) is of Linux 3.17. It does not fail for 4 bytes, but may be interrupted until the kernel has its first entropy.
HIDDEN uint32_t arc4random(void) {
  uint32_t value;
  while (getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}
