// A process and an agent that lies to it.
#include "impi/run/enter.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/passed_descriptor.h"
#include "impi/entry/hello.h"
#include "impi/entry/welcome.h"
#include "impi/job/testing/jobs.h"
#include "impi/run/carry.h"

namespace weft::impi {
namespace {

// Client 0 of three, with one process on each host; the hosts of the others are 1 and 2.
Bytes WelcomeOfThree() { return Welcome::Serialize(ClientRank(0), 3, testing::Tell(testing::Announcements({{1}, {1}, {1}})), {0}, 0); }

// What a process finds whose agent says this. "": it is in the job.
std::string Entering(const std::function<void(int process)>& agent_says) {
  auto listener = AgentListener::Open();
  EXPECT_TRUE(listener.ok());
  std::thread agent([&] {
    pollfd comes{listener->fd.get(), POLLIN, 0};
    poll(&comes, 1, 10'000);
    const Descriptor process(accept(listener->fd.get(), nullptr, nullptr));
    uint8_t hello[Hello::kSize];
    EXPECT_EQ(recv(process.get(), hello, sizeof hello, MSG_WAITALL), static_cast<ssize_t>(sizeof hello));
    agent_says(process.get());
  });
  const auto entered = EnterJob(listener->address, {.rank = 0, .takes_connections = true});
  agent.join();
  return entered.ok() ? "" : entered.error();
}

void Link(int process, int host) { EXPECT_GT(SendWithDescriptor(process, LinkNotice{host}.Serialize(), process), 0); }
// To a process that may have left.
void Say(int process, const Bytes& bytes) { (void)!send(process, bytes.data(), bytes.size(), MSG_NOSIGNAL); }

TEST(EnterJobTest, TakesAllConnectionsOrNone) {
  EXPECT_EQ(Entering([](int process) { Say(process, WelcomeOfThree()); }), "");
  EXPECT_EQ(Entering([](int process) {
              for (const int host : {1, 2}) Link(process, host);
              Say(process, WelcomeOfThree());
            }),
            "");
}

TEST(EnterJobTest, RefusesConnectionsThatAreNotThoseOfTheJob) {
  const std::string others = "the agent handed over the connections of other hosts than those of the job";
  for (const std::vector<int>& hosts : {std::vector<int>{1}, {0, 1, 2}, {1, 3}}) {
    EXPECT_EQ(Entering([&](int process) {
                for (const int host : hosts) Link(process, host);
                Say(process, WelcomeOfThree());
              }),
              others);
  }
  EXPECT_EQ(Entering([](int process) {
              for (const int host : {1, 2, 7}) Link(process, host);
              Say(process, WelcomeOfThree());
            }),
            "the agent handed over 3 connections, and there are 2 hosts of other clients");
}

TEST(EnterJobTest, RefusesADescriptorThatBelongsNowhere) {
  const std::string wrong =
      "the agent's answer is wrong: a descriptor came with bytes to which none belongs, or a host twice; use impirun and the MPI library from one release";
  EXPECT_EQ(Entering([](int process) {
              for (const int host : {1, 1}) Link(process, host);
            }),
            wrong);
  EXPECT_EQ(Entering([](int process) { EXPECT_GT(SendWithDescriptor(process, WelcomeOfThree(), process), 0); }), wrong);
  EXPECT_NE(Entering([](int process) {
              Say(process, LinkNotice{1}.Serialize());  // without one
              Say(process, WelcomeOfThree());
            }),
            "");
}

TEST(EnterJobTest, SaysThatNoDescriptorIsLeftForAConnection) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const std::string found = Entering([&](int process) {
    const int lowest_free = dup(process);
    close(lowest_free);
    const rlimit full{static_cast<rlim_t>(lowest_free), before.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &full), 0);
    Link(process, 1);
    pollfd leaves{process, POLLRDHUP, 0};
    poll(&leaves, 1, 10'000);  // until then the descriptor `process` stays in use
  });
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(found.starts_with("a connection that the agent handed over did not come: ")) << found;
}

}  // namespace
}  // namespace weft::impi
