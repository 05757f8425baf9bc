#ifndef PMI_LAUNCH_SPAWN_H_
#define PMI_LAUNCH_SPAWN_H_

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "pmi/error.h"

namespace weft::pmi {

// The parent's ends of what joins it to a rank, for the caller to close; all non-blocking and closed on exec. -1: there is none.
struct Spawned {
  pid_t pid = -1;
  int pmi = -1;
  int output = -1;
  int error_output = -1;
  int input = -1;
};

struct SpawnRequest {
  std::vector<std::string> arguments;    // the program first, looked for in the PATH of its own environment where it has no slash
  std::vector<std::string> environment;  // NAME=VALUE; PMI_FD is added
  std::string directory;
  std::string search_path;   // directories, colons between, to look for it in instead; relative ones are the working directory's
  bool wants_input = false;  // else its standard input is empty
};

// Starts a program with signals as a shell would leave them, as the leader of a session of its own: a signal to its process group
// reaches what it starts too, and where the kernel shares the CPU between sessions (autogroup), ranks count as hydra's do. It is
// killed when the calling process dies. Its limit on open files is what RaiseFileLimit() (base/file_limit.h) found. Returns when the program runs, or cannot: exit code 127 when it is not found, 126 when it
// cannot be executed, 1 otherwise.
Result<Spawned, LaunchError> Spawn(const SpawnRequest& request);

// The processes that descend from `ancestor`, as /proc tells.
std::vector<pid_t> DescendantsOf(pid_t ancestor);
// SIGKILL for all that descend from this process, and for what they started before it reached them; until none is left, or `most` has passed.
void KillDescendants(std::chrono::milliseconds most);
// Of `processes`, those of the sessions that `leaders`, which Spawn() started, began.
std::vector<pid_t> OfSessions(std::vector<pid_t> processes, const std::vector<pid_t>& leaders);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_SPAWN_H_
