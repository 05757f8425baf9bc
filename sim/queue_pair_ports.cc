#include "sim/queue_pair_ports.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "base/log.h"
#include "sim/device.h"
#include "sim/endpoint.h"
#include "sim/queue_pair.h"
#include "sim/rnic.h"
#include "transport/local_address.h"

namespace weft::sim {
namespace {

constexpr uint32_t kPerPort = 256;
constexpr int kBacklog = 1 << 16;         // requests that wait for their queue pair
constexpr size_t kMostWaiting = 4096;     // ... of which the oldest is refused then
constexpr std::chrono::milliseconds kFirstRetry{5}, kLongestRetry{1000};

//  0                   1                   2                   3
//  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |                       Magic ("WeftQPCN")                      |
// |                                                               |
// |                      Destination queue pair                   |
// |                        Source queue pair                      |
// |    Service    |                      Zero                     |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// The private data of the MPA Request. Service: of the source (sim/queue_pair_ports.h).
struct Wish {
  static constexpr size_t kLength = 20;
  static constexpr uint64_t kMagic = 0x576566745150434e;

  uint32_t to = 0, from = 0;
  Service service = Service::kReliable;  // of the source

  std::vector<uint8_t> Serialize() const {
    std::vector<uint8_t> bytes(kLength);
    ByteWriter writer(bytes);
    writer.U64(kMagic);
    writer.U32(to);
    writer.U32(from);
    writer.U32(static_cast<uint32_t>(service) << 24);
    return bytes;
  }
  static std::optional<Wish> Parse(ByteSpan bytes) {
    if (bytes.size() != kLength) return std::nullopt;
    ByteReader reader(bytes);
    if (reader.U64() != kMagic) return std::nullopt;
    Wish wish;
    wish.to = reader.U32();
    wish.from = reader.U32();
    wish.service = static_cast<Service>(reader.U32() >> 24);
    return wish;
  }
};

bool IsOwn(const transport::SocketAddress& address) {
  if (address.is_loopback()) return true;
  const auto source = transport::SourceAddressFor({}, address);  // an own address is reached from itself
  return source.ok() && source->SameHost(address);
}

Service ServiceOfPeer(Service ours) {
  switch (ours) {
    case Service::kXrcSend:
      return Service::kXrcReceive;
    case Service::kXrcReceive:
      return Service::kXrcSend;
    default:
      return ours;
  }
}

}  // namespace

struct QueuePairPorts::State : std::enable_shared_from_this<State> {
  explicit State(Rnic& its_rnic) : rnic(its_rnic) {}

  struct Port {
    std::shared_ptr<CmListener> listener;
    uint32_t used = 0;
    uint32_t next = 0;  // where to look first: numbers that were given back rest for a while
    std::array<bool, kPerPort> taken{};
  };
  struct Looking {
    std::weak_ptr<QueuePair> qp;
    PeerChoice choice;
    std::shared_ptr<Endpoint> endpoint;
    std::shared_ptr<Dial> dial;  // nullptr: the peer opens the connection
  };
  struct Waiting {
    Wish wish;
    std::shared_ptr<Endpoint> endpoint;
  };

  // Gives `endpoint`'s connection to `qp`.
  void Accept(const std::shared_ptr<QueuePair>& qp, const PeerChoice& choice, const std::shared_ptr<Endpoint>& endpoint);
  static bool Fits(const Looking& looking, const Wish& wish, const transport::SocketAddress& from) {
    return looking.dial == nullptr && looking.choice.number == wish.from && ServiceOfPeer(looking.choice.service) == wish.service &&
           (looking.choice.own_host ? IsOwn(from) : looking.choice.address.SameHost(from));
  }
  void OnRequest(CmEvent event);

  Rnic& rnic;
  std::mutex mutex;  // guards everything below; nothing is called with it held
  std::map<uint16_t, Port> ports;
  std::unordered_map<uint32_t, Looking> looking;
  std::deque<Waiting> waiting;
};

// What the listeners tell.
class QueuePairPorts::Requests final : public CmObserver {
 public:
  explicit Requests(std::weak_ptr<State> state) : state_(std::move(state)) {}
  void OnCmEvent(CmEvent event) override {
    const auto state = state_.lock();
    if (state != nullptr && event.kind == CmEvent::Kind::kConnectRequest) state->OnRequest(std::move(event));
  }

 private:
  const std::weak_ptr<State> state_;
};

// One queue pair's attempts to reach its peer.
class QueuePairPorts::Dial final : public CmObserver, public std::enable_shared_from_this<Dial> {
 public:
  Dial(std::shared_ptr<State> state, std::shared_ptr<QueuePair> qp, const PeerChoice& choice)
      : state_(state), rnic_(state->rnic), qp_(qp), number_(qp->number()), choice_(choice) {
    choice_.address.set_port(static_cast<uint16_t>(choice.number >> 8));
    choice_.parameters.private_data = Wish{choice.number, number_, choice.service}.Serialize();
  }

  void Start() {
    const auto state = state_.lock();
    const auto qp = qp_.lock();
    if (state == nullptr || qp == nullptr) return;
    auto endpoint = std::make_shared<EndpointImpl>(rnic_);
    {
      std::lock_guard lock(state->mutex);
      const auto at = state->looking.find(number_);
      if (at == state->looking.end() || at->second.dial.get() != this) return;
      at->second.endpoint = endpoint;
    }
    endpoint->SetObserver(shared_from_this());
    if (endpoint->ConnectFor(qp, choice_.local, choice_.address, choice_.parameters, choice_.delivery, /*dialled=*/true) != 0) TryAgain();
  }

  void OnCmEvent(CmEvent event) override {
    switch (event.kind) {
      case CmEvent::Kind::kRejected:
      case CmEvent::Kind::kUnreachable:
      case CmEvent::Kind::kConnectError:
        if (TraceEnabled()) Trace(Format("qp 0x%x: peer qp 0x%x is not there yet (%d)", number_, choice_.number, event.error));
        TryAgain();
        break;
      default:
        break;  // the queue pair knows
    }
  }

 private:
  void TryAgain() {
    rnic_.network().RunAt(rnic_.network().Now() + retry_after_, [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->Start();
    });
    retry_after_ = std::min<transport::Duration>(retry_after_ * 2, kLongestRetry);
  }

  const std::weak_ptr<State> state_;
  Rnic& rnic_;
  const std::weak_ptr<QueuePair> qp_;
  const uint32_t number_;
  PeerChoice choice_;
  transport::Duration retry_after_ = kFirstRetry;
};

QueuePairPorts::QueuePairPorts(Rnic& rnic) : state_(std::make_shared<State>(rnic)) {}

QueuePairPorts::~QueuePairPorts() {
  for (auto& [number, port] : state_->ports) port.listener->Close();
  for (auto& waiting : state_->waiting) waiting.endpoint->Close();
}

Result<uint32_t, int> QueuePairPorts::Allocate() {
  {
    std::lock_guard lock(state_->mutex);
    for (auto& [number, port] : state_->ports) {
      if (port.used == kPerPort) continue;
      while (port.taken[port.next % kPerPort]) ++port.next;
      const uint32_t index = port.next++ % kPerPort;
      port.taken[index] = true;
      ++port.used;
      return uint32_t{number} << 8 | index;
    }
  }
  // A wildcard listener for both families, or for IPv4 where there is no IPv6.
  int error = 0;
  for (const char* any : {"::", "0.0.0.0"}) {
    auto listening = state_->rnic.cm().Listen(*transport::SocketAddress::Parse(any, 0), kBacklog, /*only_v6=*/false,
                                              /*reuse_address=*/false, std::make_shared<Requests>(state_));
    if (!listening.ok()) {
      error = listening.error();
      continue;
    }
    const uint16_t number = (*listening)->local_address().port();
    std::lock_guard lock(state_->mutex);
    State::Port& port = state_->ports[number];
    port.listener = std::move(*listening);
    port.taken[0] = true;
    port.used = port.next = 1;
    return uint32_t{number} << 8;
  }
  return error;
}

void QueuePairPorts::Release(uint32_t number) {
  Forget(number);
  std::lock_guard lock(state_->mutex);
  const auto at = state_->ports.find(static_cast<uint16_t>(number >> 8));
  if (at == state_->ports.end()) return;
  at->second.taken[number % kPerPort] = false;
  --at->second.used;
}

void QueuePairPorts::Connect(std::shared_ptr<QueuePair> qp, PeerChoice choice) {
  const uint32_t number = qp->number();
  if (number == choice.number && IsOwn(choice.address)) return ConnectToItself(*qp, choice);
  // Numbers of different hosts may be equal; then their addresses decide.
  const bool opens = number != choice.number ? number < choice.number : choice.local.ToString() < choice.address.ToString();
  std::shared_ptr<Dial> dial = opens ? std::make_shared<Dial>(state_, qp, choice) : nullptr;
  std::shared_ptr<Endpoint> found;
  std::vector<std::shared_ptr<Endpoint>> stale;
  {
    std::lock_guard lock(state_->mutex);
    State::Looking& looking = state_->looking[number];
    looking = {.qp = qp, .choice = choice, .endpoint = nullptr, .dial = dial};
    // The newest request that fits; older ones of the same peer are from a life before.
    for (auto at = state_->waiting.begin(); at != state_->waiting.end();) {
      if (at->wish.to != number || !State::Fits(looking, at->wish, at->endpoint->remote_address())) {
        ++at;
        continue;
      }
      if (found != nullptr) stale.push_back(std::move(found));
      found = std::move(at->endpoint);
      at = state_->waiting.erase(at);
    }
    looking.endpoint = found;
  }
  for (const auto& endpoint : stale) endpoint->Close();
  if (dial != nullptr) dial->Start();
  if (found != nullptr) state_->Accept(qp, choice, found);
}

void QueuePairPorts::ConnectToItself(QueuePair& qp, const PeerChoice& choice) {
  const Settings& settings = state_->rnic.settings();
  EstablishOptions options;
  options.outcome.crc = settings.crc == CrcPolicy::kOn;
  options.outcome.send_markers = options.outcome.receive_markers = settings.markers;
  options.outcome.ird = options.outcome.ord = std::min<uint16_t>(choice.parameters.ird, kMaxReads);
  options.initiator = options.to_itself = options.dialled = true;
  options.max_ulpdu = kLargestUlpdu;
  options.delivery = choice.delivery;
  auto loop = state_->rnic.network().OpenLoop(choice.local);
  if (!loop.ok()) {
    LogWarning(Format("qp 0x%x cannot be connected to itself: %s", qp.number(), std::strerror(loop.error())));
    return;
  }
  qp.Establish(std::move(*loop), std::move(options));
}

void QueuePairPorts::Forget(uint32_t number) {
  State::Looking looking;
  {
    std::lock_guard lock(state_->mutex);
    const auto at = state_->looking.find(number);
    if (at == state_->looking.end()) return;
    looking = std::move(at->second);
    state_->looking.erase(at);
  }
  if (looking.endpoint != nullptr) {
    looking.endpoint->SetObserver(nullptr);
    looking.endpoint->Close();
  }
}

void QueuePairPorts::State::OnRequest(CmEvent event) {
  const std::optional<Wish> wish = Wish::Parse(event.private_data);
  std::shared_ptr<QueuePair> qp;
  PeerChoice choice;
  std::shared_ptr<Endpoint> refused, stale;
  {
    std::lock_guard lock(mutex);
    const auto port = wish ? ports.find(static_cast<uint16_t>(wish->to >> 8)) : ports.end();
    if (port == ports.end() || !port->second.taken[wish->to % kPerPort]) {
      refused = event.endpoint;
    } else if (const auto at = looking.find(wish->to);
               at != looking.end() && Fits(at->second, *wish, event.endpoint->remote_address()) && at->second.endpoint == nullptr) {
      qp = at->second.qp.lock();
      choice = at->second.choice;
      at->second.endpoint = event.endpoint;
    } else {
      // One request for each pair: an older one is from a life before.
      const auto same = [&](const Waiting& other) { return other.wish.to == wish->to && other.wish.from == wish->from; };
      auto old = std::find_if(waiting.begin(), waiting.end(), same);
      if (old == waiting.end() && waiting.size() >= kMostWaiting) old = waiting.begin();
      if (old != waiting.end()) {
        stale = std::move(old->endpoint);
        waiting.erase(old);
      }
      waiting.push_back({*wish, event.endpoint});
    }
  }
  if (stale != nullptr) stale->Close();
  if (refused != nullptr) {
    LogWarning("refused " + refused->remote_address().ToString() + ": it wants a queue pair that does not exist (a wrong number?)");
    refused->Reject({});
  }
  if (qp != nullptr) Accept(qp, choice, event.endpoint);
}

void QueuePairPorts::State::Accept(const std::shared_ptr<QueuePair>& qp, const PeerChoice& choice,
                                   const std::shared_ptr<Endpoint>& endpoint) {
  static_cast<EndpointImpl&>(*endpoint).AcceptFor(qp, choice.parameters, choice.delivery, /*dialled=*/true);
}

}  // namespace weft::sim
