// A rank of an IMPI job without MPI: it enters the job, and sends and receives packets as its first argument says.
//
//   exchange BYTES   a packet of 0, 1 and BYTES bytes to each process of the other clients, and as many from them
//   rounds COUNT     world rank 0 and the last one send a packet of 8 bytes to and fro; the others do nothing
//   wait             until the agent closes
//   die NUMBER       the last rank of its client gets this signal; the others wait
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "impi/agent/inlet.h"
#include "impi/entry/hello.h"
#include "impi/run/enter.h"

namespace weft::impi {
namespace {

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "rank: %s\n", why.c_str());
  std::exit(4);
}

class Rank {
 public:
  explicit Rank(Entered entered) : agent_(std::move(entered.agent)), welcome_(std::move(entered.welcome)), inlet_(job().limits()) {}

  const Job& job() const { return welcome_.job; }
  WorldRank self() const { return welcome_.self; }
  bool IsForeign(WorldRank rank) const { return job().host(job().process(rank).host).client != job().self(); }

  void Queue(Packet packet) {
    packet.source = job().process(self()).name;
    CarriedPacket carried(packet);
    carried.WriteHeader();
    std::fill(carried.data().begin(), carried.data().end(), static_cast<uint8_t>(packet.tag));
    out_.insert(out_.end(), carried.bytes.get(), carried.bytes.get() + carried.size());
  }

  // Reads and writes until a packet has come, or, if it does not wait for one, until all is written. nullopt: it is written, or the agent has closed.
  std::optional<CarriedPacket> Step(bool awaits) {
    for (;;) {
      if (awaits) {
        ByteSpan bytes(in_);
        auto taken = inlet_.Take(bytes);
        in_.erase(in_.begin(), in_.end() - static_cast<long>(bytes.size()));
        if (!taken.ok()) Die(taken.error());
        if (*taken) return std::move(**taken);
      } else if (out_.empty()) {
        return std::nullopt;
      }
      if (!out_.empty()) {
        const ssize_t wrote = send(agent_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
        if (wrote < 0 && errno != EAGAIN) return std::nullopt;
        if (wrote > 0) out_.erase(out_.begin(), out_.begin() + wrote);
      }
      pollfd ready{agent_.get(), static_cast<short>(POLLIN | (out_.empty() ? 0 : POLLOUT)), 0};
      if (out_.empty() && !awaits) return std::nullopt;
      poll(&ready, 1, -1);
      if ((ready.revents & ~POLLOUT) == 0) continue;
      const size_t before = in_.size();
      in_.resize(before + 65536);
      const ssize_t count = read(agent_.get(), in_.data() + before, 65536);
      in_.resize(before + static_cast<size_t>(std::max<ssize_t>(0, count)));
      if (count == 0 || (count < 0 && errno != EAGAIN)) return std::nullopt;
    }
  }

  CarriedPacket Receive() {
    auto packet = Step(true);
    if (!packet) Die("the agent closed");
    return std::move(*packet);
  }

  void Finish() {
    Queue({.type = PacketType::kFini});
    Step(false);
    while (const auto late = Step(true)) {  // that was on its way when the agent read FINI
      if (late->packet.has_data()) Die("a message came that nobody expects");
    }
  }

 private:
  Descriptor agent_;
  Welcome welcome_;
  Inlet inlet_;
  std::vector<uint8_t> in_, out_;
};

void Exchange(Rank& rank, uint32_t bytes) {
  size_t expected = 0;
  for (size_t other = 0; other < rank.job().processes().size(); ++other) {
    const WorldRank to(static_cast<int32_t>(other));
    if (!rank.IsForeign(to)) continue;
    for (const uint32_t size : {uint32_t{0}, uint32_t{1}, bytes}) {
      rank.Queue({.data_length = size, .destination = rank.job().process(to).name, .message_length = size, .tag = rank.self().value});
      ++expected;
    }
  }
  while (expected != 0) {
    CarriedPacket carried = rank.Receive();
    const Packet& packet = carried.packet;
    if (!packet.has_data()) continue;  // the agent of a process that has ended acknowledges
    --expected;
    if (rank.job().Find(packet.source) != WorldRank(packet.tag) || rank.job().Find(packet.destination) != rank.self()) Die("a packet that is not for this rank");
    const auto data = carried.data();
    if (!std::all_of(data.begin(), data.end(), [&](uint8_t byte) { return byte == static_cast<uint8_t>(packet.tag); })) Die("other bytes");
  }
}

void Rounds(Rank& rank, int count) {
  const WorldRank last(static_cast<int32_t>(rank.job().processes().size()) - 1);
  const bool first = rank.self() == WorldRank(0);
  if (!first && rank.self() != last) return;
  const ProcessName to = rank.job().process(first ? last : WorldRank(0)).name;
  const uint32_t mark = rank.job().ack_mark();
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) {
    if (first) rank.Queue({.data_length = 8, .destination = to, .message_length = 8});
    while (!rank.Receive().packet.has_data()) {
    }
    if ((static_cast<uint32_t>(i) + 1) % mark == 0) rank.Queue({.type = PacketType::kProtocolAck, .destination = to});
    if (!first) rank.Queue({.data_length = 8, .destination = to, .message_length = 8});
    rank.Step(false);
  }
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
  if (first) std::printf("half round trip: %.1f us\n", took.count() / count / 2);
}

int Main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const char* const number = getenv("PMI_RANK");
  const char* const address = getenv(kAgentVariable);
  if (number == nullptr || address == nullptr) Die("not started by impirun");
  auto entered = EnterJob(address, {.rank = std::atoi(number)});
  if (!entered.ok()) Die(entered.error());
  Rank rank(std::move(entered).value());
  const int value = argc > 2 ? std::atoi(argv[2]) : 0;
  if (what == "exchange") {
    Exchange(rank, static_cast<uint32_t>(value));
  } else if (what == "rounds") {
    Rounds(rank, value);
  } else if (what == "die" && rank.self() == rank.job().ProcessesOf(rank.job().self()).back()) {
    raise(value);
  } else {
    std::printf("waits\n");
    std::fflush(stdout);
    if (rank.Step(true)) Die("a packet");
    return 5;
  }
  rank.Finish();
  std::printf("rank %d of %zu\n", rank.self().value, rank.job().processes().size());
  return 0;
}

}  // namespace
}  // namespace weft::impi

int main(int argc, char** argv) { return weft::impi::Main(argc, argv); }
