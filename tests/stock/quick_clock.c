// Preloaded into perftest: gettimeofday(2) runs eight times as fast for the program itself. perftest asks it only to measure the frequency of the
// processor's clock, for 0.22 s of computing in front of each row of its tables; so that takes an eighth, and its rates come out eight times too low.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/time.h>
#include <time.h>

enum { kPace = 8 };

static void* ObjectOf(const void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 ? info.dli_fbase : NULL;
}

// Weft's SCTP has its timers by the same call.
__attribute__((visibility("default"))) int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  static void* program = NULL;
  if (program == NULL) program = ObjectOf((const void*)getauxval(AT_PHDR));
  struct timespec time;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &time);
  long long microseconds = time.tv_sec * 1000000LL + time.tv_nsec / 1000;
  if (ObjectOf(__builtin_return_address(0)) == program) microseconds *= kPace;
  now->tv_sec = microseconds / 1000000;
  now->tv_usec = microseconds % 1000000;
  return 0;
}
