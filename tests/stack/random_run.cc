#include "tests/stack/random_run.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <sstream>
#include <vector>

#include "sim/net/random.h"
#include "sim/net/virtual_network.h"
#include "sim/rnic.h"
#include "sim/testing/host.h"

namespace weft::sim {
namespace {

using testing::Program;
using testing::QpSize;
using transport::SocketAddress;

constexpr size_t kLongestOfAll = 90'000;  // of messages, bytes
constexpr size_t kMargin = 8192;          // bytes of window behind the longest Write, which no Write may touch
constexpr uint32_t kMostRequests = 24;    // per side
constexpr uint8_t kUntouched = 0xa5;

uint8_t PatternByte(uint64_t salt, size_t i) { return static_cast<uint8_t>((salt * 0x9e3779b97f4a7c15u >> 56) + i * 7 + (i >> 8)); }

struct Work {
  ibv_wr_opcode opcode = IBV_WR_SEND;
  uint32_t length = 0;
  uint64_t salt = 0;
  size_t slot = 0;              // Write: which slot of the peer's window; Read: which one is read
  int read_of = -1;             // Read: which of our Writes it must see; -1: the peer's constant part
  size_t read_offset = 0;
  bool signaled = true;
  bool completed = false;
  bool success = false;
  std::vector<uint8_t> memory;  // source or sink
  uint32_t lkey = 0;
};

struct PostedReceive {
  std::vector<uint8_t> memory;
  uint32_t lkey = 0;
};

// One side: what it posted, and its window for the peer.
struct Side {
  explicit Side(Rnic& rnic, QpSize size) : program(rnic, size) {}

  std::vector<uint8_t> window;    // a slot for each Write of the peer
  std::vector<uint8_t> constant;  // for the peer's Reads; never written
  RegionInfo window_region, constant_region;
  std::deque<Work> work;
  std::deque<PostedReceive> receives;
  size_t receives_done = 0;
  size_t sends_checked = 0;       // how many of the peer's Sends arrived here
  size_t next_completion = 0;     // of work
  bool failed = false;            // a completion was not a success: only flushes may follow
  bool receive_failed = false;
  ibv_wc_status first_error = IBV_WC_SUCCESS;  // of a request
  Program program;                // goes first: its queue pair may still send from the memory above
};

class RandomRun {
 public:
  RandomRun(uint64_t seed, Wire* wire, World* world)
      : wire_(wire),
        world_(world),
        random_(seed),
        own_network_(seed),
        network_(world != nullptr ? world->network() : own_network_),
        a_net_(AddHost(kA)),
        b_net_(AddHost(kB)) {
    if (wire_ == nullptr && world_ == nullptr) {
      SetLinks();
    } else {
      constexpr size_t kLongest[] = {200, 3000, kLongestOfAll};
      longest_ = kLongest[random_.Between(0, 2)];
      faulty_ = world_ != nullptr ? world_->SetLinks(random_) : random_.Chance(0.35);
    }
    if (random_.Chance(0.5)) persona_ = Persona::kIwarp;
    // Programs that poll all the time leave nothing to the progress thread.
    steps_per_poll_ = random_.Chance(0.1) ? 1 : static_cast<int>(random_.Between(2, 20));
    rnic_a_ = MakeRnic(a_net_, kA, 1);
    rnic_b_ = MakeRnic(b_net_, kB, random_.Chance(0.5) ? 1 : 2);
    const QpSize size{.sends = kMostRequests, .receives = kMostRequests + 1, .pieces = 4, .inline_bytes = 64,
                      .completions = 200, .signal_all = false};
    a_ = std::make_unique<Side>(*rnic_a_, size);
    b_ = std::make_unique<Side>(*rnic_b_, size);
  }

  ~RandomRun() {
    a_.reset();
    b_.reset();
    network_.RunFor(std::chrono::seconds(200));  // lingering closes end, timers run out
    rnic_a_.reset();
    rnic_b_.reset();
  }

  RunResult Run() {
    Prepare(*a_, *b_);
    Prepare(*b_, *a_);
    if (!Connect()) {
      if (!faulty_ && result_.failure.empty()) Fail() << "no connection over a network without faults";
      return Finish();
    }
    result_.connected = true;
    for (int i = 0; i < 400 && result_.failure.empty(); ++i) {
      Side& side = random_.Chance(0.5) ? *a_ : *b_;
      Side& peer = &side == a_.get() ? *b_ : *a_;
      switch (random_.Between(0, 5)) {
        case 0:
        case 1:
          if (side.work.size() < kMostRequests) PostRandom(side, peer);
          break;
        case 2:
          Poll(side, peer);
          break;
        default:
          for (uint64_t steps = random_.Between(1, 20); steps > 0; --steps) network_.Step();
      }
    }
    RunUntil([&] { return !result_.failure.empty() || (Quiet(*a_) && Quiet(*b_)); });
    const bool broken = a_->failed || b_->failed || a_->receive_failed || b_->receive_failed;
    if (result_.failure.empty() && !broken && !(Quiet(*a_) && Quiet(*b_))) {
      // A corrupted ULPDU_Length makes the receiver wait for bytes that nobody sends.
      if (!blackhole_ && !must_have_crc_) Fail() << "after " << std::chrono::duration<double>(network_.Now().time_since_epoch()).count() << " s work is left over: " << Left(*a_) << " and " << Left(*b_);
    }
    if (result_.failure.empty() && broken && !faulty_) {
      Fail() << "work failed over a network without faults: " << a_->first_error << " and " << b_->first_error;
    }
    Disconnect();
    CheckMemory(*a_, *b_);
    CheckMemory(*b_, *a_);
    return Finish();
  }

 private:
  static constexpr char kA[] = "10.0.0.1", kB[] = "10.0.0.2";

  transport::Network& AddHost(const char* address) {
    return world_ != nullptr ? world_->AddHost(address) : own_network_.AddHost({address});
  }
  std::unique_ptr<Rnic> MakeRnic(transport::Network& network, const char* address, uint64_t host_id) {
    const Settings settings = RandomSettings();
    return std::make_unique<Rnic>(network, settings, host_id, world_ != nullptr ? world_->MakeWire(address, settings) : nullptr);
  }
  std::ostringstream& Fail() { return failure_; }
  size_t Slot() const { return longest_ + kMargin; }  // bytes of window for one Write

  RunResult Finish() {
    if (result_.failure.empty()) result_.failure = failure_.str();
    result_.cut = faulty_;
    return result_;
  }

  Settings RandomSettings() {
    Settings settings;
    constexpr CrcPolicy kPolicies[] = {CrcPolicy::kAuto, CrcPolicy::kOn, CrcPolicy::kOff};
    settings.crc = must_have_crc_ ? CrcPolicy::kOn : kPolicies[random_.Between(0, 2)];
    settings.markers = random_.Chance(0.25);
    settings.mpa_revision = random_.Chance(0.8) ? 2 : 1;
    settings.extensions = random_.Chance(0.7);
    settings.persona = persona_;
    extensions_differ_ = rnic_a_ != nullptr && rnic_a_->settings().extensions != settings.extensions;
    return settings;
  }

  void SetLinks() {
    LinkFaults there = LinkFaults::Rough(random_), back = LinkFaults::Rough(random_);
    const size_t grain = std::min({there.longest_segment, back.longest_segment, there.most_per_call, back.most_per_call,
                                   there.buffer, back.buffer});
    longest_ = grain < 64 ? 200 : grain < 1000 ? 3000 : kLongestOfAll;
    if (random_.Chance(0.35)) {
      faulty_ = true;
      LinkFaults& victim = random_.Chance(0.5) ? there : back;
      switch (random_.Between(0, 3)) {
        case 0:
          victim.cut_after_bytes = random_.Between(0, longest_ * 4);
          break;
        case 1:
          victim.cut_after = Duration(random_.Between(0, 20'000'000));
          break;
        case 2:
          victim.cut = LinkFaults::Cut::kBlackhole;
          victim.cut_after_bytes = random_.Between(0, longest_ * 4);
          blackhole_ = true;
          break;
        case 3:
          must_have_crc_ = true;
          victim.corrupt_byte = random_.Between(400, 400 + longest_ * 2);  // behind the start-up, which has no CRC
          break;
      }
    }
    network_.SetLink("10.0.0.1", "10.0.0.2", there);
    network_.SetLink("10.0.0.2", "10.0.0.1", back);
  }

  void Prepare(Side& side, Side&) {
    side.window.assign(Slot() * kMostRequests, kUntouched);
    side.constant.resize(longest_ * 2);
    for (size_t i = 0; i < side.constant.size(); ++i) side.constant[i] = PatternByte(77, i);
    side.window_region = side.program.Register(side.window.data(), side.window.size());
    side.constant_region = side.program.Register(side.constant.data(), side.constant.size(), IBV_ACCESS_REMOTE_READ);
    for (uint32_t i = 0; i < kMostRequests; ++i) {
      PostedReceive& receive = side.receives.emplace_back();
      receive.memory.assign(longest_ + 16, kUntouched);
      receive.lkey = side.program.Register(receive.memory.data(), receive.memory.size(), IBV_ACCESS_LOCAL_WRITE).stag.value;
      ibv_sge pieces[3];
      const int count = Cut(receive.memory, receive.lkey, pieces);
      ibv_recv_wr wr{};
      wr.wr_id = i;
      wr.sg_list = pieces;
      wr.num_sge = count;
      ibv_recv_wr* bad = nullptr;
      if (side.program.qp.qp->PostReceive(&wr, &bad) != 0) Fail() << "PostReceive refused";
    }
  }

  // Cuts memory into one to three scatter/gather elements.
  int Cut(std::vector<uint8_t>& memory, uint32_t lkey, ibv_sge* pieces) {
    const int count = static_cast<int>(random_.Between(1, 3));
    size_t at = 0;
    for (int i = 0; i < count; ++i) {
      const size_t rest = memory.size() - at;
      const size_t length = i + 1 == count ? rest : random_.Between(0, rest);
      pieces[i] = {reinterpret_cast<uint64_t>(memory.data() + at), static_cast<uint32_t>(length), lkey};
      at += length;
    }
    return count;
  }

  bool Connect() {
    if (wire_ == nullptr) return ConnectByCm();
    wire_->Connect(a_net_, a_->program.qp.qp, b_net_, b_->program.qp.qp, faulty_, random_);
    return a_->program.qp.qp->state() == IBV_QPS_RTS && b_->program.qp.qp->state() == IBV_QPS_RTS;
  }

  bool ConnectByCm() {
    auto listening = rnic_b_->cm().Listen(*SocketAddress::Parse("10.0.0.2", 7471), 4, false, true, b_->program.cm);
    if (!listening.ok()) {
      Fail() << "Listen: " << listening.error();
      return false;
    }
    b_->program.listener = *listening;
    a_->program.endpoint = rnic_a_->cm().CreateEndpoint();
    a_->program.endpoint->SetObserver(a_->program.cm);
    const std::vector<uint8_t> hello(random_.Between(0, 300), 0x11);
    const auto reads = static_cast<uint16_t>(random_.Between(1, 8));
    if (a_->program.endpoint->Connect(*SocketAddress::Parse("10.0.0.1", 0), *SocketAddress::Parse("10.0.0.2", 7471),
                                      a_->program.qp.handle(), {hello, reads, reads}) != 0) {
      Fail() << "Connect refused";
      return false;
    }
    bool a_up = false, b_up = false, over = false;
    network_.RunUntil(
        [&] {
          while (!b_->program.cm->events.empty()) {
            CmEvent event = std::move(b_->program.cm->events.front());
            b_->program.cm->events.pop_front();
            if (event.kind == CmEvent::Kind::kConnectRequest) {
              if (b_->program.endpoint != nullptr) {
                event.endpoint->Close();  // the second try, with revision 1, of a connection that a fault ended
                continue;
              }
              // An end without extensions takes Weft's trailer for private data, behind the program's.
              std::vector<uint8_t> got = event.private_data;
              if (extensions_differ_ && got.size() > hello.size()) got.resize(hello.size());
              if (got != hello) Fail() << "private data changed on the way";
              b_->program.endpoint = event.endpoint;
              b_->program.endpoint->SetObserver(b_->program.cm);
              const auto ours = static_cast<uint16_t>(random_.Between(1, 8));
              if (b_->program.endpoint->Accept(b_->program.qp.handle(), {{}, ours, ours}) != 0) over = true;
            } else if (event.kind == CmEvent::Kind::kEstablished) {
              b_up = true;
            } else {
              over = true;
            }
          }
          while (!a_->program.cm->events.empty()) {
            const CmEvent event = std::move(a_->program.cm->events.front());
            a_->program.cm->events.pop_front();
            if (event.kind == CmEvent::Kind::kEstablished) {
              a_up = true;
            } else {
              over = true;
            }
          }
          return over || (a_up && b_up) || !result_.failure.empty();
        },
        std::chrono::seconds(200));
    return a_up && b_up && !over;
  }

  void PostRandom(Side& side, Side& peer) {
    Work& work = side.work.emplace_back();
    const size_t index = side.work.size() - 1;
    work.salt = random_.Next();
    work.length = static_cast<uint32_t>(random_.Chance(0.1) ? 0 : random_.Between(1, random_.Chance(0.5) ? 64 : longest_));
    work.signaled = random_.Chance(0.8);
    // A responder of revision 1 may not send before the initiator did (RFC 5044 section 7.1.3); it then waits, as it should.
    const uint64_t kind = random_.Between(0, 9);
    work.opcode = kind < 4 ? IBV_WR_SEND : kind < 7 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
    work.memory.resize(work.length);
    int flags = work.signaled ? IBV_SEND_SIGNALED : 0;
    if (random_.Chance(0.2)) flags |= IBV_SEND_FENCE;
    uint64_t remote = 0;
    uint32_t rkey = 0;
    if (work.opcode == IBV_WR_RDMA_READ) {
      rkey = peer.constant_region.stag.value;
      work.read_offset = random_.Between(0, peer.constant.size() - work.length);
      remote = peer.constant_region.address + work.read_offset;
      for (size_t i = index; i-- > 0 && random_.Chance(0.7);) {
        if (side.work[i].opcode != IBV_WR_RDMA_WRITE) continue;
        work.read_of = static_cast<int>(i);  // sees what that Write wrote: they are in order
        work.length = side.work[i].length;
        work.memory.resize(work.length);
        rkey = peer.window_region.stag.value;
        remote = peer.window_region.address + i * Slot();
        break;
      }
    } else {
      for (size_t i = 0; i < work.length; ++i) work.memory[i] = PatternByte(work.salt, i);
    }
    if (work.opcode == IBV_WR_RDMA_WRITE) {
      work.slot = index;
      rkey = peer.window_region.stag.value;
      remote = peer.window_region.address + index * Slot();
    }
    work.lkey = side.program.Register(work.memory.data(), work.memory.size()).stag.value;
    ibv_sge pieces[3];
    int count = 1;
    if (work.opcode == IBV_WR_RDMA_READ) {
      pieces[0] = {reinterpret_cast<uint64_t>(work.memory.data()), work.length, work.lkey};
    } else {
      count = Cut(work.memory, work.lkey, pieces);
      if (work.length <= 64 && random_.Chance(0.4)) flags |= IBV_SEND_INLINE;
    }
    ibv_send_wr wr{};
    wr.wr_id = index;
    wr.sg_list = pieces;
    wr.num_sge = count;
    wr.opcode = work.opcode;
    wr.send_flags = static_cast<unsigned>(flags);
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = rkey;
    ibv_send_wr* bad = nullptr;
    if (const int error = side.program.qp.qp->PostSend(&wr, &bad)) Fail() << "PostSend: " << error;
    result_.failure = failure_.str();
  }

  void PollBoth() {
    Poll(*a_, *b_);
    Poll(*b_, *a_);
  }

  // Lets the network go on until `condition` holds, while both programs poll now and then, or until it stands still.
  void RunUntil(const std::function<bool()>& condition) {
    const auto polled = [&] {
      PollBoth();
      return condition();
    };
    int steps = 0;
    network_.RunUntil([&] { return ++steps % steps_per_poll_ == 0 && polled(); }, std::chrono::seconds(300));
    network_.RunUntil(polled, std::chrono::seconds(300));  // what it stands still for may be a poll
  }

  void Poll(Side& side, Side& peer) {
    ibv_wc completions[8];
    for (int count; (count = side.program.cq->Poll(8, completions)) > 0;) {
      for (int i = 0; i < count; ++i) {
        if (completions[i].opcode == IBV_WC_RECV) {
          OnReceive(side, peer, completions[i]);
        } else {
          OnSendCompletion(side, peer, completions[i]);
        }
      }
    }
    result_.failure = failure_.str();
  }

  void OnSendCompletion(Side& side, Side& peer, const ibv_wc& wc) {
    const bool success = wc.status == IBV_WC_SUCCESS;
    if (wc.wr_id >= side.work.size()) {
      Fail() << "completion of request " << wc.wr_id << " that was never posted";
      return;
    }
    // Unsignaled requests before it are complete too; an error tells of each.
    for (; side.next_completion < wc.wr_id; ++side.next_completion) {
      Work& skipped = side.work[side.next_completion];
      if (skipped.signaled || side.failed) Fail() << "request " << side.next_completion << " was skipped; ";
      skipped.completed = skipped.success = true;
      CheckRead(peer, side, skipped);
    }
    if (wc.wr_id != side.next_completion) {
      Fail() << "completion of " << wc.wr_id << " out of order, expected " << side.next_completion;
      return;
    }
    Work& work = side.work[side.next_completion++];
    if (success && side.failed) Fail() << "a success after an error";
    if (success && !work.signaled) Fail() << "an unsignaled request completed with a success";
    work.completed = true;
    work.success = success;
    if (success) {
      ++result_.completed;
      CheckRead(peer, side, work);
    } else {
      if (!side.failed) side.first_error = wc.status;
      side.failed = true;
    }
  }

  void CheckRead(Side& peer, Side& side, const Work& work) {
    if (work.opcode != IBV_WR_RDMA_READ) return;
    for (size_t i = 0; i < work.length; ++i) {
      const uint8_t expected = work.read_of >= 0 ? PatternByte(side.work[static_cast<size_t>(work.read_of)].salt, i)
                                                 : peer.constant[work.read_offset + i];
      if (work.memory[i] != expected) {
        Fail() << "a Read of " << work.length << " bytes got a wrong byte at " << i;
        return;
      }
    }
  }

  void OnReceive(Side& side, Side& peer, const ibv_wc& wc) {
    if (wc.wr_id != side.receives_done) {
      Fail() << "receive " << wc.wr_id << " out of order, expected " << side.receives_done;
      return;
    }
    PostedReceive& receive = side.receives[side.receives_done++];
    if (wc.status != IBV_WC_SUCCESS) {
      side.receive_failed = true;
      return;
    }
    if (side.receive_failed) Fail() << "a receive succeeded after one was flushed";
    while (side.sends_checked < peer.work.size() && peer.work[side.sends_checked].opcode != IBV_WR_SEND) ++side.sends_checked;
    if (side.sends_checked == peer.work.size()) {
      Fail() << "a message that nobody sent";
      return;
    }
    const Work& sent = peer.work[side.sends_checked++];
    if (wc.byte_len != sent.length) Fail() << "a message of " << sent.length << " bytes arrived with " << wc.byte_len;
    for (size_t i = 0; i < receive.memory.size(); ++i) {
      const uint8_t expected = i < sent.length ? PatternByte(sent.salt, i) : kUntouched;
      if (receive.memory[i] != expected) {
        Fail() << "a message of " << sent.length << " bytes is wrong at byte " << i;
        return;
      }
    }
  }

  // Everything posted is complete, or so unsignaled that nobody would hear of it.
  static bool Quiet(Side& side) {
    if (side.program.qp.qp->state() == IBV_QPS_ERR) return side.next_completion == side.work.size();
    for (size_t i = side.next_completion; i < side.work.size(); ++i) {
      if (side.work[i].signaled) return false;
    }
    return true;
  }

  static std::string Left(const Side& side) {
    return std::to_string(side.work.size() - side.next_completion) + " of " + std::to_string(side.work.size());
  }

  void Disconnect() {
    if (!result_.failure.empty()) return;
    a_->program.qp.qp->Disconnect();
    const auto both_down = [&] { return a_->program.qp.qp->state() == IBV_QPS_ERR && b_->program.qp.qp->state() == IBV_QPS_ERR; };
    RunUntil(both_down);
    PollBoth();
    if (!result_.failure.empty()) return;
    if (!both_down() && !blackhole_) Fail() << "a queue pair is not in error after the disconnection";
    for (Side* side : {a_.get(), b_.get()}) {
      if (side->program.qp.qp->state() != IBV_QPS_ERR) continue;
      if (side->receives_done != side->receives.size()) {
        Fail() << "only " << side->receives_done << " of " << side->receives.size() << " receives completed";
      }
    }
    result_.failure = failure_.str();
  }

  // What `writer` wrote into `target`'s window: all of it where the Write is known to have arrived, otherwise any part of it,
  // and nothing beside it.
  void CheckMemory(Side& writer, Side& target) {
    if (!result_.failure.empty()) return;
    for (size_t slot = 0; slot < kMostRequests; ++slot) {
      const Work* work = slot < writer.work.size() && writer.work[slot].opcode == IBV_WR_RDMA_WRITE ? &writer.work[slot] : nullptr;
      const uint8_t* bytes = target.window.data() + slot * Slot();
      const size_t length = work != nullptr ? work->length : 0;
      const bool all_arrived = work != nullptr && work->success && !faulty_;  // flushed Writes may be anywhere
      for (size_t i = 0; i < length; ++i) {
        const uint8_t written = PatternByte(work->salt, i);
        if (bytes[i] == written || (!all_arrived && bytes[i] == kUntouched)) continue;
        Fail() << "Write " << slot << " of " << length << " bytes is wrong at byte " << i;
        result_.failure = failure_.str();
        return;
      }
      static const std::vector<uint8_t> untouched(kLongestOfAll + kMargin, kUntouched);
      if (std::memcmp(bytes + length, untouched.data(), Slot() - length) == 0) continue;
      const size_t at = static_cast<size_t>(std::mismatch(bytes + length, bytes + Slot(), untouched.begin()).first - bytes);
      Fail() << "a byte beside Write " << slot << " changed, at " << at;
      result_.failure = failure_.str();
      return;
    }
  }

  Wire* const wire_;
  World* const world_;
  Random random_;
  VirtualNetwork own_network_;  // without a world
  VirtualNetwork& network_;
  transport::Network& a_net_;
  transport::Network& b_net_;
  Persona persona_ = Persona::kRoce;  // of both ends
  bool faulty_ = false, blackhole_ = false, must_have_crc_ = false, extensions_differ_ = false;
  int steps_per_poll_ = 1;  // of the network, while the programs wait
  size_t longest_ = 0;
  std::unique_ptr<Rnic> rnic_a_, rnic_b_;
  std::unique_ptr<Side> a_, b_;
  std::ostringstream failure_;
  RunResult result_;
};

}  // namespace

RunResult RunRandomWork(uint64_t seed, Wire* wire, World* world) { return RandomRun(seed, wire, world).Run(); }

}  // namespace weft::sim
