#ifndef CONTROL_CLIENT_H_
#define CONTROL_CLIENT_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace weft::control {

struct Reply {
  std::string text;
};

// Sends a request to a process that uses Weft. Blocks for a few seconds at most. The error is for users: what was
// wrong, and what to do.
Result<Reply, std::string> Ask(pid_t pid, const std::string& command, const std::string& body = "");

// The ids of processes in this network namespace that listen. Some may belong to other users, or not answer.
std::vector<pid_t> Processes();

}  // namespace weft::control

#endif  // CONTROL_CLIENT_H_
