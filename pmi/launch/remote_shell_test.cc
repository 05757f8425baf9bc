#include "pmi/launch/remote_shell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::pmi {
namespace {

using testing::Contains;
using testing::ElementsAre;

TEST(RemoteShellTest, SshAndItsLikeGetACommandForAShell) {
  EXPECT_THAT(RemoteShell::Ssh().CommandFor("far", "/opt/it's/mpiexec"), ElementsAre("ssh", "-x", "far", "exec '/opt/it'\\''s/mpiexec' --proxy"));
  EXPECT_THAT(RemoteShell::Program("/usr/bin/ssh").CommandFor("far", "/m"), ElementsAre("/usr/bin/ssh", "-x", "far", "exec '/m' --proxy"));
  EXPECT_THAT(RemoteShell::Program("rsh").CommandFor("far", "/m"), ElementsAre("rsh", "far", "exec '/m' --proxy"));
  EXPECT_FALSE(RemoteShell::Ssh().leaves_the_terminal()) << "it may have to ask for a password";
}

TEST(RemoteShellTest, SrunGetsWordsAndOneHost) {
  const auto words = RemoteShell::Slurm().CommandFor("node2", "/opt/a b/mpiexec");
  EXPECT_EQ(words.front(), "srun");
  EXPECT_THAT(words, Contains("--nodelist=node2"));
  EXPECT_EQ(words[words.size() - 2], "/opt/a b/mpiexec") << "no shell reads it";
  EXPECT_EQ(words.back(), "--proxy");
  EXPECT_TRUE(RemoteShell::Slurm().leaves_the_terminal());
}

TEST(RemoteShellTest, MoreArgumentsStandBeforeTheHostAndTheCommand) {
  RemoteShell ssh = RemoteShell::Ssh(), srun = RemoteShell::Slurm();
  ssh.more_arguments = srun.more_arguments = {"-p", "2222"};
  EXPECT_THAT(ssh.CommandFor("far", "/m"), ElementsAre("ssh", "-x", "-p", "2222", "far", "exec '/m' --proxy"));
  const auto words = srun.CommandFor("node2", "/m");
  EXPECT_THAT(std::vector(words.end() - 4, words.end()), ElementsAre("-p", "2222", "/m", "--proxy"));
}

}  // namespace
}  // namespace weft::pmi
