#ifndef PRELOAD_ROOT_H_
#define PRELOAD_ROOT_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>

// Where this process's tree (preload/tree.h) is. On the first request, weft-paths, which is installed next to this
// library, makes the tree. A request more than two seconds later updates it in the same way, so port state, addresses
// and counters follow the interfaces. Thread safe, also in a child after fork; signals are blocked meanwhile. The
// program does not see Weft's child process: its wait() cannot return it, and there is no SIGCHLD.
namespace weft::preload {

inline constexpr size_t kMaxRoot = 256;

// Copies the root's path, terminated, into `out` (kMaxRoot bytes). Returns false if there is none (WEFT_PATHS=off,
// invalid settings, no writable place). errno is unchanged.
bool AskForRoot(char* out);

// Whether `status` belongs to a device node of the tree (false before AskForRoot() has succeeded).
bool IsNode(const struct stat& status);

}  // namespace weft::preload

#endif  // PRELOAD_ROOT_H_
