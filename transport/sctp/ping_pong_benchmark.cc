// What SCTP costs between two processes, next to nothing else: latency of a message that goes there and back.
//
//   ping_pong_benchmark server ADDRESS[,ADDRESS] [native]       prints "port P udp U"; serves until it is killed
//   ping_pong_benchmark client ADDRESS[,ADDRESS]:P:U spin|sleep|handler SIZE SECONDS [from=ADDRESS,ADDRESS] [native]
//
// spin, sleep, handler: by a thread that polls, by one that is woken, or by the network's. WEFT_SCTP_... hold at both
// ends.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "transport/sctp/testing/benchmark_ends.h"
#include "transport/tcp_network.h"

namespace {

using namespace weft::transport::sctp;  // NOLINT
using weft::transport::Interest, weft::transport::ProcessNetwork, weft::transport::ReadyHandler;
using Clock = std::chrono::steady_clock;

// Echoes.
class Served : public ReadyHandler {
 public:
  explicit Served(std::unique_ptr<Association> association) : association_(std::move(association)), room_(1 << 20) {}
  void Watch(std::shared_ptr<ReadyHandler> self) { association_->Watch(std::move(self)); }
  void OnReady(Interest) override {
    while (true) {
      const iovec into{.iov_base = room_.data(), .iov_len = room_.size()};
      const Received received = association_->Receive({&into, 1});
      if (received.kind != Received::Kind::kMessage && received.kind != Received::Kind::kEvent) return;
      if (received.kind != Received::Kind::kMessage) continue;
      const iovec piece{.iov_base = room_.data(), .iov_len = received.bytes};
      association_->Send({.pieces = {&piece, 1}});
    }
  }

 private:
  std::unique_ptr<Association> association_;
  std::vector<uint8_t> room_;
};

struct Client {
  Sctp& sctp;
  std::unique_ptr<Association> association;
  bool spin = false;
  std::shared_ptr<Bell> bell = std::make_shared<Bell>(*association);
  std::vector<uint8_t> room = std::vector<uint8_t>(1 << 20);

  // The next message; events are passed over. Empty: a tenth of a second went by, perhaps.
  Received Next() {
    while (true) {
      const iovec into{.iov_base = room.data(), .iov_len = room.size()};
      const Received received = association->Receive({&into, 1});
      if (received.kind == Received::Kind::kFailed) Fail(std::string("lost: ") + strerror(received.error));
      if (received.kind == Received::Kind::kEvent && received.event.kind == Event::Kind::kPathChanged) {
        std::printf("path %s %s\n", received.event.path.host().c_str(),
                    received.event.path_state == PathState::kActive ? "active" : "inactive");
      }
      if (received.kind == Received::Kind::kNothing) {
        if (!spin) {
          bell->Wait();
          return received;
        }
        ProcessNetwork().DriveInline();
        sctp.Poll(association.get());
        continue;
      }
      return received;
    }
  }
};

// Answers each message in its handler, on the network's thread.
class Answering : public ReadyHandler {
 public:
  Answering(Association& association, size_t size, double seconds)
      : association_(association),
        message_(size, 1),
        room_(1 << 20),
        until_(Clock::now() + std::chrono::duration<double>(seconds)) {}
  void OnReady(Interest) override {
    while (!over_) {
      const iovec into{.iov_base = room_.data(), .iov_len = room_.size()};
      const Received received = association_.Receive({&into, 1});
      if (received.kind == Received::Kind::kNothing) return;
      if (received.kind == Received::Kind::kFailed) Fail(std::string("lost: ") + strerror(received.error));
      const bool up = received.kind == Received::Kind::kEvent && received.event.kind == Event::Kind::kUp;
      if (received.kind == Received::Kind::kMessage)
        times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - began_).count() / 2);
      if (!up && received.kind != Received::Kind::kMessage) continue;
      began_ = Clock::now();
      over_ = began_ > until_;
      const iovec piece{.iov_base = message_.data(), .iov_len = message_.size()};
      association_.Send({.pieces = {&piece, 1}});
    }
  }
  bool over() const { return over_; }
  std::vector<double> times;

 private:
  Association& association_;
  std::vector<uint8_t> message_, room_;
  const std::chrono::time_point<Clock, std::chrono::duration<double>> until_;
  Clock::time_point began_;
  std::atomic<bool> over_{false};
};

void Print(size_t size, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  std::printf("%zu bytes: half round trip median %.1f us, p99 %.1f us, %zu round trips\n", size,
              times[times.size() / 2], times[times.size() * 99 / 100], times.size());
}

void PingPong(Client& client, size_t size, double seconds) {
  std::vector<uint8_t> message(size, 1);
  const iovec piece{.iov_base = message.data(), .iov_len = message.size()};
  std::vector<double> times;
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < until) {
    const auto began = Clock::now();
    client.association->Send({.pieces = {&piece, 1}});
    while (client.Next().kind != Received::Kind::kMessage) {
    }
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - began).count() / 2);
  }
  Print(size, std::move(times));
}

int RunClient(int argc, char** argv) {
  const std::string where = argv[2], how = argv[3];
  const auto size = static_cast<size_t>(std::atoi(argv[4]));
  const double seconds = std::atof(argv[5]);
  Settings settings = EndSettings({});
  bool native = false;
  for (int i = 6; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "native")
      native = true;
    else if (option.starts_with("from="))
      settings.local_addresses = ParseAddresses(option.substr(5), 0);
    else
      Fail("what is " + option);
  }
  Sctp& sctp = OpenSctp(native);
  auto association = ConnectTo(sctp, where, native, settings);
  if (how == "handler") {
    auto answering = std::make_shared<Answering>(*association, size, seconds);
    association->Watch(answering);
    while (!answering->over()) usleep(10'000);
    Print(size, answering->times);
    return 0;
  }
  Client client{.sctp = sctp, .association = std::move(association), .spin = how == "spin"};
  if (!client.spin) client.association->Watch(client.bell);
  while (client.Next().kind != Received::Kind::kEvent) {
  }
  PingPong(client, size, seconds);
  PrintPaths(*client.association);
  PrintPacketCounters();
  client.association->Shutdown();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  SetProgramName("ping_pong_benchmark");
  const std::string role = argc > 2 ? argv[1] : "";
  if (role == "client" && argc > 5) return RunClient(argc, argv);
  if (role != "server") Fail("server ADDRESSES | client ADDRESSES:PORT:UDPPORT spin|sleep|handler SIZE SECONDS ...");
  Serve(ParseAddresses(argv[2], 0), argc > 3 && std::string(argv[3]) == "native", [](auto association) {
    auto served = std::make_shared<Served>(std::move(association));
    served->Watch(served);
  });
}
