#include "mpi_hybrid/host/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "base/file_limit.h"
#include "base/high_descriptor.h"
#include "mpi_hybrid/host/weak_table.h"

namespace weft::mpi::host {
namespace {

enum class Found : uint8_t { kRuns, kEnded, kUnknown };

// proc(5), /proc/PID/stat: "PID (NAME) STATE ..." with the start as the 22nd word. The name may hold anything.
Found StartOf(pid_t pid, uint64_t* start) {
  char text[1024];
  const int fd = open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? Found::kEnded : Found::kUnknown;
  const ssize_t length = read(fd, text, sizeof text - 1);
  const int error = errno;
  close(fd);
  if (length <= 0) return length < 0 && error == ESRCH ? Found::kEnded : Found::kUnknown;
  text[length] = 0;
  const char* at = std::strrchr(text, ')');
  if (at == nullptr) return Found::kUnknown;
  char state = 0;
  unsigned long long ticks = 0;
  if (std::sscanf(at + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &state, &ticks) != 2) return Found::kUnknown;
  *start = ticks;
  return state == 'Z' || state == 'X' ? Found::kEnded : Found::kRuns;
}

}  // namespace

Process::Process(pid_t pid, bool names_by_descriptor) : pid_(pid) {
  if (names_by_descriptor) {
    Descriptor opened(LeaveRoomForSelect(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))));
    if (!opened && errno == ESRCH) {
      ended_ = true;
      return;
    }
    if (opened && IsToSpare(opened.get())) pidfd_ = std::move(opened);
  }
  if (!pidfd_ && StartOf(pid, &started_) == Found::kEnded) ended_ = true;
}

std::shared_ptr<Process> Process::ForTesting(pid_t pid, bool names_by_descriptor) {
  return std::shared_ptr<Process>(new Process(pid, names_by_descriptor));
}

std::shared_ptr<Process> Process::Of(pid_t pid) {
  static auto* const known = new WeakTable<pid_t, Process>;
  if (std::shared_ptr<Process> process = known->Find(pid); process != nullptr && !process->HasEnded()) return process;
  std::shared_ptr<Process> process(new Process(pid, /*names_by_descriptor=*/true));
  known->Put(pid, process);
  return process;
}

bool Process::HasEnded() {
  if (!ended_.load(std::memory_order_relaxed) && LooksEnded()) ended_ = true;
  return ended_.load(std::memory_order_relaxed);
}

bool Process::LooksEnded() const {
  if (pidfd_) {
    pollfd ended{pidfd_.get(), POLLIN, 0};
    return poll(&ended, 1, 0) > 0;
  }
  if (kill(pid_, 0) != 0 && errno == ESRCH) return true;
  uint64_t start = 0;
  const Found found = StartOf(pid_, &start);
  return found == Found::kEnded || (found == Found::kRuns && started_ != 0 && start != started_);
}

}  // namespace weft::mpi::host
