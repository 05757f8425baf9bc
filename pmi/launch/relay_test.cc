#include "pmi/launch/relay.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

namespace weft::pmi {
namespace {

constexpr uid_t kNobody = 65534;

// At a name of the abstract namespace that the kernel chooses.
std::string ListenAtAnyName(int fd) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t)), 0);
  EXPECT_EQ(listen(fd, 1), 0);
  socklen_t length = sizeof(address);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
  return {address.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1};
}

struct RelayTest : ::testing::Test {
  RelayTest() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, launcher_), 0);
    setenv("PMI_FD", std::to_string(launcher_[1]).c_str(), 1);
  }
  ~RelayTest() override {
    unsetenv("PMI_FD");
    for (const int fd : {launcher_[0], launcher_[1], listener_}) close(fd);
  }

  int launcher_[2];
  const int listener_ = socket(AF_UNIX, SOCK_STREAM, 0);
};

TEST_F(RelayTest, CarriesBothWaysUntilTheProcessIsGone) {
  const std::string name = ListenAtAnyName(listener_);
  const pid_t relay = fork();
  if (relay == 0) _exit(RelayMain(name));
  const int process = accept(listener_, nullptr, nullptr);
  char bytes[8] = {};
  EXPECT_EQ(write(process, "question", 8), 8);
  EXPECT_EQ(read(launcher_[0], bytes, 8), 8);
  EXPECT_EQ(std::string(bytes, 8), "question");
  EXPECT_EQ(write(launcher_[0], "answer", 6), 6);
  EXPECT_EQ(read(process, bytes, 6), 6);
  EXPECT_EQ(std::string(bytes, 6), "answer");
  close(process);
  int status = -1;
  EXPECT_EQ(waitpid(relay, &status, 0), relay);
  EXPECT_EQ(status, 0);
}

TEST_F(RelayTest, SpeaksForNobodyWhoIsGone) {
  EXPECT_EQ(RelayMain("no such name"), 1);
  EXPECT_EQ(RelayMain(std::string(200, 'x')), 1);
  setenv("PMI_FD", "no number", 1);
  EXPECT_EQ(RelayMain("any"), 2);
}

// Who has the name may start programs as this user.
TEST_F(RelayTest, SpeaksForNoOtherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be somebody else";
  ASSERT_EQ(seteuid(kNobody), 0);
  const std::string name = ListenAtAnyName(listener_);
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_EQ(RelayMain(name), 1);
}

}  // namespace
}  // namespace weft::pmi
