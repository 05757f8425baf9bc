#ifndef BASE_FILE_LIMIT_H_
#define BASE_FILE_LIMIT_H_

#include <sys/resource.h>

#include <cstdint>
#include <string>

namespace weft {

// As many descriptors as a process of Weft's can use: 65,536 queue pairs, and as many of the program's own. No more, since there are
// programs that close every number up to the limit before they execute another, and containers whose hard limit is 2^30.
inline constexpr rlim_t kMostFiles = 131072;

// Raises this process's soft limit on open descriptors to the hard one (kMostFiles at most), where sockets will be opened; once, later calls
// do nothing. Returns the limit as it was before the first call, for programs that are started from here: one that uses
// select() must not get numbers beyond 1023.
rlimit RaiseFileLimit();

// Whether `error`, of socket(), accept(), connect() and the like, says that there is no room now (descriptors, memory,
// ports): a state to wait in, and nothing that the peer did. EAGAIN is none: of a descriptor that does not block it says
// that there is nothing to do.
bool IsShortage(int error);

// Whether this process may make a file of so many bytes, in memory too (ulimit -f). One that is longer costs it a SIGXFSZ.
bool MayMakeFile(uint64_t bytes);

// Whether a descriptor that was opened is one to spare. Three quarters of those that a process may have are for connections, which have to have one:
// who has many of them gets 7 of 8 that it would have without what saves only time.
bool IsToSpare(int fd);

// "Too many open files (the limit is 256, see ulimit -n)", for a message that names the limit that was met.
std::string DescribeShortage(int error);

}  // namespace weft

#endif  // BASE_FILE_LIMIT_H_
