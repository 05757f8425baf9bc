#include "tests/stack/toy_channel/toy_channel.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "llp/channel.h"

namespace weft::sim {
namespace {

using transport::Time;
using Bytes = std::vector<uint8_t>;

// One side of the stream, as the other sees it.
struct Half : std::enable_shared_from_this<Half> {
  explicit Half(transport::Network& its_network) : network(its_network) {}

  // After `delay`, who is its user then.
  void Wake(transport::Duration delay = {}) {
    network.RunAt(network.Now() + delay, [weak = weak_from_this()] {
      const auto half = weak.lock();
      if (const auto alive = half ? half->user.lock() : nullptr) alive->OnWake();
    });
  }

  transport::Network& network;
  std::weak_ptr<llp::ChannelUser> user;
  struct Arriving {
    Time at;
    Bytes ulpdu;
  };
  std::map<uint64_t, Arriving> arriving;  // by number
  uint64_t sent = 0, handed_on = 0;       // to this side; of those sent to it
  bool sender_waits = false;              // for room
  bool ended = false;                     // nothing follows what was sent
  bool gone = false;                      // nobody takes what comes
};

struct Link {
  Link(transport::Network& a, transport::Network& b, uint64_t seed)
      : halves{std::make_shared<Half>(a), std::make_shared<Half>(b)}, random(seed) {}
  void Break() {
    if (std::exchange(broken, true)) return;
    for (const auto& half : halves) half->Wake();
  }
  const std::shared_ptr<Half> halves[2];
  Random random;
  size_t most_under_way = 1;
  size_t max_ulpdu = 1024;
  uint64_t until_break = UINT64_MAX;  // ULPDUs
  bool broken = false;
};

class ToyChannel final : public llp::Channel, private llp::UlpduWriter {
 public:
  ToyChannel(std::shared_ptr<Link> link, int side) : link_(std::move(link)), own_(*link_->halves[side]), peer_(*link_->halves[1 - side]) {}

  void Start(llp::UlpduSink& sink, std::weak_ptr<llp::ChannelUser> user) override {
    sink_ = &sink;
    own_.user = std::move(user);
  }

  bool ReadyToSend() override { return true; }
  bool may_send() const override { return true; }
  llp::UlpduWriter& writer() override { return *this; }
  llp::Flushed Flush() override {
    if (staged_.empty()) return {};
    if (link_->broken) return {.kind = llp::Flushed::Kind::kFailed};
    llp::Flushed flushed{.kind = llp::Flushed::Kind::kAll};
    while (!staged_.empty()) {
      peer_.sender_waits = !peer_.gone && peer_.arriving.size() >= link_->most_under_way;
      if (peer_.sender_waits) {
        flushed.kind = llp::Flushed::Kind::kBlocked;
        break;
      }
      flushed.bytes += SendOldest();
    }
    return flushed;
  }
  uint64_t consumed() const override { return consumed_; }
  bool empty() const override { return staged_.empty(); }
  bool failed() const override { return link_->broken; }
  void TakeOver(const void*, size_t, Copy) override {}  // what was appended is a copy

  llp::Received Receive(unsigned most) override {
    llp::Received received;
    if (link_->broken) {
      received.kind = llp::Received::Kind::kFailed;
      received.error = ECONNRESET;
      return received;
    }
    for (unsigned count = 0; count < most; ++count) {
      const auto next = own_.arriving.find(own_.handed_on);
      if (next == own_.arriving.end() || next->second.at > own_.network.Now()) {
        if (received.bytes == 0 && own_.ended && own_.handed_on == own_.sent) received.kind = llp::Received::Kind::kEnded;
        return received;
      }
      const Bytes ulpdu = std::move(next->second.ulpdu);
      own_.arriving.erase(next);
      ++own_.handed_on;
      if (std::exchange(own_.sender_waits, false)) peer_.Wake();
      received.bytes += ulpdu.size();
      received.kind = llp::Received::Kind::kSome;
      if (stopped_ || !HandOn(ulpdu)) {
        stopped_ = true;
        received.kind = llp::Received::Kind::kStopped;
        return received;
      }
    }
    own_.Wake();  // there may be more
    return received;
  }
  bool in_ulpdu() const override { return false; }
  void DivertPlacement() override {}  // nothing is half placed

  transport::WatchId Watch(std::shared_ptr<transport::ReadyHandler>) override { return 0; }
  void UpdateInterest() override {}
  bool quiet() const override { return staged_.empty(); }

  void EndOutput() override { End(); }
  void Close(const std::function<void(llp::UlpduWriter&)>& last) override {
    if (link_->broken) return;
    const auto send_all = [this] {
      while (!staged_.empty()) SendOldest();
    };
    send_all();
    last(*this);
    send_all();
    End();
    own_.gone = true;
    own_.arriving.clear();
    if (std::exchange(own_.sender_waits, false)) peer_.Wake();
  }
  void Abort() override { link_->Break(); }

  transport::SocketAddress PeerAddress() const override { return *transport::SocketAddress::Parse("10.9.9.9", 9); }
  void Annotate(const std::string&) override {}
  const char* wire() const override { return "toy"; }
  std::string Describe() const override { return "a toy"; }

 private:
  // llp::UlpduWriter
  static constexpr size_t kMostStaged = 8;
  size_t max_ulpdu() const override { return link_->max_ulpdu; }
  bool HasRoom(size_t, size_t) const override { return staged_.size() < kMostStaged; }
  void Append(ByteSpan header, std::span<const iovec> payload, bool) override {
    Bytes ulpdu(header.begin(), header.end());
    for (const iovec& piece : payload) {
      const auto* bytes = static_cast<const uint8_t*>(piece.iov_base);
      ulpdu.insert(ulpdu.end(), bytes, bytes + piece.iov_len);
    }
    WEFT_CHECK(ulpdu.size() <= max_ulpdu());
    appended_ += ulpdu.size();
    staged_.push_back(std::move(ulpdu));
  }
  uint64_t appended() const override { return appended_; }

  size_t SendOldest() {
    const size_t size = staged_.front().size();
    consumed_ += size;
    if (!peer_.gone && !link_->broken) {
      const auto delay = std::chrono::nanoseconds(link_->random.Between(100, 50'000));
      peer_.arriving[peer_.sent++] = {peer_.network.Now() + delay, std::move(staged_.front())};
      peer_.Wake(delay);
    }
    staged_.pop_front();
    if (link_->until_break-- == 0) link_->Break();
    return size;
  }

  bool HandOn(const Bytes& ulpdu) {
    const size_t head = std::min(ulpdu.size(), llp::kUlpduHeadLength);
    llp::UlpduPlan plan;
    if (!sink_->Begin(ulpdu.size(), ByteSpan(ulpdu).first(head), &plan)) return false;
    const uint8_t* from = ulpdu.data() + plan.header_length;
    for (const iovec& piece : plan.discard ? std::span<const iovec>{} : plan.payload) {
      std::memcpy(piece.iov_base, from, piece.iov_len);
      from += piece.iov_len;
    }
    WEFT_CHECK(plan.discard || from == ulpdu.data() + ulpdu.size());
    return sink_->End();
  }

  void End() {
    peer_.ended = true;
    peer_.Wake(std::chrono::microseconds(60));
  }

  const std::shared_ptr<Link> link_;
  Half& own_;
  Half& peer_;
  llp::UlpduSink* sink_ = nullptr;
  std::deque<Bytes> staged_;
  uint64_t appended_ = 0, consumed_ = 0;
  bool stopped_ = false;
};

}  // namespace

std::pair<std::unique_ptr<llp::Channel>, std::unique_ptr<llp::Channel>> MakeToyChannels(transport::Network& network, Random& random) {
  const auto link = std::make_shared<Link>(network, network, random.Next());
  return {std::make_unique<ToyChannel>(link, 0), std::make_unique<ToyChannel>(link, 1)};
}

void ToyWire::Connect(transport::Network& initiator_network, const std::shared_ptr<QueuePair>& initiator,
                      transport::Network& responder_network, const std::shared_ptr<QueuePair>& responder, bool breaks, Random& random) {
  const auto link = std::make_shared<Link>(initiator_network, responder_network, random.Next());
  link->most_under_way = random.Between(1, 40);
  link->max_ulpdu = random.Between(128, random.Chance(0.5) ? 300 : 65535);
  if (breaks) link->until_break = random.Between(0, 60);
  const bool reliable = initiator->delivery() == rdmap::Delivery::kReliable && random.Chance(0.6);
  constexpr llp::Rtr kRtrs[] = {llp::Rtr::kNone, llp::Rtr::kSend, llp::Rtr::kWrite, llp::Rtr::kRead};
  const ConnectionTerms common{
      .outcome = {.ird = static_cast<uint16_t>(random.Between(1, 8)), .ord = 0, .rtr = kRtrs[random.Between(0, 3)]},
      .delivery = reliable ? rdmap::Delivery::kReliable : rdmap::Delivery::kPlain};
  for (const bool first : {true, false}) {
    EstablishOptions options{.terms = common};
    options.terms.initiator = first;
    options.terms.outcome.ord = common.outcome.ird;
    const auto& queue_pair = first ? initiator : responder;
    WEFT_CHECK(queue_pair->Establish(std::make_unique<ToyChannel>(link, first ? 0 : 1), options) == 0);
  }
}

}  // namespace weft::sim
