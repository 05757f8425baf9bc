// A process that ends right after its last completion: the message that it had is acknowledged all the same, as an adapter would have done it.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "verbs/testing/connected_pair.h"

namespace {

constexpr int kRounds = 8;

enum class Polls : uint8_t { kSpinning, kPausing };
enum class Ends : uint8_t { kExit, kUnderscoreExit };

// One process with one queue pair. Failures are exit codes: its parent is the test.
class Process {
 public:
  Process(int peer, uint32_t bytes) : peer_(peer), memory_(bytes, 0x33) {
    Check(context_ = weft::verbs::testing::OpenLoopback());
    Check(pd_ = ibv_alloc_pd(context_));
    Check(cq_ = ibv_create_cq(context_, 8, nullptr, nullptr, 0));
    Check(mr_ = ibv_reg_mr(pd_, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE));
    ibv_qp_init_attr attributes = {};
    attributes.send_cq = attributes.recv_cq = cq_;
    attributes.cap = {2, 2, 1, 1, 0};
    attributes.qp_type = IBV_QPT_RC;
    attributes.sq_sig_all = 1;
    Check(qp_ = ibv_create_qp(pd_, &attributes));
    Check(weft::verbs::testing::ToInit(qp_) == 0);
  }

  void Connect() {
    uint32_t number = 0;
    Check(write(peer_, &qp_->qp_num, sizeof number) == sizeof number && read(peer_, &number, sizeof number) == sizeof number);
    Check(weft::verbs::testing::ToRtr(qp_, number) == 0);
    Check(weft::verbs::testing::ToRts(qp_) == 0);
  }

  void PostReceive() {
    ibv_sge element = weft::verbs::testing::ElementOf(mr_, 0, static_cast<uint32_t>(memory_.size()));
    ibv_recv_wr wr = {}, *bad = nullptr;
    wr.sg_list = &element;
    wr.num_sge = 1;
    Check(ibv_post_recv(qp_, &wr, &bad) == 0);
  }

  void PostSend() {
    ibv_sge element = weft::verbs::testing::ElementOf(mr_, 0, static_cast<uint32_t>(memory_.size()));
    ibv_send_wr wr = {}, *bad = nullptr;
    wr.sg_list = &element;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    Check(ibv_post_send(qp_, &wr, &bad) == 0);
  }

  // The status of the next completion.
  int Await(Polls how) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    ibv_wc completion = {};
    while (ibv_poll_cq(cq_, 1, &completion) == 0) {
      if (how == Polls::kPausing) usleep(1000);
      if (std::chrono::steady_clock::now() > until) return kNone;
    }
    return completion.status;
  }

  static constexpr int kNone = 100, kBroken = 101;

 private:
  template <typename T>
  static void Check(const T& good) {
    if (!good) _exit(kBroken);
  }

  const int peer_;
  std::vector<uint8_t> memory_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_qp* qp_ = nullptr;
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

int CodeOf(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
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
    EXPECT_EQ(CodeOf(receiver), IBV_WC_SUCCESS) << "round " << round;
    ASSERT_EQ(CodeOf(sender), IBV_WC_SUCCESS) << "round " << round;
  }
}

bool OnOneHost() {
  const char* same_host = getenv("WEFT_SAME_HOST");
  return same_host == nullptr || std::string(same_host) != "off";
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

// A program that spins acknowledges with its next message or poll. If it ends without either, the peer finds in the memory of the host what was
// carried out; between hosts nothing can tell it.
TEST(Exit, WithoutHandlersOfAProgramThatSpun) {
  if (!OnOneHost()) GTEST_SKIP() << "the kernel closes the socket, and nothing of the process runs before that";
  for (const uint32_t bytes : {8u, 1u << 20}) ExpectDelivery(bytes, Polls::kSpinning, Ends::kUnderscoreExit);
}

}  // namespace
