#ifndef BASE_CLOSE_FROM_H_
#define BASE_CLOSE_FROM_H_

namespace weft {

// Closes all descriptors from `first` on, as close_range(2) does, and also where that does not exist: before Linux 5.9, under a filter of system calls
// that does not know it, and with a glibc before 2.34. Async-signal-safe. The process has no other thread that opens descriptors.
void CloseFrom(int first);

}  // namespace weft

#endif  // BASE_CLOSE_FROM_H_
