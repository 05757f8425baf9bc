#include "impi/run/agent_greeting.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "base/descriptor.h"
#include "pmi/launch/outbox.h"

namespace weft::impi {
namespace {

using State = AgentGreeting::State;

class ImpiAgentGreeting : public ::testing::Test {
 protected:
  ImpiAgentGreeting() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    client_ = Descriptor(ends[0]);
    agent_ = Descriptor(ends[1]);
    pmi::SetNonBlocking(client_.get());
  }
  // Until it is over.
  static State Finish(AgentGreeting& greeting) {
    State state = State::kWaits;
    while (state == State::kWaits) state = greeting.Read();
    return state;
  }
  void Send(const std::string& text) { ASSERT_EQ(send(agent_.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size())); }

  const JobSecret secret_ = SecretOfAgents(JobSecret::Random());
  Descriptor client_, agent_;
};

TEST_F(ImpiAgentGreeting, BothEndsKnowTheSecret) {
  AgentGreeting greeting(client_.get(), secret_, 3);
  bool known = false, closed = false;
  std::thread agent([&] { known = GreetClient(agent_.get(), secret_, 2, &closed); });
  EXPECT_EQ(Finish(greeting), State::kIsAgent);
  agent.join();
  EXPECT_TRUE(known);
  EXPECT_EQ(greeting.number(), 2u);
}

TEST_F(ImpiAgentGreeting, AnAgentWithAnotherSecretIsRefused) {
  AgentGreeting greeting(client_.get(), secret_, 3);
  bool known = true, closed = false;
  std::thread agent([&] { known = GreetClient(agent_.get(), SecretOfAgents(JobSecret::Random()), 2, &closed); });
  EXPECT_EQ(Finish(greeting), State::kRefused);
  client_.Close();
  agent.join();
  EXPECT_FALSE(known);
  EXPECT_TRUE(closed) << "there may have been no room";
}

TEST_F(ImpiAgentGreeting, AHostThatIsNotThereIsRefused) {
  AgentGreeting greeting(client_.get(), secret_, 3);
  bool known = true, closed = false;
  std::thread agent([&] { known = GreetClient(agent_.get(), secret_, 3, &closed); });
  EXPECT_EQ(Finish(greeting), State::kRefused);
  client_.Close();
  agent.join();
  EXPECT_FALSE(known);
}

TEST_F(ImpiAgentGreeting, AnAgentDoesNotTrustAClientWithoutTheSecret) {
  bool known = true, closed = true;
  std::thread agent([&] { known = GreetClient(agent_.get(), secret_, 0, &closed); });
  const std::string challenge = "weft-impirun " + std::string(32, '0') + "\n", proof = "weft-impirun " + std::string(64, '0') + "\n";
  (void)!write(client_.get(), challenge.data(), challenge.size());
  (void)!write(client_.get(), proof.data(), proof.size());
  agent.join();
  EXPECT_FALSE(known);
  EXPECT_FALSE(closed) << "another attempt would be in vain";
}

TEST_F(ImpiAgentGreeting, StrangersAreRefused) {
  const std::string nonce(32, '0'), proof(64, '0');
  for (const std::string& text : {std::string("GET / HTTP/1.1\r\n"), std::string("\n"), std::string("weft-impi-agent 0\n"), "weft-impi-agent 0 " + nonce + " " + proof + "\n",
                                  "weft-impi-agent -1 " + nonce + " " + proof + "\n", "weft-proxy 0 " + nonce + " " + proof + "\n", std::string(5000, 'x')}) {
    AgentGreeting greeting(client_.get(), secret_, 3);
    EXPECT_EQ(greeting.Read(), State::kWaits);
    Send(text);
    EXPECT_EQ(greeting.Read(), State::kRefused) << text.substr(0, 60);
    char rest[8192];
    while (recv(client_.get(), rest, sizeof rest, 0) > 0) {
    }
  }
  AgentGreeting greeting(client_.get(), secret_, 3);
  Send("weft-impi-agent 0");
  EXPECT_EQ(greeting.Read(), State::kWaits);
  agent_.Close();
  EXPECT_EQ(greeting.Read(), State::kRefused);
}

}  // namespace
}  // namespace weft::impi
