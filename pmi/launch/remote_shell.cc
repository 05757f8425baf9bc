#include "pmi/launch/remote_shell.h"

#include <filesystem>

namespace weft::pmi {
namespace {

std::string QuotedForShell(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

RemoteShell RemoteShell::Program(const std::string& program) {
  return {std::filesystem::path(program).filename() == "ssh" ? Kind::kSsh : Kind::kProgram, program};
}

std::vector<std::string> RemoteShell::CommandFor(const std::string& host, const std::string& mpiexec) const {
  const std::string command = "exec " + QuotedForShell(mpiexec) + " --proxy";
  switch (kind) {
    case Kind::kSsh:
      return {program, "-x", host, command};
    case Kind::kProgram:
      return {program, host, command};
    case Kind::kSlurm:
      break;
  }
  // A step of one task beside those that run (--overlap). That task, the proxy, starts all ranks of the host, and speaks PMI to them
  // itself; Slurm's is not for it.
  return {program, "--quiet", "--overlap", "--mpi=none", "--export=ALL", "--input=all", "--nodes=1", "--ntasks=1",
          "--nodelist=" + host, mpiexec, "--proxy"};
}

std::string RemoteShell::Trial(const std::string& host) const {
  return kind == Kind::kSlurm ? program + " --overlap --nodes=1 --ntasks=1 --nodelist=" + host + " true" : program + " " + host + " true";
}

}  // namespace weft::pmi
