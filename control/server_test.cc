#include "control/server.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

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

}  // namespace
}  // namespace weft::control
