#ifndef PMI_LAUNCH_REMOTE_SHELL_H_
#define PMI_LAUNCH_REMOTE_SHELL_H_

#include <string>
#include <vector>

namespace weft::pmi {

// The program that starts a proxy on another host, and passes its standard input, the invitation, on to the proxy.
struct RemoteShell {
  enum class Kind {
    kSsh,
    kSlurm,    // srun, inside an allocation
    kProgram,  // called as PROGRAM HOST COMMAND
  };

  Kind kind = Kind::kSsh;
  std::string program = "ssh";
  // in front of the host, or the last ones of srun (HYDRA_LAUNCHER_EXTRA_ARGS)
  std::vector<std::string> more_arguments = {};

  static RemoteShell Ssh() { return {}; }
  static RemoteShell Slurm() { return {Kind::kSlurm, "srun", {}}; }
  // A program that is ssh under another name counts as ssh.
  static RemoteShell Program(const std::string& program);

  // The command that runs `mpiexec --proxy` on the host. `mpiexec`: the path of this program, which must be the same on
  // the host.
  std::vector<std::string> CommandFor(const std::string& host, const std::string& mpiexec) const;
  // A command that the user may try if a host does not answer.
  std::string Trial(const std::string& host) const;
  // Whether a terminal's Ctrl-C must not reach it. srun would end its step; mpiexec passes signals on itself.
  bool leaves_the_terminal() const { return kind == Kind::kSlurm; }

  bool operator==(const RemoteShell&) const = default;
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_REMOTE_SHELL_H_
