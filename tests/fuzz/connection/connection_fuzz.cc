// A whole connection whose peer sends whatever it likes, over a network in virtual time: as responder and as initiator, through
// MPA start-up and into the stream. Another connection of the same RNIC goes on undisturbed, memory beside the registered regions
// keeps its bytes, every work request completes, and nothing is left behind.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/byte_reader.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "mpa/start_up.h"
#include "sim/net/virtual_network.h"
#include "sim/rnic.h"
#include "sim/testing/host.h"

namespace weft::sim {
namespace {

using testing::Program;
using testing::QpSize;
using transport::SocketAddress;

constexpr size_t kGuard = 64, kRegion = 256;
constexpr uint8_t kUntouched = 0x5a;

// Takes the input apart; zeros when it ends.
class Script {
 public:
  explicit Script(ByteSpan bytes) : bytes_(bytes) {}
  bool done() const { return bytes_.empty(); }
  uint8_t Byte() {
    if (bytes_.empty()) return 0;
    const uint8_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }
  ByteSpan Take(size_t count) {
    const ByteSpan taken = bytes_.first(std::min(count, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }

 private:
  ByteSpan bytes_;
};

// Memory with guards on both sides.
struct Guarded {
  std::array<uint8_t, kGuard + kRegion + kGuard> bytes;
  Guarded() { bytes.fill(kUntouched); }
  uint8_t* region() { return bytes.data() + kGuard; }
  void Check() const {
    for (size_t i = 0; i < kGuard; ++i) WEFT_CHECK(bytes[i] == kUntouched && bytes[kGuard + kRegion + i] == kUntouched);
  }
};

// The hostile end of the connection.
class Peer {
 public:
  Peer(transport::Network& network, std::unique_ptr<transport::ByteStream> stream) : network_(network), stream_(std::move(stream)) {}

  void Send(ByteSpan bytes) {
    if (stream_ == nullptr || bytes.empty()) return;
    const iovec piece{const_cast<uint8_t*>(bytes.data()), bytes.size()};
    stream_->Write({&piece, 1});
    std::array<uint8_t, 512> answer;  // read, so that nobody blocks for ever
    const iovec into{answer.data(), answer.size()};
    while (stream_->Read({&into, 1}).kind == transport::IoResult::Kind::kDone) {
    }
  }

  // One FPDU around `ulpdu`, with a right CRC.
  void SendFramed(ByteSpan ulpdu) {
    if (ulpdu.empty()) return;
    std::vector<uint8_t> frame = {static_cast<uint8_t>(ulpdu.size() >> 8), static_cast<uint8_t>(ulpdu.size())};
    frame.insert(frame.end(), ulpdu.begin(), ulpdu.end());
    while (frame.size() % 4 != 0) frame.push_back(0);
    frame.resize(frame.size() + 4);
    StoreCrc32c(frame.data() + frame.size() - 4, Crc32c(ByteSpan(frame).first(frame.size() - 4)));
    Send(frame);
  }

  void Close(bool abruptly) {
    if (stream_ == nullptr) return;
    if (abruptly) {
      stream_->Abort();
    } else {
      stream_->ShutdownWrite();
    }
  }
  void Drop() { stream_.reset(); }

 private:
  transport::Network& network_;
  std::unique_ptr<transport::ByteStream> stream_;
};

class Scene {
 public:
  explicit Scene(ByteSpan input) : script_(input), network_(1), rnic_(network_, SettingsFrom(script_.Byte()), 1) {}

  void Run() {
    Program victim(rnic_, QpSize{.sends = 8, .receives = 4, .completions = 64});
    Guarded region, receives;
    const RegionInfo remote = victim.Register(region.region(), kRegion);
    const RegionInfo local = victim.Register(receives.region(), kRegion);
    for (uint64_t i = 0; i < 4; ++i) PostReceive(victim, local, i);

    const bool victim_listens = script_.Byte() & 1;
    const std::unique_ptr<Peer> peer = victim_listens ? ConnectTo(victim) : LetConnect(victim);
    if (peer != nullptr) {
      Play(*peer, victim, victim_listens, remote, local);
      network_.RunFor(std::chrono::seconds(100));  // whatever waits for this peer has given up by now
      peer->Close(/*abruptly=*/true);
      network_.RunFor(std::chrono::seconds(100));
      Poll(victim);
      WEFT_CHECK(victim.qp.qp->state() == IBV_QPS_ERR || victim.qp.qp->state() == IBV_QPS_INIT);
      if (victim.qp.qp->state() == IBV_QPS_ERR) WEFT_CHECK(receives_completed_ == 4 && sends_completed_ == sends_posted_);
      peer->Drop();
    }
    region.Check();
    receives.Check();
    CheckAnotherConnectionWorks();
    listener_.reset();
  }

 private:
  static Settings SettingsFrom(uint8_t flags) {
    Settings settings;
    settings.crc = flags & 1 ? CrcPolicy::kOn : CrcPolicy::kOff;
    settings.markers = flags & 2;
    settings.mpa_revision = flags & 4 ? 1 : 2;
    settings.extensions = flags & 8;
    return settings;
  }

  void PostReceive(Program& program, const RegionInfo& memory, uint64_t id) {
    ibv_sge element{memory.address + id * 32, 32, memory.stag.value};
    ibv_recv_wr wr{};
    wr.wr_id = id;
    wr.sg_list = &element;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    program.qp.qp->PostReceive(&wr, &bad);
  }

  std::unique_ptr<Peer> ConnectTo(Program& victim) {
    auto listening = rnic_.cm().Listen(*SocketAddress::Parse("127.0.0.1", 700), 4, false, true, victim.cm);
    WEFT_CHECK(listening.ok());
    victim.listener = *listening;
    auto stream = network_.StartConnect(*SocketAddress::Parse("127.0.0.1", 0), *SocketAddress::Parse("127.0.0.1", 700));
    WEFT_CHECK(stream.ok());
    network_.RunFor(std::chrono::milliseconds(1));
    return std::make_unique<Peer>(network_, std::move(stream.value()));
  }

  std::unique_ptr<Peer> LetConnect(Program& victim) {
    auto listening = network_.Listen(*SocketAddress::Parse("127.0.0.1", 701), 4, false, true);
    WEFT_CHECK(listening.ok());
    listener_ = std::move(listening.value());
    victim.endpoint = rnic_.cm().CreateEndpoint();
    victim.endpoint->SetObserver(victim.cm);
    const ConnectParameters parameters{.private_data = {1, 2, 3}, .ird = 4, .ord = 4};
    WEFT_CHECK(victim.endpoint->Connect(*SocketAddress::Parse("127.0.0.1", 0), *SocketAddress::Parse("127.0.0.1", 701),
                                        victim.qp.handle(), parameters) == 0);
    network_.RunFor(std::chrono::milliseconds(1));
    auto accepted = listener_->Accept();
    return accepted.ok() ? std::make_unique<Peer>(network_, std::move(accepted.value())) : nullptr;
  }

  void Play(Peer& peer, Program& victim, bool victim_listens, const RegionInfo& remote, const RegionInfo& local) {
    for (int steps = 0; steps < 64 && !script_.done(); ++steps) {
      switch (script_.Byte() % 8) {
        case 0: {  // any bytes
          peer.Send(script_.Take(script_.Byte()));
          break;
        }
        case 1: {  // a start frame that is right
          mpa::StartParams params;
          const uint8_t flags = script_.Byte();
          params.revision = flags & 1 ? 1 : 2;
          params.crc = flags & 2;
          params.markers = flags & 4;
          params.peer_to_peer = flags & 8;
          params.ird = params.ord = static_cast<uint16_t>(flags >> 4);
          mpa::StartFrame frame = mpa::MakeRequest(params);
          frame.reply = !victim_listens;
          peer.Send(frame.Serialize());
          break;
        }
        case 2: {  // any ULPDU, well framed
          peer.SendFramed(script_.Take(script_.Byte()));
          break;
        }
        case 3: {  // a Send in order, of any length
          const ByteSpan payload = script_.Take(script_.Byte());
          std::vector<uint8_t> segment = {0x41, static_cast<uint8_t>(0x40 | (script_.Byte() & 0x0f))};
          Append(segment, remote.stag.value, 4);  // what a Send with Invalidate names
          Append(segment, 0, 4);
          Append(segment, next_msn_++, 4);
          Append(segment, 0, 4);
          segment.insert(segment.end(), payload.begin(), payload.end());
          peer.SendFramed(segment);
          break;
        }
        case 4: {  // a Write to a place near the region
          const uint8_t length = script_.Byte();
          const ByteSpan payload = script_.Take(length);
          std::vector<uint8_t> segment = {0xc1, 0x40};
          Append(segment, remote.stag.value, 4);
          Append(segment, remote.address + static_cast<int8_t>(script_.Byte()) * 4, 8);
          segment.insert(segment.end(), payload.begin(), payload.end());
          peer.SendFramed(segment);
          break;
        }
        case 5: {  // the victim's program does something
          network_.RunFor(std::chrono::microseconds(100));
          OnEvents(victim);
          Post(victim, local, script_.Byte());
          break;
        }
        case 6:
          network_.RunFor(std::chrono::microseconds(script_.Byte() * 100));
          OnEvents(victim);
          Poll(victim);
          break;
        case 7:
          if (script_.Byte() % 4 == 0) peer.Close(script_.Byte() & 1);
          break;
      }
    }
    network_.RunFor(std::chrono::milliseconds(10));
    OnEvents(victim);
  }

  static void Append(std::vector<uint8_t>& to, uint64_t value, int width) {
    for (int i = width - 1; i >= 0; --i) to.push_back(static_cast<uint8_t>(value >> (8 * i)));
  }

  void OnEvents(Program& victim) {
    while (!victim.cm->events.empty()) {
      CmEvent event = std::move(victim.cm->events.front());
      victim.cm->events.pop_front();
      if (event.kind != CmEvent::Kind::kConnectRequest) continue;
      if (victim.endpoint != nullptr) {
        event.endpoint->Reject({}, CmEvent::Reason::kConsumerDefined);
        continue;
      }
      victim.endpoint = event.endpoint;
      victim.endpoint->SetObserver(victim.cm);
      victim.endpoint->Accept(victim.qp.handle(), {.private_data = {9}, .ird = 4, .ord = 4});
    }
  }

  void Post(Program& victim, const RegionInfo& local, uint8_t what) {
    ibv_sge element{local.address + 128, static_cast<uint32_t>(what & 0x3f), local.stag.value};
    ibv_send_wr wr{};
    wr.sg_list = &element;
    wr.num_sge = 1;
    constexpr ibv_wr_opcode kOpcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND};
    wr.opcode = kOpcodes[what >> 6];
    wr.wr.rdma.remote_addr = 0x1000;
    wr.wr.rdma.rkey = 0x1234;
    ibv_send_wr* bad = nullptr;
    if (victim.qp.qp->PostSend(&wr, &bad) == 0) ++sends_posted_;
  }

  void Poll(Program& victim) {
    ibv_wc completions[8];
    for (int count; (count = victim.cq->Poll(8, completions)) > 0;) {
      for (int i = 0; i < count; ++i) ++(completions[i].opcode == IBV_WC_RECV ? receives_completed_ : sends_completed_);
    }
  }

  // The RNIC serves others as if nothing had been.
  void CheckAnotherConnectionWorks() {
    Program client(rnic_), server(rnic_);
    auto listening = rnic_.cm().Listen(*SocketAddress::Parse("127.0.0.1", 702), 4, false, true, server.cm);
    WEFT_CHECK(listening.ok());
    server.listener = *listening;
    client.endpoint = rnic_.cm().CreateEndpoint();
    client.endpoint->SetObserver(client.cm);
    WEFT_CHECK(client.endpoint->Connect(*SocketAddress::Parse("127.0.0.1", 0), *SocketAddress::Parse("127.0.0.1", 702),
                                        client.qp.handle(), {.ird = 1, .ord = 1}) == 0);
    std::array<uint8_t, 32> from, to{};
    from.fill(0x77);
    const RegionInfo source = client.Register(from.data(), from.size());
    const RegionInfo sink = server.Register(to.data(), to.size());
    PostReceive(server, sink, 0);
    network_.RunUntil([&] { return !server.cm->events.empty(); });
    server.endpoint = server.cm->events.front().endpoint;
    server.cm->events.clear();
    server.endpoint->SetObserver(server.cm);
    WEFT_CHECK(server.endpoint->Accept(server.qp.handle(), {.ird = 1, .ord = 1}) == 0);
    network_.RunUntil([&] { return !client.cm->events.empty(); });
    WEFT_CHECK(client.cm->events.front().kind == CmEvent::Kind::kEstablished);
    ibv_sge element{source.address, 32, source.stag.value};
    ibv_send_wr wr{};
    wr.sg_list = &element;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    ibv_send_wr* bad = nullptr;
    WEFT_CHECK(client.qp.qp->PostSend(&wr, &bad) == 0);
    network_.RunFor(std::chrono::seconds(1));
    ibv_wc completion{};
    WEFT_CHECK(server.cq->Poll(1, &completion) == 1 && completion.status == IBV_WC_SUCCESS && to == from);
  }

  Script script_;
  VirtualNetwork network_;
  Rnic rnic_;
  std::unique_ptr<transport::Listener> listener_;
  uint32_t next_msn_ = 1;
  int receives_completed_ = 0, sends_completed_ = 0, sends_posted_ = 0;
};

}  // namespace
}  // namespace weft::sim

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::sim::Scene(weft::ByteSpan(data, size)).Run();
  return 0;
}
