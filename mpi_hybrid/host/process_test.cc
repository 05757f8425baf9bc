#include "mpi_hybrid/host/process.h"

#include <gtest/gtest.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weft::mpi::host {
namespace {

class ProcessTest : public ::testing::TestWithParam<bool> {
 protected:
  static pid_t Start() {
    const pid_t pid = fork();
    if (pid == 0) {
      pause();
      _exit(0);
    }
    return pid;
  }
  static void End(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  // Another child with that number. -1 and errno: only root may ask for one.
  static pid_t StartAs(pid_t pid) {
    clone_args arguments{};
    arguments.exit_signal = SIGCHLD;
    arguments.set_tid = reinterpret_cast<uintptr_t>(&pid);
    arguments.set_tid_size = 1;
    const auto made = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
    if (made == 0) {
      pause();
      _exit(0);
    }
    return made;
  }
};

TEST_P(ProcessTest, RunsUntilItEnds) {
  const pid_t pid = Start();
  const auto process = Process::ForTesting(pid, GetParam());
  EXPECT_FALSE(process->HasEnded());
  End(pid);
  EXPECT_TRUE(process->HasEnded());
}

TEST_P(ProcessTest, HasEndedBeforeItsParentNotices) {
  const pid_t pid = Start();
  const auto process = Process::ForTesting(pid, GetParam());
  kill(pid, SIGKILL);
  siginfo_t ended;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(process->HasEnded());
  waitpid(pid, nullptr, 0);
}

TEST_P(ProcessTest, HasEndedThoughAnotherProcessHasItsNumber) {
  const pid_t pid = Start();
  const auto process = Process::ForTesting(pid, GetParam());
  usleep(20000);  // the start of a process is known to a clock tick of 10 ms
  End(pid);
  const pid_t other = StartAs(pid);
  if (other < 0 && errno == EPERM) GTEST_SKIP() << "only root may choose the number of a process";
  ASSERT_EQ(other, pid) << std::strerror(errno);
  EXPECT_TRUE(process->HasEnded());
  EXPECT_FALSE(Process::ForTesting(pid, GetParam())->HasEnded());
  EXPECT_FALSE(Process::Of(pid)->HasEnded());
  End(other);
}

INSTANTIATE_TEST_SUITE_P(ByDescriptorAndByStart, ProcessTest, ::testing::Bool());

TEST(SharedProcessTest, IsOneForAllWhoAskWhileItRuns) {
  const auto own = Process::Of(getpid());
  EXPECT_EQ(Process::Of(getpid()), own);
  EXPECT_FALSE(own->HasEnded());
}

}  // namespace
}  // namespace weft::mpi::host
