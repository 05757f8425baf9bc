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
  return {std::filesystem::path(program).filename() == "ssh" ? Kind::kSsh : Kind::kProgram, program, {}};
}

std::vector<std::string> RemoteShell::CommandFor(const std::string& host, const std::string& mpiexec) const {
  std::vector<std::string> words = {program};
  std::vector<std::string> rest;
  if (kind == Kind::kSlurm) {
    // A step of one task beside those that run (--overlap). That task, the proxy, starts all ranks of the host, and speaks PMI to them
    // itself; Slurm's is not for it.
    words.insert(words.end(), {"--quiet", "--overlap", "--mpi=none", "--export=ALL", "--input=all", "--nodes=1", "--ntasks=1", "--nodelist=" + host});
    rest = {mpiexec, "--proxy"};
  } else {
    if (kind == Kind::kSsh) words.push_back("-x");
    rest = {host, "exec " + QuotedForShell(mpiexec) + " --proxy"};
  }
  words.insert(words.end(), more_arguments.begin(), more_arguments.end());
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}

std::string RemoteShell::Trial(const std::string& host) const {
  return kind == Kind::kSlurm ? program + " --overlap --nodes=1 --ntasks=1 --nodelist=" + host + " true" : program + " " + host + " true";
}

}  // namespace weft::pmi
