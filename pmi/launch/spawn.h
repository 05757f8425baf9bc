#ifndef PMI_LAUNCH_SPAWN_H_
#define PMI_LAUNCH_SPAWN_H_

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "pmi/error.h"

namespace weft::pmi {

// The parent's ends of the connections with a rank, which the caller closes. All are non-blocking and closed on exec.
// -1: there is none.
struct Spawned {
  pid_t pid = -1;
  int pmi = -1;
  int output = -1;
  int error_output = -1;
  int input = -1;
};

struct SpawnRequest {
  // the program comes first; without a slash it is looked for in the PATH of its own environment
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // NAME=VALUE; PMI_FD is added
  std::string directory;
  // directories, separated by colons, to look for it instead; relative ones are relative to the working directory
  std::string search_path;
  bool wants_input = false;  // otherwise its standard input is empty
};

// Starts a program with the signal settings of a shell, as the leader of a new session. A signal to its process group
// then also reaches the processes that it starts. If the kernel shares the CPU between sessions (autogroup), ranks are
// treated as under hydra. The program is killed when the calling process dies. Its limit on open files is the one that
// RaiseFileLimit() (base/file_limit.h) found. Returns when the program runs or has failed: exit code 127: not found;
// 126: cannot be executed; 1: other errors.
Result<Spawned, LaunchError> Spawn(const SpawnRequest& request);

// The descendants of `ancestor`, according to /proc.
std::vector<pid_t> DescendantsOf(pid_t ancestor);
// Sends SIGKILL to all descendants of this process, including those that are started meanwhile, until none is left or
// `most` has passed.
void KillDescendants(std::chrono::milliseconds most);
// Those of `processes` that belong to a session of one of `leaders`, which Spawn() started.
std::vector<pid_t> OfSessions(std::vector<pid_t> processes, const std::vector<pid_t>& leaders);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_SPAWN_H_
