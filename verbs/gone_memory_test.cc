// Memory that a program takes back while a peer in another process is at it: by ibv_dereg_mr, or by unmapping it. Over the memory of the host, and as
// between hosts.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "verbs/testing/queue_pair_process.h"

namespace {

constexpr uint32_t kBytes = 65536;
// Longer than any end of patience that the library could have with a peer that does not come to an end.
constexpr std::chrono::milliseconds kStopped{600};

std::atomic<bool> g_stops{false};
std::atomic<int> g_copies{0};  // by the kernel, within this process

void StopOnce() {
  if (g_stops.exchange(false)) raise(SIGSTOP);
}

}  // namespace

// Between "I am writing" and the system call: what a scheduler, a debugger or a frozen cgroup may do there.
extern "C" __attribute__((visibility("default"))) ssize_t process_vm_writev(pid_t pid, const iovec* local, unsigned long local_count, const iovec* remote,
                                                                            unsigned long remote_count, unsigned long flags) {
  g_copies += pid == getpid();
  if (remote_count == 1 && remote->iov_len == kBytes) StopOnce();
  return syscall(SYS_process_vm_writev, pid, local, local_count, remote, remote_count, flags);
}

extern "C" __attribute__((visibility("default"))) ssize_t process_vm_readv(pid_t pid, const iovec* local, unsigned long local_count, const iovec* remote,
                                                                           unsigned long remote_count, unsigned long flags) {
  g_copies += pid == getpid();
  return syscall(SYS_process_vm_readv, pid, local, local_count, remote, remote_count, flags);
}

namespace {

struct Introduction {
  uint32_t number, rkey;
  uint64_t address;
};

class Process : public weft::verbs::testing::QueuePairProcess {
 public:
  static constexpr int kTouched = 102;  // exit code

  explicit Process(int peer) : QueuePairProcess(peer, kBytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ) {}

  void Connect() {
    theirs_ = Exchange(Introduction{qp_->qp_num, mr_->rkey, reinterpret_cast<uintptr_t>(memory_)});
    ibv_qp_attr a = {};
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    Check(ibv_modify_qp(qp_, &a, IBV_QP_ACCESS_FLAGS) == 0);
    ConnectTo(theirs_.number);
  }

  void Post(ibv_wr_opcode opcode, uint32_t bytes) { QueuePairProcess::Post(opcode, bytes, theirs_.address, theirs_.rkey); }

  void PostWriteTo(uint64_t offset, uint32_t bytes) { QueuePairProcess::Post(IBV_WR_RDMA_WRITE, bytes, theirs_.address + offset, theirs_.rkey); }

  void PostReadOf(uint64_t offset, uint32_t bytes) { QueuePairProcess::Post(IBV_WR_RDMA_READ, bytes, theirs_.address + offset, theirs_.rkey); }

  // Not munmap(2): a later mapping of the process could fill the hole. Shared, because /proc/PID/mem reaches private memory whatever its protection.
  void Unmap(size_t offset = 0) {
    uint8_t* const from = memory_ + offset;
    Check(mmap(from, kBytes - offset, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == from);
  }
  void Deregister() { Check(ibv_dereg_mr(mr_) == 0); }
  void Fill(uint8_t byte) { std::memset(memory_, byte, kBytes); }
  bool Holds(uint8_t byte) const {
    return std::all_of(memory_, memory_ + kBytes, [byte](uint8_t one) { return one == byte; });
  }

  bool BeginsWith(size_t bytes, uint8_t byte) const {
    return std::all_of(memory_, memory_ + bytes, [byte](uint8_t one) { return one == byte; });
  }

  // A byte to, and from, the other process.
  void Tell() { Check(write(peer_, "x", 1) == 1); }
  void Hear() {
    char byte;
    Check(read(peer_, &byte, 1) == 1);
  }

 private:
  Introduction theirs_{};
};

// Two processes, each with an end of a socket pair.
class GoneMemory : public testing::Test {
 protected:
  template <typename Work>
  pid_t Run(int side, const Work& work) {
    if (sockets_[0] < 0) {
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_), 0);
    }
    const pid_t child = fork();
    if (child == 0) {
      alarm(25);  // the other one has ended and said nothing
      Process process(sockets_[side]);
      _exit(work(process));
    }
    return child;
  }
  void TearDown() override {
    for (const int socket : sockets_) close(socket);
  }
  static int CodeOf(pid_t child) { return Process::CodeOf(child); }
  void Again() {
    TearDown();
    sockets_[0] = sockets_[1] = -1;
  }

  int sockets_[2] = {-1, -1};
};

TEST_F(GoneMemory, NothingIsWrittenAfterDeregistrationHoweverLongThePeerWasStopped) {
  const pid_t target = Run(0, [](Process& process) {
    process.Connect();
    process.Hear();  // that the peer is stopped
    process.Deregister();
    process.Fill(0x77);
    process.Tell();
    process.Hear();  // that it has ended
    return process.Holds(0x77) ? 0 : Process::kTouched;
  });
  const pid_t writer = Run(1, [](Process& process) {
    process.Connect();
    // The target opens the memory with the first one that it takes.
    for (int i = 0; i < 4; ++i) {
      process.Post(IBV_WR_RDMA_WRITE, kBytes);
      Process::Check(process.Await() == IBV_WC_SUCCESS);
    }
    process.Fill(0xee);
    g_stops = true;
    process.Post(IBV_WR_RDMA_WRITE, kBytes);
    StopOnce();  // on wires that do not place by themselves: what was posted is on its way
    static_cast<void>(process.Await());  // it may have been in time
    return 0;
  });
  int status = 0;
  ASSERT_EQ(waitpid(writer, &status, WUNTRACED), writer);
  ASSERT_TRUE(WIFSTOPPED(status));
  ASSERT_EQ(write(sockets_[1], "x", 1), 1);
  std::this_thread::sleep_for(kStopped);  // the target gives its memory up, or waits
  ASSERT_EQ(kill(writer, SIGCONT), 0);
  EXPECT_EQ(CodeOf(writer), 0);
  char byte;
  ASSERT_EQ(read(sockets_[1], &byte, 1), 1) << "it was deregistered";
  ASSERT_EQ(write(sockets_[1], "x", 1), 1);
  EXPECT_EQ(CodeOf(target), 0);
}

TEST_F(GoneMemory, ATargetThatHasUnmappedItLivesOn) {
  for (const uint32_t bytes : {64u, kBytes}) {
    for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
      const pid_t target = Run(0, [](Process& process) {
        process.Connect();
        process.Unmap();
        process.Tell();
        process.Hear();
        return 0;
      });
      const pid_t initiator = Run(1, [&](Process& process) {
        process.Connect();
        process.Hear();
        process.Post(opcode, bytes);
        const int status = process.Await();
        process.Tell();
        return status;
      });
      const int status = CodeOf(initiator);
      EXPECT_TRUE(status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_OP_ERR) << status << ", " << bytes << " bytes, opcode " << opcode;
      EXPECT_EQ(CodeOf(target), 0) << bytes << " bytes, opcode " << opcode;
      Again();
    }
  }
}

// They are answered together where a thread of Weft's answers.
TEST_F(GoneMemory, ShortReadsInFrontOfOneOfUnmappedMemoryAreAnswered) {
  const pid_t target = Run(0, [](Process& process) {
    process.Fill(0x5a);
    process.Connect();
    process.Unmap(kBytes / 2);
    process.Tell();
    process.Hear();
    return 0;
  });
  const pid_t initiator = Run(1, [](Process& process) {
    process.Connect();
    process.Hear();
    process.PostReadOf(0, 64);
    process.PostReadOf(kBytes / 2 - 64, 32);
    process.PostReadOf(kBytes / 2, 64);
    process.PostReadOf(64, 64);
    Process::Check(process.Await() == IBV_WC_SUCCESS && process.Await() == IBV_WC_SUCCESS);
    const int status = process.Await();
    Process::Check(process.Await() == IBV_WC_WR_FLUSH_ERR);
    Process::Check(process.BeginsWith(64, 0x5a));
    process.Tell();
    return status;
  });
  EXPECT_EQ(CodeOf(initiator), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(CodeOf(target), 0);
}

bool OnOneHost() {
  const char* same_host = getenv("WEFT_SAME_HOST");
  return same_host == nullptr || std::string(same_host) != "off";
}

// They are placed together where a thread of Weft's receives.
TEST_F(GoneMemory, ShortWritesInFrontOfOneToUnmappedMemoryAreCarriedOut) {
  const pid_t target = Run(0, [](Process& process) {
    process.Connect();
    process.Unmap(kBytes / 2);
    process.Tell();
    process.Hear();
    return process.BeginsWith(64, 0x5a) ? 0 : Process::kTouched;
  });
  const pid_t initiator = Run(1, [](Process& process) {
    process.Fill(0x5a);
    process.Connect();
    process.Hear();
    process.PostWriteTo(0, 64);
    process.PostWriteTo(kBytes / 2 - 64, 32);
    process.PostWriteTo(kBytes / 2, 64);
    process.PostWriteTo(64, 64);
    Process::Check(process.Await() == IBV_WC_SUCCESS && process.Await() == IBV_WC_SUCCESS);
    const int status = process.Await();
    Process::Check(process.Await() == IBV_WC_WR_FLUSH_ERR);
    process.Tell();
    return status;
  });
  EXPECT_EQ(CodeOf(initiator), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(CodeOf(target), 0);
}

// SCTP hands on each message by itself; through the host's memory each is carried out at once.
TEST_F(GoneMemory, ShortWritesThatComeTogetherCostTheirTargetOneCopy) {
  constexpr int kWrites = 4;
  const pid_t target = Run(0, [](Process& process) {
    process.Connect();
    g_copies = 0;
    raise(SIGSTOP);
    process.Hear();
    const int copies = g_copies;
    process.Tell();
    return std::min<int>(copies, Process::kNone);
  });
  const pid_t initiator = Run(1, [](Process& process) {
    process.Connect();
    process.Hear();
    for (int i = 0; i < kWrites; ++i) process.PostWriteTo(0, 8);
    process.Tell();
    for (int i = 0; i < kWrites; ++i) Process::Check(process.Await() == IBV_WC_SUCCESS);
    process.Tell();
    process.Hear();
    return 0;
  });
  int status = 0;
  ASSERT_EQ(waitpid(target, &status, WUNTRACED), target);
  ASSERT_TRUE(WIFSTOPPED(status));
  char byte = 'x';
  ASSERT_EQ(write(sockets_[0], &byte, 1), 1);
  ASSERT_EQ(read(sockets_[0], &byte, 1), 1) << "they are posted";
  ASSERT_EQ(kill(target, SIGCONT), 0);
  EXPECT_EQ(CodeOf(initiator), 0);
  const int copies = CodeOf(target);
  EXPECT_GE(copies, 0);
  const char* const wire = getenv("WEFT_LLP");
  EXPECT_LE(copies, OnOneHost() || (wire != nullptr && std::string(wire) == "sctp") ? kWrites : 1);
}

// Where a thread of Weft's answers, each copy is a system call that finds out whether the memory is there. Their requests are no memory of the program's.
TEST_F(GoneMemory, AShortReadCostsItsTargetNoMoreThanOneCopy) {
  constexpr int kReads = 4;
  const pid_t target = Run(0, [](Process& process) {
    process.Connect();
    g_copies = 0;
    process.Tell();
    process.Hear();
    const int copies = g_copies;
    process.Tell();  // the end of the connection may cost one more
    return std::min<int>(copies, Process::kNone);
  });
  const pid_t initiator = Run(1, [](Process& process) {
    process.Connect();
    process.Hear();
    for (int i = 0; i < kReads; ++i) process.PostReadOf(0, 8);
    for (int i = 0; i < kReads; ++i) Process::Check(process.Await() == IBV_WC_SUCCESS);
    process.Tell();
    process.Hear();
    return 0;
  });
  EXPECT_EQ(CodeOf(initiator), 0);
  const int copies = CodeOf(target);
  EXPECT_GE(copies, 0);
  EXPECT_LE(copies, kReads);
}

// It unmaps it while the receiver is stopped. On one host that one reads it where it lies, and finds first that it is not there; between hosts the kernel
// may have taken it before.
TEST_F(GoneMemory, ASenderThatUnmapsWhatItSendsIsToldSo) {
  const pid_t receiver = Run(0, [](Process& process) {
    process.PostReceive();
    process.PostReceive();
    process.Connect();
    Process::Check(process.Await() == IBV_WC_SUCCESS);
    raise(SIGSTOP);
    process.Hear();
    return 0;
  });
  const pid_t sender = Run(1, [](Process& process) {
    process.Connect();
    process.Post(IBV_WR_SEND, kBytes);
    Process::Check(process.Await() == IBV_WC_SUCCESS);
    process.Hear();  // that the receiver is stopped
    process.Post(IBV_WR_SEND, kBytes);
    process.Unmap();
    process.Tell();
    const int status = process.Await();
    process.Tell();
    return status;
  });
  int status = 0;
  ASSERT_EQ(waitpid(receiver, &status, WUNTRACED), receiver);
  ASSERT_TRUE(WIFSTOPPED(status));
  char byte = 'x';
  ASSERT_EQ(write(sockets_[0], &byte, 1), 1);
  ASSERT_EQ(read(sockets_[0], &byte, 1), 1) << "it is unmapped";
  ASSERT_EQ(kill(receiver, SIGCONT), 0);
  const int told = CodeOf(sender);
  EXPECT_TRUE(told == IBV_WC_LOC_PROT_ERR || (told == IBV_WC_SUCCESS && !OnOneHost())) << told;
  EXPECT_EQ(CodeOf(receiver), 0);
}

}  // namespace
