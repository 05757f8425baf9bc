#ifndef VERBS_TESTING_QUEUE_PAIR_PROCESS_H_
#define VERBS_TESTING_QUEUE_PAIR_PROCESS_H_

#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <source_location>

#include "verbs/testing/connected_pair.h"

namespace weft::verbs::testing {

// A child process of the test with one queue pair, first in INIT, and `bytes` of registered memory. Through `peer`, an
// end of a socket pair, it tells the other process what that needs to know. A failure ends the process with kBroken.
class QueuePairProcess {
 public:
  static constexpr int kNone = 100, kBroken = 101;  // results of Await(); exit code

  QueuePairProcess(int peer, size_t bytes, int access) : peer_(peer), bytes_(bytes) {
    Check(context_ = OpenLoopback());
    Check(pd_ = ibv_alloc_pd(context_));
    Check(cq_ = ibv_create_cq(context_, 8, nullptr, nullptr, 0));
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    Check(memory != MAP_FAILED);
    memory_ = static_cast<uint8_t*>(memory);
    Check(mr_ = ibv_reg_mr(pd_, memory_, bytes, access));
    ibv_qp_init_attr attributes = {};
    attributes.send_cq = attributes.recv_cq = cq_;
    attributes.cap = {4, 4, 1, 1, 0};
    attributes.qp_type = IBV_QPT_RC;
    attributes.sq_sig_all = 1;
    Check(qp_ = ibv_create_qp(pd_, &attributes));
    Check(ToInit(qp_) == 0);
  }

  void PostReceive() {
    ibv_sge element = ElementOf(mr_, 0, static_cast<uint32_t>(bytes_));
    ibv_recv_wr wr = {}, *bad = nullptr;
    wr.sg_list = &element;
    wr.num_sge = 1;
    Check(ibv_post_recv(qp_, &wr, &bad) == 0);
  }

  // The status of the next completion. With pauses, the library's threads do the work; otherwise this thread does.
  int Await(bool pauses = true) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    ibv_wc completion = {};
    while (ibv_poll_cq(cq_, 1, &completion) == 0) {
      if (pauses) usleep(1000);
      if (std::chrono::steady_clock::now() > until) return kNone;
    }
    return completion.status;
  }

  template <typename T>
  static void Check(const T& good, std::source_location where = std::source_location::current()) {
    if (good) return;
    fprintf(stderr, "%s:%u: does not hold (errno %d)\n", where.file_name(), where.line(), errno);
    _exit(kBroken);
  }
  // Waits for such a process and returns its exit code, or a negative signal number.
  static int CodeOf(pid_t child) {
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -status;
    return WEXITSTATUS(status);
  }

 protected:
  // Both processes send one; returns the one that the other sent.
  template <typename Introduction>
  Introduction Exchange(const Introduction& ours) {
    Introduction theirs;
    Check(write(peer_, &ours, sizeof ours) == sizeof ours && read(peer_, &theirs, sizeof theirs) == sizeof theirs);
    return theirs;
  }
  // Moves the queue pair to RTS, connected to queue pair `number`.
  void ConnectTo(uint32_t number) {
    Check(ToRtr(qp_, number) == 0);
    Check(ToRts(qp_) == 0);
  }
  void Post(ibv_wr_opcode opcode, uint32_t bytes, uint64_t address = 0, uint32_t rkey = 0) {
    ibv_sge element = ElementOf(mr_, 0, bytes);
    ibv_send_wr wr = {}, *bad = nullptr;
    wr.sg_list = &element;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.wr.rdma.remote_addr = address;
    wr.wr.rdma.rkey = rkey;
    Check(ibv_post_send(qp_, &wr, &bad) == 0);
  }

  const int peer_;
  const size_t bytes_;
  uint8_t* memory_ = nullptr;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_qp* qp_ = nullptr;
};

}  // namespace weft::verbs::testing

#endif  // VERBS_TESTING_QUEUE_PAIR_PROCESS_H_
