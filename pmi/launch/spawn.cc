#include "pmi/launch/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/file_limit.h"
#include "pmi/launch/connection.h"

extern char** environ;

namespace weft::pmi {
namespace {

// What the child could not do, through a pipe that exec closes.
struct Failure {
  enum Step : int { kDirectory, kProgram } step;
  int error;
};

// Both ends of everything, closed when it goes out of scope unless taken.
struct Files {
  int pmi[2] = {-1, -1};
  int output[2] = {-1, -1};
  int error_output[2] = {-1, -1};
  int input[2] = {-1, -1};
  int failure[2] = {-1, -1};

  ~Files() {
    for (int* pair : {pmi, output, error_output, input, failure}) {
      for (int i : {0, 1}) {
        if (pair[i] >= 0) close(pair[i]);
      }
    }
  }
  bool Open(bool wants_input) {
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pmi) == 0 && pipe2(output, O_CLOEXEC) == 0 &&
           pipe2(error_output, O_CLOEXEC) == 0 && (!wants_input || pipe2(input, O_CLOEXEC) == 0) &&
           pipe2(failure, O_CLOEXEC) == 0;
  }
};

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void Give(int pipe, Failure::Step step) {
  const Failure failure{step, errno};
  if (write(pipe, &failure, sizeof(failure)) < 0) _exit(125);
  _exit(126);
}

// As execvp(3) goes through PATH: what is there but may not be executed is the error, if nothing else is found.
void Search(const std::string& path, char** arguments) {
  int error = ENOENT;
  for (size_t at = 0; at <= path.size();) {
    const size_t colon = std::min(path.find(':', at), path.size());
    const std::string directory = path.substr(at, colon - at);
    execv(((directory.empty() ? "." : directory) + "/" + arguments[0]).c_str(), arguments);
    if (errno != ENOENT && errno != ENOTDIR) error = errno;
    at = colon + 1;
  }
  errno = error;
}

[[noreturn]] void Child(const SpawnRequest& request, const Files& files, char** arguments, char** environment, pid_t parent,
                        const rlimit& file_limit) {
  // One for each rank: where several of one session hand processors on to each other, Linux 6.18 with autogroup let no other run for up to half a
  // minute.
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(125);  // it died before the line above
  // Weft's library raises the limit itself where it opens sockets; other programs may count on the old one (select(2)).
  setrlimit(RLIMIT_NOFILE, &file_limit);
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);

  const int input = request.wants_input ? files.input[0] : open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(input, STDIN_FILENO);
  dup2(files.output[1], STDOUT_FILENO);
  dup2(files.error_output[1], STDERR_FILENO);
  fcntl(files.pmi[1], F_SETFD, 0);
  if (chdir(request.directory.c_str()) != 0) Give(files.failure[1], Failure::kDirectory);
  environ = environment;
  if (request.search_path.empty() || std::strchr(arguments[0], '/') != nullptr) {
    execvp(arguments[0], arguments);
  } else {
    Search(request.search_path, arguments);
  }
  Give(files.failure[1], Failure::kProgram);
}

LaunchError Describe(const Failure& failure, const SpawnRequest& request) {
  if (failure.step == Failure::kDirectory) {
    return {1, "cannot change to the directory " + request.directory + ": " + std::strerror(failure.error)};
  }
  const std::string& program = request.arguments[0];
  std::error_code ignored;
  if (failure.error != ENOENT) return {126, "cannot execute " + program + ": " + std::strerror(failure.error)};
  if (program.find('/') == std::string::npos) {
    const bool here = std::filesystem::is_regular_file(std::filesystem::path(request.directory) / program, ignored);
    const std::string where = request.search_path.empty() ? "PATH" : "the path " + request.search_path;
    return {127, "cannot find " + program + " in " + where + (here ? ", but it is in the working directory: ./" + program : "")};
  }
  if (std::filesystem::exists(std::filesystem::path(request.directory) / program, ignored)) {
    return {127, "cannot execute " + program + ": its interpreter does not exist"};
  }
  return {127, "cannot find " + program + " (working directory " + request.directory + ")"};
}

}  // namespace

Result<Spawned, LaunchError> Spawn(const SpawnRequest& request) {
  Files files;
  if (!files.Open(request.wants_input)) {
    return LaunchError{1, "cannot connect a rank to its launcher, which needs 3 descriptors per rank: " + DescribeShortage(errno)};
  }
  std::vector<std::string> environment = request.environment;
  environment.push_back("PMI_FD=" + std::to_string(files.pmi[1]));
  const std::vector<char*> argument_pointers = Pointers(request.arguments);
  const std::vector<char*> environment_pointers = Pointers(environment);
  const pid_t parent = getpid();
  const rlimit file_limit = RaiseFileLimit();
  const pid_t pid = fork();
  if (pid < 0) return LaunchError{1, "cannot start another process: " + std::string(std::strerror(errno))};
  if (pid == 0) {
    Child(request, files, const_cast<char**>(argument_pointers.data()), const_cast<char**>(environment_pointers.data()), parent,
          file_limit);
  }
  close(std::exchange(files.failure[1], -1));
  Failure failure{};
  if (ReadSome(files.failure[0], reinterpret_cast<char*>(&failure), sizeof(failure)) == sizeof(failure)) {
    waitpid(pid, nullptr, 0);
    return Describe(failure, request);
  }
  Spawned spawned{pid, std::exchange(files.pmi[0], -1), std::exchange(files.output[0], -1),
                  std::exchange(files.error_output[0], -1), std::exchange(files.input[1], -1)};
  for (const int fd : {spawned.pmi, spawned.output, spawned.error_output, spawned.input}) {
    if (fd >= 0) SetNonBlocking(fd);
  }
  return spawned;
}

std::vector<pid_t> DescendantsOf(pid_t ancestor) {
  std::multimap<pid_t, pid_t> children;  // by parent
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr != name.data() + name.size()) continue;
    std::ifstream file(entry.path() / "stat");
    std::string line;
    std::getline(file, line);
    // pid (name, which may hold anything) state parent ...
    char state = 0;
    pid_t parent = 0;
    const size_t name_end = line.rfind(')');
    if (name_end == std::string::npos || std::sscanf(line.c_str() + name_end + 1, " %c %d", &state, &parent) != 2) continue;
    if (state != 'Z') children.emplace(parent, pid);
  }
  std::vector<pid_t> found;
  std::vector<pid_t> open{ancestor};
  while (!open.empty()) {
    const auto [begin, end] = children.equal_range(open.back());
    open.pop_back();
    for (auto child = begin; child != end; ++child) {
      found.push_back(child->second);
      open.push_back(child->second);
    }
  }
  return found;
}

void KillDescendants(std::chrono::milliseconds most) {
  const auto until = std::chrono::steady_clock::now() + most;
  for (std::vector<pid_t> left; !(left = DescendantsOf(getpid())).empty() && std::chrono::steady_clock::now() < until;) {
    for (const pid_t pid : left) kill(pid, SIGKILL);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    poll(nullptr, 0, 1);
  }
}

std::vector<pid_t> OfSessions(std::vector<pid_t> processes, const std::vector<pid_t>& leaders) {
  std::erase_if(processes, [&](pid_t pid) { return std::find(leaders.begin(), leaders.end(), getsid(pid)) == leaders.end(); });
  return processes;
}

}  // namespace weft::pmi
