// Two processes of different clients send each other messages, and the packets between them are altered, doubled, lost and made up. Both refuse what does not
// fit by process and field, store no more than was agreed, and write no byte outside a receive (TestProcess checks it); what they accept leaves them whole.
//
// The first four bytes choose the limits; then each three bytes are a step: what is done, by or to which process, and with what.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/check.h"
#include "impi/message/testing/process.h"

namespace weft::impi {
namespace {

constexpr size_t kMostInFlight = 64;   // frames, of a direction
constexpr size_t kMostMessages = 256;  // of a process: the time of a run is bounded

enum Step : uint8_t { kSend, kSynchronousSend, kPost, kProbe, kCancel, kRelease, kTake, kDeliver, kAlter, kDouble, kLoseFrame, kMakeUp, kFini, kSteps };

class Fuzzed {
 public:
  Fuzzed(ByteSpan limits)
      : packets_{.data_length = 1u + limits[0] % 64, .tag = 3},
        flow_{.ack_mark = 1u + limits[1] % 3, .high_water = 1u + limits[1] % 3 + limits[2] % 5, .store = limits[3]} {
    for (int i = 0; i < 2; ++i) processes_.emplace_back(NameOf(i), packets_);
    for (int i = 0; i < 2; ++i) processes_[static_cast<size_t>(i)].endpoint.AddPeer(NameOf(1 - i), limits[3] % 2 == 0 ? Peer::kStandard : Peer::kLam, flow_);
  }

  void Do(uint8_t step, uint8_t who, uint8_t value) {
    const size_t self = who % 2;
    TestProcess& process = processes_[self];
    std::deque<Bytes>& frames = in_flight_[self];  // that come to it
    switch (static_cast<Step>(step % kSteps)) {
      case kSend:
      case kSynchronousSend:
        if (process.sends.size() >= kMostMessages || finished_[self]) break;
        process.Send(kPeer, {.tag = value % 4}, Bytes(size_t{value} % 200), step % kSteps == kSynchronousSend);
        break;
      case kPost:
        if (process.receives.size() >= kMostMessages) break;
        process.Post({.tag = value % 5 == 4 ? std::nullopt : std::optional(value % 5)}, value);
        break;
      case kProbe:
        if (const auto message = process.MatchedProbe({.tag = value % 4})) process.Receive(*message, value);
        break;
      case kCancel:
      case kRelease:
        EndSend(self, step % kSteps == kCancel, value);
        break;
      case kTake:
        Take(self);
        break;
      case kDeliver:
        Deliver(self);
        break;
      case kAlter:
        if (!frames.empty()) frames.front()[(who >> 1) % Packet::kSize] = value;
        break;
      case kDouble:
        if (!frames.empty() && frames.size() < kMostInFlight) frames.push_front(frames.front());
        break;
      case kLoseFrame:
        if (!frames.empty()) frames.pop_front();
        break;
      case kMakeUp:
        MakeUp(self, who >> 1, value);
        break;
      case kFini:
        Finish(self, who);
        break;
      case kSteps:
        break;
    }
    Check(process);
  }

  void End() {
    for (size_t self = 0; self < 2; ++self) {
      Endpoint& endpoint = processes_[self].endpoint;
      endpoint.Lose(kPeer);
      WEFT_CHECK(endpoint.sends() == 0 && endpoint.messages() == 0 && !endpoint.HasOutput(kPeer));
    }
  }

 private:
  static ProcessName NameOf(int process) { return {{}, 1 + process}; }
  static constexpr PeerId kPeer{0};

  void EndSend(size_t self, bool cancel, uint8_t value) {
    if (live_[self].size() < processes_[self].sends.size()) {
      for (const auto& [id, send] : processes_[self].sends) {
        if (live_[self].emplace(id, true).second) continue;
      }
    }
    if (live_[self].empty()) return;
    auto chosen = live_[self].begin();
    std::advance(chosen, value % live_[self].size());
    if (!chosen->second) return;
    if (cancel) {
      processes_[self].Cancel(chosen->first);
    } else {
      processes_[self].endpoint.Release(chosen->first);
      chosen->second = false;
    }
  }

  void Take(size_t self) {
    std::deque<Bytes>& frames = in_flight_[1 - self];
    TestProcess& process = processes_[self];
    if (frames.size() >= kMostInFlight) return;
    const bool has = process.endpoint.HasOutput(kPeer);
    Bytes frame = process.Take(kPeer);
    WEFT_CHECK(frame.empty() != has);
    if (has) frames.push_back(std::move(frame));
  }

  void Deliver(size_t self) {
    std::deque<Bytes>& frames = in_flight_[self];
    if (frames.empty()) return;
    Bytes frame = std::move(frames.front());
    frames.pop_front();
    // Whatever follows a header in a stream is its data.
    const auto packet = Packet::Parse(std::span<const uint8_t, Packet::kSize>(frame.data(), Packet::kSize), packets_);
    if (packet.ok()) frame.resize(Packet::kSize + packet->data_length);
    const uint64_t held = processes_[self].endpoint.flow_in(kPeer).held();
    const size_t messages = processes_[self].endpoint.messages(), sends = processes_[self].endpoint.sends();
    const std::string error = processes_[self].On(frame);
    if (error.empty()) return;
    WEFT_CHECK(error.find("pk_") != std::string::npos && error.find('/') != std::string::npos);
    Endpoint& endpoint = processes_[self].endpoint;
    WEFT_CHECK(endpoint.flow_in(kPeer).held() == held && endpoint.messages() == messages && endpoint.sends() == sends);
  }

  // A packet that names low numbers, as handles are.
  void MakeUp(size_t self, uint8_t type, uint8_t value) {
    if (in_flight_[self].size() >= kMostInFlight) return;
    const uint32_t bytes = value % (packets_.data_length + 1);
    const Packet packet{.type = static_cast<PacketType>(type % 8),
                        .data_length = bytes,
                        .source = NameOf(1 - static_cast<int>(self)),
                        .destination = NameOf(static_cast<int>(self)),
                        .source_request = value % 8u,
                        .destination_request = value % 5u,
                        .message_length = bytes + (type >> 3) % 4 * 20u,
                        .tag = value % 4};
    Bytes frame(Packet::kSize);
    packet.Serialize(std::span<uint8_t, Packet::kSize>(frame.data(), Packet::kSize));
    in_flight_[self].push_back(std::move(frame));
  }

  void Finish(size_t self, uint8_t who) {
    TestProcess& process = processes_[self];
    if ((who & 2) != 0) return process.endpoint.OnFini(kPeer);
    if (!finished_[self]) process.Finish();
    finished_[self] = true;
    if (process.endpoint.IsQuiet(kPeer)) process.endpoint.OnFiniSent(kPeer);
  }

  void Check(const TestProcess& process) const {
    const uint64_t most = uint64_t{flow_.high_water} * packets_.data_length + flow_.store;
    WEFT_CHECK(process.endpoint.flow_in(kPeer).held() <= most && process.HeldBytes(kPeer) <= most);
    WEFT_CHECK(process.endpoint.flow_in(kPeer).unacknowledged() <= flow_.high_water);
    WEFT_CHECK(process.endpoint.flow_out(kPeer).sent() <= flow_.high_water);
  }

  const PacketLimits packets_;
  const FlowLimits flow_;
  std::deque<TestProcess> processes_;
  std::deque<Bytes> in_flight_[2];
  std::map<SendId, bool> live_[2];  // false: released
  bool finished_[2] = {false, false};
};

}  // namespace
}  // namespace weft::impi

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::impi;
  if (size < 4) return 0;
  Fuzzed fuzzed(weft::ByteSpan(data, 4));
  for (size_t at = 4; at + 2 < size; at += 3) fuzzed.Do(data[at], data[at + 1], data[at + 2]);
  fuzzed.End();
  return 0;
}
