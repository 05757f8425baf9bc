// Closing rsockets whose peers say nothing any more.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <vector>

#include "cm/rsocket/rsocket_testing.h"

namespace weft::rsocket_api {
namespace {

constexpr int kSockets = 100;
constexpr size_t kBytes = 40'000;
using Clock = std::chrono::steady_clock;

// Accepts kSockets connections, one after the other, and tells `ready`; then reads each to its end and tells with its
// status whether everything came.
[[noreturn]] void Serve(int ready) {
  alarm(120);
  sockaddr_in address;
  Fd listener = Listener(&address);
  if (write(ready, &address, sizeof address) != sizeof address) _exit(1);
  std::vector<Fd> accepted;
  while (accepted.size() < kSockets) {
    accepted.emplace_back(raccept(listener, nullptr, nullptr));
    char hello;
    if (accepted.back() < 0 || rrecv(accepted.back(), &hello, 1, 0) != 1) _exit(2);
    if (rsend(accepted.back(), "!", 1, 0) != 1) _exit(3);
  }
  if (write(ready, "x", 1) != 1) _exit(1);
  for (const Fd& fd : accepted) {
    std::vector<char> bytes(kBytes + 1);
    size_t got = 0;
    for (;;) {
      const ssize_t count = rrecv(fd, bytes.data() + got, bytes.size() - got, 0);
      if (count < 0) _exit(4);
      if (count == 0) break;
      got += static_cast<size_t>(count);
    }
    if (got != kBytes) _exit(5);
    for (size_t i = 0; i < kBytes; ++i) {
      if (bytes[i] != static_cast<char>(i * 31)) _exit(6);
    }
  }
  _exit(0);
}

TEST(SilentPeer, OfAHundredSocketsHoldsUpNobodyWhoClosesAndGetsWhatWasWritten) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();  // before there is an RNIC
  if (child == 0) Serve(ready[1]);
  sockaddr_in address;
  ASSERT_EQ(read(ready[0], &address, sizeof address), static_cast<ssize_t>(sizeof address));
  std::vector<Fd> sockets;
  for (int i = 0; i < kSockets; ++i) {
    sockets.emplace_back(::rsocket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(ConnectTo(sockets.back(), address), 0) << strerror(errno);
    char answer;
    ASSERT_EQ(rsend(sockets.back(), "?", 1, 0), 1);
    ASSERT_EQ(rrecv(sockets.back(), &answer, 1, 0), 1);
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ASSERT_EQ(kill(child, SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));

  std::vector<char> text(kBytes);
  for (size_t i = 0; i < kBytes; ++i) text[i] = static_cast<char>(i * 31);
  for (const Fd& fd : sockets) ASSERT_EQ(rsend(fd, text.data(), text.size(), 0), static_cast<ssize_t>(kBytes));
  const auto begin = Clock::now();
  for (Fd& fd : sockets) EXPECT_EQ(rclose(fd.Release()), 0);
  const double took = std::chrono::duration<double>(Clock::now() - begin).count();
  EXPECT_LT(took, 20) << "seconds; each waited alone, it was minutes";
  std::printf("%d sockets of a silent peer closed in %.2f s\n", kSockets, took);

  ASSERT_EQ(kill(child, SIGCONT), 0);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "of the peer: " << std::hex << status;
}

}  // namespace
}  // namespace weft::rsocket_api
