#ifndef BASE_FILE_LIMIT_H_
#define BASE_FILE_LIMIT_H_

#include <sys/resource.h>

#include <cstdint>
#include <string>

namespace weft {

// The largest number of descriptors that a process can use with Weft: 65,536 queue pairs, and as many for the program
// itself. It is bounded because some programs close every number up to the limit before they execute another program,
// and some containers have a hard limit of 2^30.
inline constexpr rlim_t kMostFiles = 131072;

// Raises this process's soft limit on open descriptors to the hard limit, at most kMostFiles. The first call does this;
// later calls do nothing. Called before sockets are opened. Returns the limit before the first call: a program started
// from here gets it back, because a program that uses select() must not get descriptors above 1023.
rlimit RaiseFileLimit();

// Whether `error`, from socket(), accept(), connect() and the like, means that the system is out of descriptors, memory
// or ports. The caller then waits; the peer did nothing wrong. EAGAIN is no shortage: on a non-blocking descriptor it
// means that there is nothing to do.
bool IsShortage(int error);

// Whether this process may make a file of `bytes` bytes, also one in memory (ulimit -f). A longer file raises SIGXFSZ.
bool MayMakeFile(uint64_t bytes);

// Whether the descriptor `fd`, just opened, may be used for something optional. Three quarters of the descriptors that
// a process may have are reserved for connections, which cannot do without. A process with many connections gets 7/8 of
// those that it would have if nothing optional used descriptors.
bool IsToSpare(int fd);

// A message such as "Too many open files (the limit is 256, see ulimit -n)", which names the limit that was reached.
std::string DescribeShortage(int error);

}  // namespace weft

#endif  // BASE_FILE_LIMIT_H_
