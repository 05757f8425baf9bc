// What SCTP costs between two processes, next to nothing else: latency of a message that goes there and back, bandwidth
// in one direction.
//
//   ping_pong_benchmark server ADDRESS[,ADDRESS] [native]       prints "port P udp U"; serves until it is killed
//   ping_pong_benchmark client ADDRESS[,ADDRESS]:P:U spin|sleep|handler|stream SIZE SECONDS [from=ADDRESS,ADDRESS]
//   [cmt|pf] [native] [every=MS]
//
// spin, sleep, handler: ping-pong, by a thread that polls, by one that is woken, or by the network's. stream: messages
// of SIZE one way; every=MS prints the bytes that arrived, and the paths.
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "transport/sctp/process_sctp.h"
#include "transport/tcp_network.h"

namespace {

using namespace weft::transport::sctp;  // NOLINT
using weft::transport::Interest, weft::transport::IoResult, weft::transport::ProcessNetwork,
    weft::transport::ReadyHandler, weft::transport::SocketAddress;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kEcho = 1, kStream = 2, kTotal = 3;  // payload protocol identifiers

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "ping_pong_benchmark: %s\n", what.c_str());
  std::exit(1);
}

std::vector<SocketAddress> ParseAll(const std::string& list, uint16_t port) {
  std::vector<SocketAddress> addresses;
  for (size_t at = 0; at < list.size();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    auto address = SocketAddress::Parse(list.substr(at, comma - at), port);
    if (!address) Fail("no address: " + list.substr(at, comma - at));
    addresses.push_back(*address);
    at = comma + 1;
  }
  return addresses;
}

Sctp& Open(bool native) {
  auto sctp = ProcessSctp(ProcessNetwork(), {.udp = !native, .native = native});
  if (!sctp) Fail(std::string("no SCTP: ") + strerror(sctp.error()));
  return **sctp;
}

// Echoes, or counts and tells the count back every 64 messages.
class Served : public ReadyHandler {
 public:
  explicit Served(std::unique_ptr<Association> association) : association_(std::move(association)), room_(1 << 20) {}
  void Watch(std::shared_ptr<ReadyHandler> self) { association_->Watch(std::move(self)); }
  void OnReady(Interest) override {
    while (association_ != nullptr) {
      const iovec into{.iov_base = room_.data(), .iov_len = room_.size()};
      const Received received = association_->Receive({&into, 1});
      if (received.kind == Received::Kind::kNothing) return;
      if (received.kind == Received::Kind::kEnded || received.kind == Received::Kind::kFailed) return;
      if (received.kind != Received::Kind::kMessage) continue;
      if (received.info.ppid == kEcho) {
        const iovec piece{.iov_base = room_.data(), .iov_len = received.bytes};
        association_->Send({.ppid = kEcho, .pieces = {&piece, 1}});
        continue;
      }
      total_ += received.bytes;
      if (received.info.end_of_record && (++messages_ % 16 == 0 || received.bytes < 100)) {
        const iovec piece{.iov_base = &total_, .iov_len = sizeof total_};
        association_->Send({.ppid = kTotal, .pieces = {&piece, 1}});
      }
    }
  }

 private:
  std::unique_ptr<Association> association_;
  std::vector<uint8_t> room_;
  uint64_t total_ = 0, messages_ = 0;
};

class Server : public ReadyHandler {
 public:
  explicit Server(std::unique_ptr<weft::transport::sctp::Listener> listener) : listener_(std::move(listener)) {}
  void OnReady(Interest) override {
    while (auto association = listener_->Accept()) {
      auto served = std::make_shared<Served>(std::move(association).value());
      served->Watch(served);
    }
  }
  std::unique_ptr<weft::transport::sctp::Listener> listener_;
};

int Serve(const std::string& addresses, bool native) {
  Sctp& sctp = Open(native);
  Settings settings{.local_addresses = ParseAll(addresses, 0), .send_buffer = 4 << 20, .receive_buffer = 4 << 20};
  auto listener = sctp.Listen(*SocketAddress::Parse("0.0.0.0", 0), 16, settings);
  if (!listener) Fail(std::string("cannot listen: ") + strerror(listener.error()));
  auto server = std::make_shared<Server>(std::move(listener).value());
  std::printf("port %u udp %u\n", server->listener_->LocalAddresses().at(0).port(), sctp.udp_port());
  std::fflush(stdout);
  server->listener_->Watch(server);
  while (true) pause();
}

// Wakes the main thread, which receives.
class Bell : public ReadyHandler {
 public:
  explicit Bell(Association& association) : association_(association) {}
  void OnReady(Interest) override {
    association_.SetReading(false);
    std::lock_guard lock(mutex_);
    rung_ = true;
    condition_.notify_one();
  }
  void Wait() {
    association_.SetReading(true);
    std::unique_lock lock(mutex_);
    condition_.wait_for(lock, std::chrono::milliseconds(100), [this] { return rung_; });
    rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  Association& association_;
  bool rung_ = false;
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
      association_.Send({.ppid = kEcho, .pieces = {&piece, 1}});
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
    client.association->Send({.ppid = kEcho, .pieces = {&piece, 1}});
    while (client.Next().kind != Received::Kind::kMessage) {
    }
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - began).count() / 2);
  }
  Print(size, std::move(times));
}

void Stream(Client& client, size_t size, double seconds, int every_ms) {
  std::vector<uint8_t> message(size, 1);
  const iovec piece{.iov_base = message.data(), .iov_len = message.size()};
  uint64_t arrived = 0, arrived_before = 0, sent_bytes = 0;
  const auto began = Clock::now();
  const auto until = began + std::chrono::duration<double>(seconds);
  auto print_at = began + std::chrono::milliseconds(every_ms);
  double longest_stall = 0;
  auto last = began;
  bool ending = false;
  while (true) {
    const auto now = Clock::now();
    if (!ending && now < until) {
      while (client.association->Send({.ppid = kStream, .pieces = {&piece, 1}}).kind == IoResult::Kind::kDone)
        sent_bytes += size;
    } else if (!ending) {
      const iovec last_piece{.iov_base = message.data(), .iov_len = 1};
      if (client.association->Send({.ppid = kStream, .pieces = {&last_piece, 1}}).kind == IoResult::Kind::kDone) {
        ending = true;
        sent_bytes += 1;
      }
    }
    const Received received = client.Next();
    if (received.kind == Received::Kind::kMessage && received.info.ppid == kTotal) {
      std::memcpy(&arrived, client.room.data(), sizeof arrived);
      longest_stall = std::max(longest_stall, std::chrono::duration<double>(Clock::now() - last).count());
      last = Clock::now();
    }
    if (every_ms > 0 && Clock::now() >= print_at) {
      std::printf("%.1f s: %.1f MB/s\n", std::chrono::duration<double>(Clock::now() - began).count(),
                  static_cast<double>(arrived - arrived_before) / 1e3 / every_ms);
      std::fflush(stdout);
      arrived_before = arrived;
      print_at += std::chrono::milliseconds(every_ms);
    }
    if (ending && arrived == sent_bytes) break;
  }
  const double took = std::chrono::duration<double>(Clock::now() - began).count();
  std::printf("%zu bytes: %.0f MB/s, all %llu arrived, longest stall %.2f s\n", size,
              static_cast<double>(arrived) / took / 1e6, static_cast<unsigned long long>(arrived), longest_stall);
  for (const Path& path : client.association->Paths()) {
    std::printf("path %s %s%s: %.1f MB out, srtt %lld ms, cwnd %u, mtu %u, failures %u\n", path.address.host().c_str(),
                path.state == PathState::kActive ? "active" : "not active", path.primary ? " primary" : "",
                static_cast<double>(path.bytes_out) / 1e6, static_cast<long long>(path.smoothed_rtt.count()),
                path.congestion_window, path.mtu, path.failures);
  }
}

int RunClient(int argc, char** argv) {
  const std::string where = argv[2], how = argv[3];
  const size_t udp_at = where.rfind(':'), port_at = where.rfind(':', udp_at - 1);
  if (udp_at == std::string::npos || port_at == std::string::npos) Fail("ADDRESS:PORT:UDPPORT is wanted, not " + where);
  Settings settings{.send_buffer = 4 << 20, .receive_buffer = 4 << 20};
  bool native = false;
  int every = 0;
  for (int i = 6; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "native")
      native = true;
    else if (option == "cmt")
      settings.multipath = Multipath::kConcurrent;
    else if (option == "pf")
      settings.multipath = Multipath::kConcurrentPotentiallyFailed;
    else if (option.starts_with("from="))
      settings.local_addresses = ParseAll(option.substr(5), 0);
    else if (option.starts_with("every="))
      every = std::atoi(option.c_str() + 6);
    else if (option.starts_with("mtu="))
      settings.path_mtu = static_cast<uint32_t>(std::atoi(option.c_str() + 4));
    else
      Fail("what is " + option);
  }
  Sctp& sctp = Open(native);
  const auto port = static_cast<uint16_t>(std::atoi(where.c_str() + port_at + 1));
  const Peer peer{.addresses = ParseAll(where.substr(0, port_at), port),
                  .udp_port = native ? uint16_t{0} : static_cast<uint16_t>(std::atoi(where.c_str() + udp_at + 1))};
  auto association = sctp.Connect(peer, 0, settings);
  if (!association) Fail(std::string("cannot connect: ") + strerror(association.error()));
  if (how == "handler") {
    auto answering =
        std::make_shared<Answering>(**association, static_cast<size_t>(std::atoi(argv[4])), std::atof(argv[5]));
    (*association)->Watch(answering);
    while (!answering->over()) usleep(10'000);
    Print(static_cast<size_t>(std::atoi(argv[4])), answering->times);
    return 0;
  }
  Client client{.sctp = sctp, .association = std::move(association).value(), .spin = how == "spin"};
  if (!client.spin) client.association->Watch(client.bell);
  while (client.Next().kind != Received::Kind::kEvent) {
  }
  const auto size = static_cast<size_t>(std::atoi(argv[4]));
  const double seconds = std::atof(argv[5]);
  how == "stream" ? Stream(client, size, seconds, every) : PingPong(client, size, seconds);
  const PacketCounters counters = ProcessPacketCounters();
  std::printf(
      "packets out %llu in %llu batches, in %llu in %llu, %llu not sent, %llu damaged, %llu of strangers\n",
      static_cast<unsigned long long>(counters.packets_out), static_cast<unsigned long long>(counters.output_batches),
      static_cast<unsigned long long>(counters.packets_in), static_cast<unsigned long long>(counters.input_batches),
      static_cast<unsigned long long>(counters.not_sent), static_cast<unsigned long long>(counters.damaged),
      static_cast<unsigned long long>(counters.strangers));
  client.association->Shutdown();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string role = argc > 2 ? argv[1] : "";
  if (role == "server") return Serve(argv[2], argc > 3 && std::string(argv[3]) == "native");
  if (role == "client" && argc > 5) return RunClient(argc, argv);
  Fail("server ADDRESSES | client ADDRESSES:PORT:UDPPORT spin|sleep|handler|stream SIZE SECONDS ...");
}
