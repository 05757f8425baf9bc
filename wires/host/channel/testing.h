#ifndef WIRES_HOST_CHANNEL_TESTING_H_
#define WIRES_HOST_CHANNEL_TESTING_H_

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "transport/tcp_network.h"
#include "wires/host/channel/channel.h"

// Two ends of one channel in this process, for tests.
namespace weft::host {

using llp::Flushed;
using llp::Received;

inline bool CopyAll(uint8_t* to, const uint8_t* from, size_t count) {
  std::memcpy(to, from, count);
  return true;
}
inline bool FindNothing(uint8_t*, const uint8_t*, size_t) { return false; }

// Replaces MPA over TCP: accepts ULPDUs, and ends when told to.
class FakeTcp final : public llp::Channel, private llp::UlpduWriter {
 public:
  void Start(llp::UlpduSink&, std::weak_ptr<llp::ChannelUser>) override {}
  bool ReadyToSend() override { return true; }
  bool may_send() const override { return true; }
  llp::UlpduWriter& writer() override { return *this; }
  Flushed Flush() override { return {}; }
  uint64_t consumed() const override { return count; }
  bool empty() const override { return true; }
  bool failed() const override { return false; }
  void TakeOver(const void*, size_t, Copy) override {}
  Received Receive(unsigned) override { return std::exchange(next, Received{}); }
  bool in_ulpdu() const override { return false; }
  void DivertPlacement() override {}
  transport::WatchId Watch(std::shared_ptr<transport::ReadyHandler> handler) override { return ready = std::move(handler), 1; }
  void UpdateInterest() override {}
  bool quiet() const override { return true; }
  void EndOutput() override {}
  void Close(const std::function<void(llp::UlpduWriter&)>&) override { closed = true; }
  void Abort() override { aborted = true; }
  transport::SocketAddress PeerAddress() const override { return {}; }
  void Annotate(const std::string&) override {}
  std::string Describe() const override { return "fake"; }
  const char* wire() const override { return "tcp"; }

  void Ends(Received how) {
    next = how;
    ready->OnReady({.read = true});
  }

  size_t max_ulpdu() const override { return 1000; }
  bool HasRoom(size_t, size_t) const override { return true; }
  void Append(ByteSpan header, std::span<const iovec>, bool) override {
    count += header.size();
    ++ulpdus;
  }
  uint64_t appended() const override { return count; }

  Received next;
  std::shared_ptr<transport::ReadyHandler> ready;
  uint64_t count = 0;
  int ulpdus = 0;
  bool closed = false, aborted = false;
};

// Keeps received ULPDUs; places payload in memory of its own, in two pieces.
class Sink final : public llp::UlpduSink {
 public:
  bool Begin(size_t length, ByteSpan head, llp::UlpduPlan* plan) override {
    if (stops) return false;
    plan->header_length = kHeader;
    plan->discard = discards;
    placed += plan->placed;
    acknowledged.push_back(plan->acknowledged);
    message.assign(head.begin(), head.begin() + kHeader);
    payload.assign(length - kHeader, 0);
    const size_t half = payload.size() / 2;
    pieces[0] = {payload.data(), half};
    pieces[1] = {payload.data() + half, payload.size() - half};
    if (nowhere) pieces[0] = {reinterpret_cast<void*>(8), half};
    plan->payload = pieces;
    if (in_the_middle) std::exchange(in_the_middle, nullptr)();
    return true;
  }
  void OnUnplaceable() override { unplaceable = true; }
  bool End() override {
    if (unplaceable) return false;
    message.append(payload.begin(), payload.end());
    messages.push_back(message);
    return true;
  }
  void OnTransmitted(uint64_t position) override { transmitted = position; }
  // A header that begins with 'W' writes at the offset in its next byte.
  std::optional<llp::TaggedPlacement> PlacementOf(ByteSpan header) const override {
    if (header[0] != 'W') return std::nullopt;
    return llp::TaggedPlacement{.tag = kTag, .offset = header[1], .awaited = awaited};
  }
  // A header that begins with 'R' reads.
  std::optional<uint32_t> ReachedTag(ByteSpan header) const override {
    return header[0] == 'W' || header[0] == 'R' ? std::optional(kTag) : std::nullopt;
  }
  std::optional<llp::TaggedBuffer> OpenBuffer(uint32_t tag) override {
    EXPECT_EQ(tag, kTag);
    if (buffer.empty()) return std::nullopt;
    return llp::TaggedBuffer{.tag = tag, .offset = 0, .memory = buffer.data(), .length = buffer.size(), .writable = true, .readable = readable};
  }

  static constexpr size_t kHeader = 14;
  static constexpr uint32_t kTag = 0x1234;
  std::vector<uint8_t> buffer;  // open to the peer, unless empty
  int placed = 0;               // number of ULPDUs whose payload the peer had placed
  std::vector<int> acknowledged;  // the value that came with each ULPDU
  bool stops = false, discards = false, unplaceable = false, awaited = true, readable = true;
  bool nowhere = false;                  // names memory that is not mapped
  std::function<void()> in_the_middle;   // called once, before the payload is placed
  uint64_t transmitted = 0;
  std::string message;
  std::vector<uint8_t> payload;
  iovec pieces[2];
  std::vector<std::string> messages;
};

struct Handler final : transport::ReadyHandler, llp::ChannelUser {
  void OnReady(transport::Interest) override { Call(); }
  void OnWake() override { Call(); }
  void Call() {
    std::lock_guard lock(mutex);
    ++calls;
    changed.notify_all();
  }
  bool Await(int count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(20), [&] { return calls >= count; });
  }
  int Calls() {
    std::lock_guard lock(mutex);
    return calls;
  }

  std::mutex mutex;
  std::condition_variable changed;
  int calls = 0;  // guarded
};

struct End {
  FakeTcp* tcp;
  Sink sink;
  std::shared_ptr<Handler> handler = std::make_shared<Handler>();
  std::unique_ptr<Channel> channel;

  void Send(const std::string& payload) { Send(std::string(Sink::kHeader, 'h'), payload); }
  void Write(const std::string& payload, uint8_t offset = 0) {
    std::string header(Sink::kHeader, 'W');
    header[1] = static_cast<char>(offset);
    Send(header, payload);
    channel->Flush();
  }
  void Send(const std::string& header, const std::string& payload, uint8_t acknowledged = 0) {
    iovec piece{const_cast<char*>(payload.data()), payload.size()};
    ASSERT_TRUE(channel->ReadyToSend());
    ASSERT_GT(channel->writer().max_ulpdu(), payload.size() < 8192 ? 100 : payload.size());
    ASSERT_TRUE(channel->writer().HasRoom(payload.size(), 1));
    channel->writer().AppendAcknowledging({reinterpret_cast<const uint8_t*>(header.data()), header.size()}, {&piece, 1}, false, acknowledged);
  }
  Received Receive() { return channel->Receive(32); }
  // Or for ever. The network's thread may tell of a bell after the Receive that has drained it.
  void ReceiveUntilIdle() {
    while (!channel->idle()) Receive();
  }
};

// After Hold() no timer runs. So the watchman does not conclude that the program has stopped polling, however long the
// test is off the processor.
class HeldTimers final : public transport::TcpNetwork {
 public:
  ~HeldTimers() override { Stop(); }
  void Hold() { holds_ = true; }
  transport::TimerId RunAt(transport::Time when, std::function<void()> work) override { return holds_ ? 0 : TcpNetwork::RunAt(when, std::move(work)); }

 private:
  std::atomic<bool> holds_{false};
};

class HostChannelTest : public ::testing::Test {
 protected:
  void SetUp() override { Make({}); }

  void Make(std::function<bool()> needs_tcp, bool reach = true) {
    const auto invitation = point_.Invite();
    ASSERT_TRUE(invitation);
    auto visitor = MeetingPoint::Visit(*invitation);
    auto host = point_.Collect(*invitation);
    ASSERT_TRUE(visitor && host);
    control_ = &visitor->memory->control();
    MakeEnd(responder_, std::move(visitor), {.initiator = false, .reach = reach});
    MakeEnd(initiator_, std::move(host), {.initiator = true, .reach = reach, .needs_tcp = std::move(needs_tcp)});
  }
  void MakeEnd(End& end, std::unique_ptr<Met> met, ChannelOptions options) {
    auto tcp = std::make_unique<FakeTcp>();
    end.tcp = tcp.get();
    end.channel = std::make_unique<Channel>(network_, std::move(tcp), std::move(met), std::move(options));
    end.channel->Start(end.sink, end.handler);
    end.channel->Watch(end.handler);
  }
  // Lets both ends learn each other's way of sending.
  void Shake() {
    initiator_.Send("hello");
    EXPECT_EQ(initiator_.channel->Flush().kind, Flushed::Kind::kAll);
    EXPECT_EQ(responder_.Receive().kind, Received::Kind::kSome);
    responder_.sink.messages.clear();
  }
  static std::string Message(const std::string& payload) { return std::string(Sink::kHeader, 'h') + payload; }

  HeldTimers network_;
  MeetingPoint point_;
  ControlPage* control_ = nullptr;
  End initiator_, responder_;
};

}  // namespace weft::host

#endif  // WIRES_HOST_CHANNEL_TESTING_H_
