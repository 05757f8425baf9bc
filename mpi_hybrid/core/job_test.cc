#include "mpi_hybrid/core/job.h"

#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include "mpi_hybrid/core/host_address.h"
#include "mpi_hybrid/core/launcher_watch.h"
#include "mpi_hybrid/core/settings.h"

namespace weft::mpi {
namespace {

using Addresses = std::vector<std::string>;

TEST(HostAddressTest, SettingMayBeAnAddressANameOrAnInterface) {
  Addresses addresses;
  for (const char* setting : {"127.0.0.1", "localhost", "lo"}) {
    setenv("WEFT_MPI_HOST", setting, 1);
    ASSERT_TRUE(FindHostAddresses(false, &addresses).ok()) << setting;
    EXPECT_EQ(addresses, Addresses{"127.0.0.1"}) << setting;
  }
  setenv("WEFT_MPI_HOST", "::1", 1);
  ASSERT_TRUE(FindHostAddresses(false, &addresses).ok());
  EXPECT_EQ(addresses, Addresses{"::1"});
  unsetenv("WEFT_MPI_HOST");
}

TEST(HostAddressTest, SettingThatMeansNothingIsNamed) {
  Addresses addresses;
  setenv("WEFT_MPI_HOST", "no such host", 1);
  const Error error = FindHostAddresses(true, &addresses);
  unsetenv("WEFT_MPI_HOST");
  EXPECT_EQ(error.mpi_class(), MPI_ERR_OTHER);
  EXPECT_NE(error.message().find("WEFT_MPI_HOST=no such host"), std::string::npos);
}

TEST(HostAddressTest, RanksOnOneHostUseTheLoopback) {
  Addresses addresses;
  ASSERT_TRUE(FindHostAddresses(true, &addresses).ok());
  EXPECT_EQ(addresses, Addresses{"127.0.0.1"});
}

TEST(SettingsTest, UnknownNameIsReportedAndKnownOnesAreNot) {
  setenv("WEFT_MPI_HOST", "lo", 1);
  EXPECT_EQ(UnknownSetting(), "");
  setenv("WEFT_MPI_HSOT", "lo", 1);
  EXPECT_EQ(UnknownSetting().rfind("WEFT_MPI_HSOT is not a setting", 0), 0u);
  unsetenv("WEFT_MPI_HSOT");
  unsetenv("WEFT_MPI_HOST");
}

// In a child, since it ends the process: whether the child saw its launcher go.
int StatusOfChild(void (*body)(int launcher_end, int fd)) {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    body(ends[0], ends[1]);
    _exit(0);
  }
  close(ends[0]);
  close(ends[1]);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST(LauncherWatchTest, ProcessEndsWhenTheLaunchersEndCloses) {
  const int status = StatusOfChild([](int launcher_end, int fd) {
    WatchLauncher(fd, 3);
    close(launcher_end);
    for (;;) pause();
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST(LauncherWatchTest, DataOfTheLauncherIsLeftAloneAndStoppingIsOrderly) {
  const int status = StatusOfChild([](int launcher_end, int fd) {
    WatchLauncher(fd, 3);
    if (write(launcher_end, "cmd=", 4) != 4) _exit(2);
    char text[8];
    if (read(fd, text, sizeof text) != 4) _exit(3);
    StopWatchingLauncher();
    close(launcher_end);
    usleep(20'000);
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(LauncherWatchTest, WhatTheLauncherSaysIsHeardAndItsEndStillIsTheEnd) {
  const int status = StatusOfChild([](int launcher_end, int fd) {
    static std::atomic<int> heard = 0;
    WatchLauncher(fd, 3, [fd] {
      char text[8];
      heard += static_cast<int>(read(fd, text, sizeof text));
      return true;
    });
    for (int i = 1; i <= 3; ++i) {
      if (write(launcher_end, "x", 1) != 1) _exit(2);
      while (heard != i) usleep(100);
    }
    close(launcher_end);
    for (;;) pause();
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST(LauncherWatchTest, WhoHearsNothingMoreIsNotAskedAgain) {
  const int status = StatusOfChild([](int launcher_end, int fd) {
    static std::atomic<int> calls = 0;
    WatchLauncher(fd, 3, [] { return ++calls < 2; });
    if (write(launcher_end, "x", 1) != 1) _exit(2);
    while (calls != 2) usleep(100);
    usleep(20'000);
    if (calls != 2) _exit(3);
    StopWatchingLauncher();
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(ToldDeathsTest, AreThereForWhoeverComesLater) {
  static int woken = 0;
  ToldDeaths told;
  const JobId other = Bond::Of(JobSecret::Random()).id;
  told.Add(std::nullopt, 3);
  EXPECT_TRUE(told.any());
  told.Listen([] { ++woken; });
  EXPECT_EQ(woken, 1);
  told.Add(other, 5);
  EXPECT_EQ(woken, 2);
  EXPECT_EQ(told.Take(), (std::vector<ToldDeaths::Death>{{std::nullopt, 3}, {other, 5}}));
  EXPECT_FALSE(told.any());
  told.Listen(nullptr);
  told.Add(std::nullopt, 1);
  EXPECT_EQ(woken, 2);
}

}  // namespace
}  // namespace weft::mpi
