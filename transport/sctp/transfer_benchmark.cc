// Bytes in one direction between two processes, each of them checked: how fast, over which paths, and how long nothing
// came.
//
//   transfer_benchmark server ADDRESS[,ADDRESS] [native]        prints "port P udp U"; serves until it is killed
//   transfer_benchmark client ADDRESS[,ADDRESS]:P:U SIZE bytes=COUNT|seconds=COUNT [from=ADDRESS,ADDRESS] [cmt|pf]
//   [native] [seed=SEED] [every=MS]
//
// SIZE: of a message. every=MS prints what arrived meanwhile. WEFT_SCTP_... hold at both ends.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "transport/sctp/testing/benchmark_ends.h"
#include "transport/sctp/testing/transfer_sink.h"

namespace {

using namespace weft::transport::sctp;  // NOLINT
using weft::transport::IoResult;
using Clock = std::chrono::steady_clock;

constexpr size_t kRoom = 1 << 20;

double SecondsSince(Clock::time_point then) { return std::chrono::duration<double>(Clock::now() - then).count(); }

struct Plan {
  size_t message = 0;
  uint64_t bytes = UINT64_MAX;
  double seconds = 0;  // 0: until `bytes` are sent
  uint64_t seed = 1;
  int every_ms = 0;
};

class Source {
 public:
  Source(Association& association, const Plan& plan) : association_(association), plan_(plan), pattern_(plan.seed) {
    association_.Watch(bell_);
  }
  void Run() {
    while (!up_) Look();
    uint64_t seed = plan_.seed;
    const iovec piece{.iov_base = &seed, .iov_len = sizeof seed};
    while (!Sent({.ppid = kTransferBegin, .pieces = {&piece, 1}})) Look();
    began_ = Clock::now();
    double print_at = plan_.every_ms / 1e3;
    while (!report_.end) {
      SendOn();
      Look();
      if (plan_.every_ms == 0 || SecondsSince(began_) < print_at) continue;
      std::printf("%.1f s: %.1f MB/s\n", SecondsSince(began_),
                  static_cast<double>(report_.bytes - printed_) / 1e3 / plan_.every_ms);
      std::fflush(stdout);
      printed_ = report_.bytes;
      print_at += plan_.every_ms / 1e3;
    }
    Print();
  }

 private:
  bool Sent(const OutgoingMessage& message) {
    const IoResult result = association_.Send(message);
    if (result.kind == IoResult::Kind::kFailed) Fail(std::string("cannot send: ") + strerror(result.error));
    return result.kind == IoResult::Kind::kDone;
  }

  void SendOn() {
    while (!ended_) {
      const bool over = plan_.seconds > 0 ? SecondsSince(began_) >= plan_.seconds : sent_ >= plan_.bytes;
      if (over) {
        char nothing = 0;
        const iovec piece{.iov_base = &nothing, .iov_len = 1};
        ended_ = Sent({.ppid = kTransferEnd, .pieces = {&piece, 1}});
        return;
      }
      const size_t length = std::min<uint64_t>(plan_.message, plan_.bytes - sent_);
      const auto pieces = pattern_.At(sent_, length);
      if (!Sent({.ppid = kTransferBytes, .pieces = pieces})) return;
      sent_ += length;
    }
  }

  // Until there is nothing to see; waits a while if there was nothing at all.
  void Look() {
    for (bool any = false;; any = true) {
      const iovec into{.iov_base = room_.data(), .iov_len = room_.size()};
      const Received received = association_.Receive({&into, 1});
      switch (received.kind) {
        case Received::Kind::kNothing:
          if (!any) bell_->Wait();
          return;
        case Received::Kind::kEnded:
          Fail("lost: the peer ended it");
        case Received::Kind::kFailed:
          Fail(std::string("lost: ") + strerror(received.error));
        case Received::Kind::kMessage:
          if (received.bytes == sizeof report_) std::memcpy(&report_, room_.data(), sizeof report_);
          continue;
        case Received::Kind::kEvent:
          break;
      }
      up_ |= received.event.kind == Event::Kind::kUp;
      if (received.event.kind != Event::Kind::kPathChanged) continue;
      std::printf("%.2f s: path %s %s\n", SecondsSince(began_), received.event.path.host().c_str(),
                  received.event.path_state == PathState::kActive ? "active" : "inactive");
    }
  }

  void Print() {
    const double took = SecondsSince(began_);
    if (report_.bytes != sent_) Fail(std::to_string(report_.bytes) + " bytes arrived of " + std::to_string(sent_));
    if (report_.wrong_messages > 0) Fail(std::to_string(report_.wrong_messages) + " messages with wrong bytes");
    std::printf("%zu bytes: %.1f MB/s, all %llu arrived and are right, longest stall %.3f s at %.2f s\n", plan_.message,
                static_cast<double>(sent_) / took / 1e6, static_cast<unsigned long long>(sent_), report_.longest_stall,
                report_.stalled_at);
  }

  Association& association_;
  const Plan plan_;
  TransferPattern pattern_;
  std::shared_ptr<Bell> bell_ = std::make_shared<Bell>(association_);
  std::vector<uint8_t> room_ = std::vector<uint8_t>(kRoom);
  TransferReport report_;
  Clock::time_point began_ = Clock::now();
  uint64_t sent_ = 0, printed_ = 0;
  bool up_ = false, ended_ = false;
};

int RunClient(const std::string& where, int argc, char** argv) {
  Settings settings = EndSettings({});
  Plan plan{.message = static_cast<size_t>(std::atoll(argv[0]))};
  if (plan.message == 0 || plan.message > settings.send_buffer) Fail("messages of 1 to WEFT_SCTP_SEND_BUFFER bytes");
  bool native = false;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const size_t equals = option.find('=');
    const std::string name = option.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : option.substr(equals + 1);
    if (name == "native")
      native = true;
    else if (name == "cmt")
      settings.multipath = Multipath::kConcurrent;
    else if (name == "pf")
      settings.multipath = Multipath::kConcurrentPotentiallyFailed;
    else if (name == "from")
      settings.local_addresses = ParseAddresses(value, 0);
    else if (name == "bytes")
      plan.bytes = static_cast<uint64_t>(std::atoll(value.c_str()));
    else if (name == "seconds")
      plan.seconds = std::atof(value.c_str());
    else if (name == "seed")
      plan.seed = static_cast<uint64_t>(std::atoll(value.c_str()));
    else if (name == "every")
      plan.every_ms = std::atoi(value.c_str());
    else
      Fail("what is " + option);
  }
  if (plan.seconds <= 0 && plan.bytes == UINT64_MAX) Fail("bytes=COUNT or seconds=COUNT is wanted");
  const auto association = ConnectTo(OpenSctp(native), where, native, settings);
  Source(*association, plan).Run();
  PrintPaths(*association);
  PrintPacketCounters();
  association->Shutdown();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  SetProgramName("transfer_benchmark");
  const std::string role = argc > 2 ? argv[1] : "";
  if (role == "client" && argc > 4) return RunClient(argv[2], argc - 3, argv + 3);
  if (role != "server") Fail("server ADDRESSES | client ADDRESSES:PORT:UDPPORT SIZE bytes=COUNT|seconds=COUNT ...");
  Serve(ParseAddresses(argv[2], 0), argc > 3 && std::string(argv[3]) == "native", [](auto association) {
    auto sink = std::make_shared<TransferSink>(std::move(association));
    sink->Watch(sink);
  });
}
