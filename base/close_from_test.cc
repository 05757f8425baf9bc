#include "base/close_from.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace weft {
namespace {

constexpr int kFirst = 20, kHighest = 900;

// From here on the call does not exist for this process, nor does open(2) of any file if `nothing_opens`.
bool Forbid(bool nothing_opens) {
  constexpr unsigned kRefused = SECCOMP_RET_ERRNO | ENOSYS;
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_close_range, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(nothing_opens ? __NR_openat : __NR_close_range), 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, kRefused),
  };
  const sock_fprog program{.len = sizeof rules / sizeof rules[0], .filter = rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
         syscall(__NR_close_range, kFirst, ~0u, 0) != 0 && errno == ENOSYS;
}

// A child opens descriptors and closes them from kFirst on: 0, or what was wrong.
int InChild(bool (*prepare)()) {
  const pid_t child = fork();
  if (child == 0) {
    const int file = open("/dev/null", O_RDONLY);
    for (const int fd : {kFirst - 1, kFirst, kFirst + 1, kHighest}) {
      if (dup2(file, fd) != fd) _exit(2);
    }
    for (int fd = kFirst + 10; fd < kFirst + 400; ++fd) dup2(file, fd);  // the names of so many take several calls
    if (!prepare()) _exit(3);
    CloseFrom(kFirst);
    if (fcntl(kFirst - 1, F_GETFD) < 0) _exit(4);
    for (int fd = kFirst; fd <= kHighest; ++fd) {
      if (fcntl(fd, F_GETFD) >= 0) _exit(5);
    }
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -status;
}

TEST(CloseFromTest, ClosesAllFromThereOnAndNothingElse) {
  EXPECT_EQ(InChild([] { return true; }), 0);
}

TEST(CloseFromTest, AlsoOnAKernelThatHasNoSuchCall) {
  EXPECT_EQ(InChild([] { return Forbid(/*nothing_opens=*/false); }), 0);
}

TEST(CloseFromTest, AlsoWhereTheKernelDoesNotListDescriptors) {
  EXPECT_EQ(InChild([] { return Forbid(/*nothing_opens=*/true); }), 0);
}

}  // namespace
}  // namespace weft
