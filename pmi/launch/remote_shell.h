#ifndef PMI_LAUNCH_REMOTE_SHELL_H_
#define PMI_LAUNCH_REMOTE_SHELL_H_

#include <string>
#include <vector>

namespace weft::pmi {

// What starts a proxy on another host, and carries the invitation from its own standard input to that of the proxy.
struct RemoteShell {
  enum class Kind {
    kSsh,
    kSlurm,    // srun, inside an allocation
    kProgram,  // called as PROGRAM HOST COMMAND
  };

  Kind kind = Kind::kSsh;
  std::string program = "ssh";
  std::vector<std::string> more_arguments = {};  // before the host, or the last of srun's (HYDRA_LAUNCHER_EXTRA_ARGS)

  static RemoteShell Ssh() { return {}; }
  static RemoteShell Slurm() { return {Kind::kSlurm, "srun", {}}; }
  // ssh by another name is ssh.
  static RemoteShell Program(const std::string& program);

  // The words of the command that runs `mpiexec --proxy` on the host; `mpiexec` is the path of this program, the same there.
  std::vector<std::string> CommandFor(const std::string& host, const std::string& mpiexec) const;
  // What a user may try when a host does not answer.
  std::string Trial(const std::string& host) const;
  // Whether a terminal's Ctrl-C must not reach it: srun takes it for the end of its step, and mpiexec passes signals on itself.
  bool leaves_the_terminal() const { return kind == Kind::kSlurm; }

  bool operator==(const RemoteShell&) const = default;
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_REMOTE_SHELL_H_
