#ifndef PRELOAD_ROOT_H_
#define PRELOAD_ROOT_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>

// Where this process's tree (preload/tree.h) is. Made when it is first asked for by running weft-paths, which stands beside this library,
// and brought up to date in the same way when it is asked for again and older than two seconds: port state, addresses and counters then
// follow the interfaces. Thread safe, also in a child after fork; signals are blocked meanwhile. The program sees no child process of ours:
// its wait() cannot return it, and no SIGCHLD comes.
namespace weft::preload {

inline constexpr size_t kMaxRoot = 256;

// Copies the root's path, terminated, into `out` (kMaxRoot bytes). False: there is none (WEFT_PATHS=off, settings that are wrong, nowhere
// to write). errno stays as it is.
bool AskForRoot(char* out);

// Whether `status` is of a device node of the tree (false until AskForRoot() succeeded).
bool IsNode(const struct stat& status);

}  // namespace weft::preload

#endif  // PRELOAD_ROOT_H_
