// Half a round trip of 64 bytes over loopback TCP, in two processes, for each way of waiting: what the progress thread
// costs next to raw sockets. Prints the median, the mean and the 99th percentile in microseconds.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "base/check.h"
#include "transport/tcp_network.h"

namespace weft::transport {
namespace {

constexpr size_t kBytes = 64;
constexpr int kWarmUp = 2'000;

using Clock = std::chrono::steady_clock;

void Report(const char* name, std::vector<Duration> round_trips) {
  std::sort(round_trips.begin(), round_trips.end());
  auto half = [](Duration whole) { return std::chrono::duration<double, std::micro>(whole).count() / 2; };
  Duration sum = std::accumulate(round_trips.begin(), round_trips.end(), Duration());
  std::printf("%-58s median %6.2f  mean %6.2f  p99 %7.2f us\n", name, half(round_trips[round_trips.size() / 2]),
              half(sum / round_trips.size()), half(round_trips[round_trips.size() * 99 / 100]));
  std::fflush(stdout);
}

// Waits until the whole message was read; false at the end of the stream.
bool ReceiveBlocking(int fd, int flags) {
  char message[kBytes];
  for (size_t at = 0; at < kBytes;) {
    ssize_t count = recv(fd, message + at, kBytes - at, flags);
    if (count == 0 || (count < 0 && errno != EAGAIN)) return false;
    if (count > 0) at += static_cast<size_t>(count);
  }
  return true;
}

void SendMessage(int fd) {
  char message[kBytes] = {};
  WEFT_CHECK(send(fd, message, kBytes, MSG_NOSIGNAL) == kBytes);
}

// One end's part of the game on a connected, blocking or not, socket.
using Player = std::function<void(int fd, int rounds, std::vector<Duration>* round_trips)>;

void PlayRaw(int flags, int fd, int rounds, std::vector<Duration>* round_trips) {
  for (int i = 0; i < rounds; ++i) {
    auto start = Clock::now();
    if (round_trips != nullptr) SendMessage(fd);
    if (!ReceiveBlocking(fd, flags)) return;
    if (round_trips == nullptr) SendMessage(fd);
    if (round_trips != nullptr && i >= kWarmUp) round_trips->push_back(Clock::now() - start);
  }
}

// A stream that borrows a descriptor: what TcpNetwork watches, without the rest of TcpStream.
class Borrowed : public ByteStream {
 public:
  explicit Borrowed(int fd) : fd_(fd) {}
  IoResult Read(std::span<const iovec>) override { return {}; }
  IoResult Write(std::span<const iovec>) override { return {}; }
  int ConnectError() override { return 0; }
  void ShutdownWrite() override {}
  void Abort() override {}
  size_t SegmentSize() const override { return 0; }
  SocketAddress LocalAddress() const override { return {}; }
  SocketAddress PeerAddress() const override { return {}; }
  int fd() const override { return fd_; }

 private:
  const int fd_;
};

// The progress thread receives; it answers itself, or counts for a main thread that spins on memory and answers.
class ProgressPlayer : public ReadyHandler {
 public:
  ProgressPlayer(int fd, bool answer) : fd_(fd), answer_(answer) {}
  void OnReady(Interest) override {
    if (!ReceiveBlocking(fd_, MSG_DONTWAIT)) return;
    if (answer_) SendMessage(fd_);
    received_.store(received_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  int received() const { return received_.load(std::memory_order_acquire); }

 private:
  const int fd_;
  const bool answer_;
  std::atomic<int> received_{0};
};

// Both main threads spin on memory, as ib_write_lat's do.
void PlaySpinningOnMemory(int fd, int rounds, std::vector<Duration>* round_trips) {
  TcpNetwork network;
  Borrowed stream(fd);
  auto player = std::make_shared<ProgressPlayer>(fd, /*answer=*/false);
  WatchId watch = network.Watch(stream, {.read = true}, player);
  for (int i = 0; i < rounds; ++i) {
    auto start = Clock::now();
    if (round_trips != nullptr) SendMessage(fd);
    while (player->received() <= i) {
    }
    if (round_trips == nullptr) SendMessage(fd);
    if (round_trips != nullptr && i >= kWarmUp) round_trips->push_back(Clock::now() - start);
  }
  network.Unwatch(watch);
}

// The main threads sleep, the progress threads play.
void PlayInHandlers(int fd, int rounds, std::vector<Duration>* round_trips) {
  TcpNetwork network;
  Borrowed stream(fd);
  std::atomic<bool> over{false};
  struct Handler : ReadyHandler {
    std::function<void()> body;
    void OnReady(Interest) override { body(); }
  };
  auto handler = std::make_shared<Handler>();
  int round = 0;
  auto start = Clock::now();
  handler->body = [&] {
    if (over || !ReceiveBlocking(fd, MSG_DONTWAIT)) return;
    auto now = Clock::now();
    if (round_trips != nullptr && round >= kWarmUp) round_trips->push_back(now - start);
    start = now;
    if (++round < rounds || round_trips == nullptr) SendMessage(fd);
    if (round == rounds) {
      over = true;
      over.notify_all();
    }
  };
  WatchId watch = network.Watch(stream, {.read = true}, handler);
  if (round_trips != nullptr) SendMessage(fd);
  over.wait(false);
  network.Unwatch(watch);
}

void Measure(const char* name, int rounds, const Player& player) {
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  SocketAddress address = *SocketAddress::Parse("127.0.0.1", 0);
  WEFT_CHECK(bind(listener, address.get(), address.length()) == 0 && listen(listener, 1) == 0);
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &length);
  pid_t child = fork();
  if (child == 0) {
    int fd = accept(listener, nullptr, nullptr);
    player(fd, rounds, nullptr);
    _exit(0);
  }
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  WEFT_CHECK(connect(fd, reinterpret_cast<sockaddr*>(&bound), length) == 0);
  std::vector<Duration> round_trips;
  round_trips.reserve(rounds);
  player(fd, rounds, &round_trips);
  close(fd);
  close(listener);
  waitpid(child, nullptr, 0);
  Report(name, std::move(round_trips));
}

int Run(int rounds) {
  using namespace std::placeholders;
  Measure("raw sockets, both spin in recv", rounds, std::bind(PlayRaw, MSG_DONTWAIT, _1, _2, _3));
  Measure("raw sockets, both block in recv", rounds, std::bind(PlayRaw, 0, _1, _2, _3));
  Measure("progress threads answer in their handlers", rounds, PlayInHandlers);
  Measure("progress threads receive, main threads spin on memory", rounds, PlaySpinningOnMemory);
  return 0;
}

}  // namespace
}  // namespace weft::transport

int main(int argc, char** argv) { return weft::transport::Run(2'000 + (argc > 1 ? std::atoi(argv[1]) : 20'000)); }
