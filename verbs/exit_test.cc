// A process that ends right after its last completion: the message that it had is acknowledged all the same, as an adapter would have done it.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "verbs/testing/queue_pair_process.h"

namespace {

constexpr int kRounds = 8;

enum class Polls : uint8_t { kSpinning, kPausing };
enum class Ends : uint8_t { kExit, kUnderscoreExit };

class Process : public weft::verbs::testing::QueuePairProcess {
 public:
  Process(int peer, uint32_t bytes) : QueuePairProcess(peer, bytes, IBV_ACCESS_LOCAL_WRITE) {}

  void Connect() { ConnectTo(Exchange(qp_->qp_num)); }
  void PostSend() { Post(IBV_WR_SEND, static_cast<uint32_t>(bytes_)); }
  int Await(Polls how) { return QueuePairProcess::Await(how == Polls::kPausing); }
};

[[noreturn]] void End(Ends how, int code) {
  if (how == Ends::kExit) exit(code);
  _exit(code);
}

template <typename Work>
pid_t Run(const Work& work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(Process::kBroken);
  }
  return child;
}

// What the sender and the receiver find, of a message whose receiver ends at once.
void ExpectDelivery(uint32_t bytes, Polls polls, Ends ends) {
  for (int round = 0; round < kRounds; ++round) {
    int sockets[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    const pid_t receiver = Run([&] {
      Process process(sockets[0], bytes);
      process.PostReceive();
      process.Connect();
      End(ends, process.Await(polls));
    });
    const pid_t sender = Run([&] {
      Process process(sockets[1], bytes);
      process.Connect();
      process.PostSend();
      _exit(process.Await(Polls::kPausing));
    });
    close(sockets[0]);
    close(sockets[1]);
    EXPECT_EQ(Process::CodeOf(receiver), IBV_WC_SUCCESS) << "round " << round;
    ASSERT_EQ(Process::CodeOf(sender), IBV_WC_SUCCESS) << "round " << round;
  }
}

TEST(Exit, OfAProgramThatPolledWithPauses) {
  for (const uint32_t bytes : {8u, 1u << 20}) ExpectDelivery(bytes, Polls::kPausing, Ends::kExit);
}

TEST(Exit, WithoutHandlersOfAProgramThatPolledWithPauses) {
  for (const uint32_t bytes : {8u, 1u << 20}) ExpectDelivery(bytes, Polls::kPausing, Ends::kUnderscoreExit);
}

TEST(Exit, OfAProgramThatSpun) {
  for (const uint32_t bytes : {8u, 1u << 20}) ExpectDelivery(bytes, Polls::kSpinning, Ends::kExit);
}

// On one host the peer finds in the memory of the host what was carried out; between hosts it was acknowledged before the program heard of it.
TEST(Exit, WithoutHandlersOfAProgramThatSpun) {
  for (const uint32_t bytes : {8u, 1u << 20}) ExpectDelivery(bytes, Polls::kSpinning, Ends::kUnderscoreExit);
}

}  // namespace
