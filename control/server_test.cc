#include "control/server.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>

#include "control/address.h"
#include "control/client.h"
#include "transport/tcp_network.h"

namespace weft::control {
namespace {

Answer Echo(const std::string& command, const std::string& body) {
  if (command == "end") return {true, "the end", [] { _exit(7); }};
  if (command == "fail") return {false, "because of " + body};
  return {true, command + "/" + body};
}

// One server for the process, as there is one RNIC.
class ServerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    network = new transport::TcpNetwork;
    server = Server::Start(*network, Echo).release();
    ASSERT_NE(server, nullptr);
  }
  static transport::TcpNetwork* network;
  static Server* server;
};
transport::TcpNetwork* ServerTest::network = nullptr;
Server* ServerTest::server = nullptr;

TEST_F(ServerTest, AnswersAndRefuses) {
  const auto answer = Ask(getpid(), "one", "two\nthree");
  ASSERT_TRUE(answer.ok()) << answer.error();
  EXPECT_EQ(answer->text, "one/two\nthree");
  const auto refused = Ask(getpid(), "fail", "this");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error(), "because of this");
}

TEST_F(ServerTest, LongRequestsAndAnswersPass) {
  const std::string body(700'000, 'x');
  const auto answer = Ask(getpid(), "c", body);
  ASSERT_TRUE(answer.ok()) << answer.error();
  EXPECT_EQ(answer->text, "c/" + body);
  EXPECT_FALSE(Ask(getpid(), "c", std::string(2 << 20, 'x')).ok());
  EXPECT_TRUE(Ask(getpid(), "still there").ok());
}

TEST_F(ServerTest, FindingNobodyIsNoReasonToRest) {
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Ask(getpid(), "again").ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5)) << "a rest of 100 ms after each";
}

TEST_F(ServerTest, IsListed) {
  const auto all = Processes();
  EXPECT_NE(std::find(all.begin(), all.end(), getpid()), all.end());
}

TEST_F(ServerTest, ProcessesThatDoNotListenAreNamed) {
  const auto answer = Ask(1 << 30, "one");
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().find("does not exist"), std::string::npos);
  const auto other = Ask(getppid(), "one");
  ASSERT_FALSE(other.ok());
}

TEST_F(ServerTest, ASecondServerOfAProcessIsNone) { EXPECT_EQ(Server::Start(*network, Echo), nullptr); }

TEST_F(ServerTest, ChildOfAForkDoesNotKeepTheName) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    // The parent answers, whoever asks; the child has no name yet, and can take one of its own.
    const bool parent = Ask(getppid(), "one").ok();
    const bool none = !Ask(getpid(), "one").ok();
    transport::TcpNetwork fresh;
    auto own = Server::Start(fresh, Echo);
    _exit(parent && none && own != nullptr && Ask(getpid(), "one").ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(ServerTest, AnswersBeforeItDoesWhatEndsIt) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    transport::TcpNetwork fresh;
    auto own = Server::Start(fresh, Echo);
    if (write(ready[1], "x", 1) != 1) _exit(1);
    pause();
  }
  close(ready[1]);
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const auto answer = Ask(child, "end");
  ASSERT_TRUE(answer.ok()) << answer.error();
  EXPECT_EQ(answer->text, "the end");
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST_F(ServerTest, ASilentClientHoldsNobodyUp) {
  const int silent = socket(AF_UNIX, SOCK_STREAM, 0);
  socklen_t length = 0;
  const sockaddr_un address = AddressOf(getpid(), &length);
  ASSERT_EQ(connect(silent, reinterpret_cast<const sockaddr*>(&address), length), 0);
  EXPECT_TRUE(Ask(getpid(), "one").ok());
  close(silent);
}

// Anybody can have the name that a process would take.
TEST_F(ServerTest, AProcessWhoseNameIsTakenIsFoundAllTheSame) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const int taken = socket(AF_UNIX, SOCK_STREAM, 0);  // not listening: as nobody of ours
    socklen_t length = 0;
    const sockaddr_un address = AddressOf(getpid(), &length);
    if (bind(taken, reinterpret_cast<const sockaddr*>(&address), length) != 0) _exit(1);
    transport::TcpNetwork fresh;
    auto own = Server::Start(fresh, Echo);
    if (own == nullptr || write(ready[1], "x", 1) != 1) _exit(2);
    pause();
  }
  close(ready[1]);
  char byte;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  const auto answer = Ask(child, "one", "two");
  EXPECT_TRUE(answer.ok() && answer->text == "one/two") << (answer.ok() ? answer->text : answer.error());
  EXPECT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

// Whoever waits to be accepted keeps the listener readable.
TEST_F(ServerTest, WithoutADescriptorLeftItWaitsAndDoesNotSpin) {
  int ready[2], more[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(more), 0);
  const pid_t child = fork();
  if (child == 0) {
    transport::TcpNetwork fresh;
    auto own = Server::Start(fresh, Echo);
    const int last = dup(0);
    close(last);
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = static_cast<rlim_t>(last);
    setrlimit(RLIMIT_NOFILE, &limit);
    char byte = 'x';
    if (write(ready[1], &byte, 1) != 1 || read(more[0], &byte, 1) != 1) _exit(1);
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    const int64_t ms = used.tv_sec * 1000 + used.tv_nsec / 1'000'000;
    if (write(ready[1], &ms, sizeof ms) != sizeof ms) _exit(1);
    pause();
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  auto answer = std::async(std::launch::async, [child] { return Ask(child, "one"); });
  timespec before{}, now{};
  clock_gettime(CLOCK_MONOTONIC, &before);
  do {
    usleep(10'000);
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (now.tv_sec - before.tv_sec < 2);
  ASSERT_EQ(write(more[1], "x", 1), 1);
  int64_t ms = 0;
  ASSERT_EQ(read(ready[0], &ms, sizeof ms), static_cast<ssize_t>(sizeof ms));
  EXPECT_LT(ms, 300) << "of processor time in two seconds";
  const auto got = answer.get();
  EXPECT_TRUE(got.ok()) << got.error();
  EXPECT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace weft::control
