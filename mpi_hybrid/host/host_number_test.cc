#include "mpi_hybrid/host/host_number.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weft::mpi::host {
namespace {

// What a child finds, which this process has not asked for before: the number is looked up once. 0: the child may not leave the namespaces.
uint64_t NumberInChild(int leaves) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const uint64_t number = unshare(leaves) == 0 ? HostNumber() : 0;
    (void)!write(ends[1], &number, sizeof number);
    _exit(0);
  }
  uint64_t number = 0;
  EXPECT_EQ(read(ends[0], &number, sizeof number), static_cast<ssize_t>(sizeof number));
  waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
  return number;
}

TEST(HostNumberTest, IsOfAHostAndANetworkNamespace) {
  const uint64_t here = NumberInChild(0);
  EXPECT_NE(here, 0u);
  EXPECT_EQ(NumberInChild(0), here);
  const uint64_t elsewhere = NumberInChild(CLONE_NEWNET);
  if (elsewhere == 0) GTEST_SKIP() << "only root may make a network namespace";
  EXPECT_NE(elsewhere, here) << "bells do not ring from one to the other";
}

}  // namespace
}  // namespace weft::mpi::host
