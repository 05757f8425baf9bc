#include "impi/tester/run/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "pmi/launch/outbox.h"

namespace weft::impi::tester {
namespace {

constexpr int kGrace = 5000;  // milliseconds, between SIGTERM and SIGKILL

using Variables = std::vector<std::pair<std::string, std::optional<std::string>>>;

std::vector<std::string> EnvironmentWith(const Variables& changed) {
  std::vector<std::string> entries;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string entry = *at, name = entry.substr(0, entry.find('='));
    if (std::none_of(changed.begin(), changed.end(), [&](const auto& one) { return one.first == name; }))
      entries.push_back(entry);
  }
  for (const auto& [name, value] : changed) {
    if (value) entries.push_back(name + "=" + *value);
  }
  return entries;
}

std::vector<char*> PointersTo(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Child::Child(pid_t pid, Descriptor pidfd, Descriptor output, Descriptor error)
    : pid_(pid), pidfd_(std::move(pidfd)), output_{std::move(output), std::move(error)} {}

Result<std::unique_ptr<Child>, std::string> Child::Start(const std::vector<std::string>& words,
                                                         const Variables& environment) {
  int output[2] = {-1, -1}, error[2] = {-1, -1};
  if (pipe2(output, O_CLOEXEC) != 0 || pipe2(error, O_CLOEXEC) != 0)
    return std::string("no pipe: ") + std::strerror(errno);
  Descriptor ends[] = {Descriptor(output[0]), Descriptor(output[1]), Descriptor(error[0]), Descriptor(error[1])};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, error[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t ignored;
  sigemptyset(&ignored);
  sigaddset(&ignored, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &ignored);
  const std::vector<std::string> entries = EnvironmentWith(environment);
  pid_t pid = -1;
  const int failed =
      posix_spawnp(&pid, words[0].c_str(), &actions, &attributes, PointersTo(words).data(), PointersTo(entries).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) return "'" + words[0] + "' cannot be started: " + std::strerror(failed);
  Descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    const std::string why = std::strerror(errno);
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return "pidfd_open: " + why + "; Linux 5.3 or later is needed";
  }
  for (const int end : {0, 2}) pmi::SetNonBlocking(ends[end].get());
  return std::unique_ptr<Child>(new Child(pid, std::move(pidfd), std::move(ends[0]), std::move(ends[2])));
}

Child::~Child() {
  if (!status_) kill(-pid_, SIGTERM);
  for (int waited = 0; !status_ && waited < kGrace; waited += 100) {
    pollfd ready[] = {{pidfd_.get(), POLLIN, 0}, {standard_output(), POLLIN, 0}, {standard_error(), POLLIN, 0}};
    poll(ready, 3, 100);
    Read();
    Reap();
  }
  if (status_) return;
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Child::Read() {
  for (int i = 0; i < 2; ++i) {
    char block[4096];
    while (output_[i]) {
      const long count = pmi::ReadSome(output_[i].get(), block, sizeof block);
      if (count == -EAGAIN) break;
      if (count <= 0) {
        output_[i].Close();
        break;
      }
      texts_[i].append(block,
                       std::min(static_cast<size_t>(count), kMostOutput - std::min(kMostOutput, texts_[i].size())));
    }
  }
}

void Child::Reap() {
  int status = 0;
  if (status_ || waitpid(pid_, &status, WNOHANG) != pid_) return;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace weft::impi::tester
