#include "sim/cm/queue_pair_ports.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "base/file_limit.h"
#include "base/log.h"
#include "sim/cm/endpoint.h"
#include "sim/device/device.h"
#include "sim/device/limits.h"
#include "sim/queue_pair/queue_pair.h"
#include "transport/local_address.h"

namespace weft::sim {
namespace {

constexpr uint32_t kPerPort = 256;
constexpr int kBacklog = 1 << 16;         // requests that wait for their queue pair
constexpr size_t kMostWaiting = 4096;     // ... of which the oldest is refused then
constexpr uint32_t kMostSequence = 0xffffff;
constexpr std::chrono::milliseconds kFirstRetry{5}, kLongestRetry{1000};
// How long the end with the larger number waits in RTS for the request of the other.
constexpr std::chrono::milliseconds kPatience{10};
// How long a request waits for its queue pair; who dials tries again by then.
constexpr std::chrono::seconds kWaitLimit{60};

//  0                   1                   2                   3
//  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |                       Magic ("WeftQPCN")                      |
// |                                                               |
// |                      Destination queue pair                   |
// |                        Source queue pair                      |
// |    Service    |     Source's receive sequence number (rq_psn)  |
// |      Zero     |      Source's send sequence number (sq_psn)   |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// The private data of the request. Service: of the source (sim/cm/queue_pair_ports.h).
struct Wish {
  static constexpr size_t kLength = 24;
  static constexpr uint64_t kMagic = 0x576566745150434e;

  uint32_t to = 0, from = 0;
  Service service = Service::kReliable;  // of the source
  uint32_t receive_number = 0, send_number = 0;

  std::vector<uint8_t> Serialize() const {
    std::vector<uint8_t> bytes(kLength);
    ByteWriter writer(bytes);
    writer.U64(kMagic);
    writer.U32(to);
    writer.U32(from);
    writer.U32(static_cast<uint32_t>(service) << 24 | receive_number);
    writer.U32(send_number);
    return bytes;
  }
  static std::optional<Wish> Parse(ByteSpan bytes) {
    if (bytes.size() != kLength) return std::nullopt;
    ByteReader reader(bytes);
    if (reader.U64() != kMagic) return std::nullopt;
    Wish wish;
    wish.to = reader.U32();
    wish.from = reader.U32();
    const uint32_t service_and_number = reader.U32();
    wish.service = static_cast<Service>(service_and_number >> 24);
    wish.receive_number = service_and_number & kMostSequence;
    wish.send_number = reader.U32() & kMostSequence;
    return wish;
  }
};

bool IsOwn(const transport::SocketAddress& address) {
  if (address.is_loopback()) return true;
  const auto source = transport::SourceAddressFor({}, address);  // an own address is reached from itself
  return source.ok() && source->SameHost(address);
}

std::string HostOf(const transport::SocketAddress& address) {
  const std::string text = address.ToString();
  return text.substr(0, text.rfind(':'));
}

ConnectParameters ParametersOf(const PeerChoice& choice) { return {.ird = choice.ird, .ord = choice.ord}; }

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
  State(const Surroundings& its_surroundings, const Settings& its_settings, CmApi& its_cm)
      : around(its_surroundings), settings(its_settings), cm(its_cm) {}

  struct Port {
    std::vector<std::shared_ptr<CmListener>> listeners;  // one for each address, or one for all
    uint32_t used = 0;
    uint32_t next = 0;  // where to look first: numbers that were given back rest for a while
    std::array<bool, kPerPort> taken{};
  };
  struct Looking {
    std::weak_ptr<QueuePair> qp;
    PeerChoice choice;
    std::shared_ptr<Endpoint> endpoint;
    std::shared_ptr<Dialler> dial;  // nullptr: the peer opens the connection, or nobody does yet
    std::optional<uint32_t> send_number = {};  // sq_psn, once it is in RTS

    bool opens() const {  // the one of the two that opens the connection
      // Numbers of different hosts may be equal; then their addresses decide.
      const uint32_t own = number;
      return own != choice.number ? own < choice.number : choice.local.ToString() < choice.address.ToString();
    }
    uint32_t number = 0;  // its own
  };
  struct Waiting {
    Wish wish;
    std::shared_ptr<Endpoint> endpoint;
  };

  // Gives `endpoint`'s connection to `qp`.
  void Accept(const std::shared_ptr<QueuePair>& qp, const PeerChoice& choice, const std::shared_ptr<Endpoint>& endpoint);
  // Whether the request is of whom `looking` looks for, as far as its address and its number tell.
  static bool Fits(const Looking& looking, const Wish& wish, const transport::SocketAddress& from) {
    return looking.choice.number == wish.from && ServiceOfPeer(looking.choice.service) == wish.service &&
           (looking.choice.own_host ? IsOwn(from) : looking.choice.address.SameHost(from));
  }
  // ... and whether it knows what the two programs told one another. On InfiniBand the numbers of a direction in which nobody asks for
  // anything need not agree, so that those of one direction do.
  static bool Proven(const Looking& looking, const Wish& wish) {
    return wish.send_number == looking.choice.receive_number || (looking.send_number && wish.receive_number == *looking.send_number);
  }
  // Two ends that both dial: the request of the one that opens the connection is answered, the other's waits until it is given up.
  static bool Answers(const Looking& looking) { return looking.endpoint == nullptr || (looking.dial != nullptr && !looking.opens()); }
  void OnRequest(CmEvent event);
  using Listeners = std::vector<std::shared_ptr<CmListener>>;
  Result<Listeners, int> OpenPort();
  Result<Listeners, int> ListenAtDevices();
  void ListenAlsoAt(uint32_t number, transport::SocketAddress address);
  Result<std::shared_ptr<CmListener>, int> Listen(const transport::SocketAddress& at);
  // With mutex held: the newest request that waits for it and is proven, with those that it replaces in `stale`. It is looking's endpoint now.
  std::shared_ptr<Endpoint> TakeWaiting(uint32_t number, Looking& looking, std::vector<std::shared_ptr<Endpoint>>& stale);
  void StartDialling(uint32_t number);  // unless a connection came meanwhile
  void WarnOfNumbers(uint32_t number, const PeerChoice& choice, const transport::SocketAddress& from);

  const Surroundings around;
  const Settings& settings;
  CmApi& cm;
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
class QueuePairPorts::Dialler final : public CmObserver, public std::enable_shared_from_this<Dialler> {
 public:
  Dialler(const std::shared_ptr<State>& state, const std::shared_ptr<QueuePair>& qp, const PeerChoice& choice, uint32_t send_number)
      : state_(state), around_(state->around), qp_(qp), number_(qp->number()), choice_(choice) {
    choice_.address.set_port(static_cast<uint16_t>(choice.number >> 8));
    parameters_ = ParametersOf(choice);
    parameters_.private_data = Wish{choice.number, number_, choice.service, choice.receive_number, send_number}.Serialize();
  }

  void Start() {
    const auto state = state_.lock();
    const auto qp = qp_.lock();
    if (state == nullptr || qp == nullptr) return;
    auto endpoint = std::make_shared<EndpointImpl>(around_);
    {
      std::lock_guard lock(state->mutex);
      const auto at = state->looking.find(number_);
      if (at == state->looking.end() || at->second.dial.get() != this) return;
      at->second.endpoint = endpoint;
    }
    endpoint->SetObserver(shared_from_this());
    if (endpoint->ConnectFor(qp, choice_.local, choice_.address, parameters_, choice_.delivery, /*dialled=*/true) != 0) TryAgain();
  }

  void OnCmEvent(CmEvent event) override {
    switch (event.kind) {
      case CmEvent::Kind::kRejected:
      case CmEvent::Kind::kUnreachable:
      case CmEvent::Kind::kConnectError:
        if (event.error == ECONNREFUSED && event.private_data.empty() && choice_.address.is_loopback()) WarnOfLoopback();
        if (TraceEnabled()) Trace(Format("qp 0x%x: peer qp 0x%x is not there yet (%d)", number_, choice_.number, event.error));
        TryAgain();
        break;
      default:
        break;  // the queue pair knows
    }
  }

 private:
  // A queue pair's port listens before anybody can know its number: it is gone, or it never was here.
  void WarnOfLoopback() {
    if (std::exchange(warned_, true)) return;
    LogWarning(Format("qp 0x%x: its peer's GID is %s, which is this host, and no process here has qp 0x%x. Between hosts both ends have to use a "
                      "device of the network, and not weft_lo (weft devices lists them)",
                      number_, HostOf(choice_.address).c_str(), choice_.number));
  }

  void TryAgain() {
    around_.network.RunAt(around_.network.Now() + retry_after_, [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->Start();
    });
    retry_after_ = std::min<transport::Duration>(retry_after_ * 2, kLongestRetry);
  }

  const std::weak_ptr<State> state_;
  const Surroundings around_;
  const std::weak_ptr<QueuePair> qp_;
  const uint32_t number_;
  PeerChoice choice_;
  ConnectParameters parameters_;
  transport::Duration retry_after_ = kFirstRetry;
  bool warned_ = false;
};

QueuePairPorts::QueuePairPorts(const Surroundings& around, const Settings& settings, CmApi& cm)
    : state_(std::make_shared<State>(around, settings, cm)) {}

QueuePairPorts::~QueuePairPorts() {
  for (auto& [number, port] : state_->ports) {
    for (const auto& listener : port.listeners) listener->Close();
  }
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
  auto listeners = state_->OpenPort();
  if (!listeners.ok()) {
    LogWarning("cannot create a queue pair: no port to listen on: " + DescribeShortage(listeners.error()));
    return listeners.error();
  }
  const uint16_t number = listeners->front()->local_address().port();
  std::lock_guard lock(state_->mutex);
  State::Port& port = state_->ports[number];
  port.listeners = std::move(*listeners);
  port.taken[0] = true;
  port.used = port.next = 1;
  return uint32_t{number} << 8;
}

Result<std::shared_ptr<CmListener>, int> QueuePairPorts::State::Listen(const transport::SocketAddress& at) {
  return cm.Listen(at, kBacklog, /*only_v6=*/false, /*reuse_address=*/false, std::make_shared<Requests>(weak_from_this()));
}

// Where WEFT_DEVICES names devices, at their addresses only; else at all that there are and will be: a wildcard listener for both families, or
// for IPv4 where there is no IPv6.
Result<QueuePairPorts::State::Listeners, int> QueuePairPorts::State::OpenPort() {
  int error = EADDRNOTAVAIL;
  if (settings.devices.empty()) {
    for (const char* any : {"::", "0.0.0.0"}) {
      auto listening = Listen(*transport::SocketAddress::Parse(any, 0));
      if (listening.ok()) return Listeners{std::move(*listening)};
      error = listening.error();
    }
    return error;
  }
  constexpr int kMostTries = 64;
  for (int i = 0; i < kMostTries; ++i) {
    auto listeners = ListenAtDevices();
    if (listeners.ok()) return listeners;
    error = listeners.error();
    if (error != EADDRINUSE) break;
  }
  return error;
}

// The kernel chooses the port at the first address; at the others it must be free as well (EADDRINUSE).
Result<QueuePairPorts::State::Listeners, int> QueuePairPorts::State::ListenAtDevices() {
  Listeners listeners;
  int error = EADDRNOTAVAIL;
  for (const DeviceInfo& device : ListDevices()) {
    for (transport::SocketAddress address : device.addresses) {
      if (!listeners.empty()) address.set_port(listeners.front()->local_address().port());
      auto listening = Listen(address);
      if (listening.ok()) {
        listeners.push_back(std::move(*listening));
        continue;
      }
      error = listening.error();
      if (error == EADDRNOTAVAIL) continue;  // it went away, or is not usable yet
      for (const auto& open : listeners) open->Close();
      return error;
    }
  }
  if (listeners.empty()) return error;
  return listeners;
}

// An address that its device got after the port was opened.
void QueuePairPorts::State::ListenAlsoAt(uint32_t number, transport::SocketAddress address) {
  if (settings.devices.empty()) return;
  address.set_port(static_cast<uint16_t>(number >> 8));
  {
    std::lock_guard lock(mutex);
    const auto port = ports.find(address.port());
    if (port == ports.end()) return;
    for (const auto& listener : port->second.listeners) {
      if (listener->local_address().SameHost(address)) return;
    }
  }
  auto listening = Listen(address);
  if (!listening.ok()) return;  // another thread was first, or the port is somebody else's there
  std::lock_guard lock(mutex);
  if (const auto port = ports.find(address.port()); port != ports.end()) port->second.listeners.push_back(std::move(*listening));
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
  state_->ListenAlsoAt(number, choice.local);
  std::shared_ptr<Endpoint> found;
  std::vector<std::shared_ptr<Endpoint>> stale;
  {
    std::lock_guard lock(state_->mutex);
    State::Looking& looking = state_->looking[number];
    looking = {.qp = qp, .choice = choice, .number = number};
    found = state_->TakeWaiting(number, looking, stale);
  }
  for (const auto& endpoint : stale) endpoint->Close();
  if (found != nullptr) state_->Accept(qp, choice, found);
}

void QueuePairPorts::Dial(uint32_t number, uint32_t send_number) {
  std::shared_ptr<QueuePair> qp;
  PeerChoice choice;
  std::shared_ptr<Endpoint> found;
  std::vector<std::shared_ptr<Endpoint>> stale;
  bool opens;
  {
    std::lock_guard lock(state_->mutex);
    const auto at = state_->looking.find(number);
    if (at == state_->looking.end() || at->second.dial != nullptr) return;
    at->second.send_number = send_number & kMostSequence;
    if (at->second.endpoint != nullptr) return;
    found = state_->TakeWaiting(number, at->second, stale);
    qp = at->second.qp.lock();
    choice = at->second.choice;
    opens = at->second.opens();
  }
  for (const auto& endpoint : stale) endpoint->Close();
  if (found != nullptr) {
    if (qp != nullptr) state_->Accept(qp, choice, found);
  } else if (opens) {
    state_->StartDialling(number);
  } else {
    transport::Network& network = state_->around.network;
    network.RunAt(network.Now() + kPatience, [weak = std::weak_ptr(state_), number] {
      if (const auto state = weak.lock()) state->StartDialling(number);
    });
  }
}

void QueuePairPorts::State::StartDialling(uint32_t number) {
  std::shared_ptr<Dialler> dial;
  {
    std::lock_guard lock(mutex);
    const auto at = looking.find(number);
    if (at == looking.end() || at->second.endpoint != nullptr || at->second.dial != nullptr || !at->second.send_number) return;
    const auto qp = at->second.qp.lock();
    if (qp == nullptr) return;
    dial = at->second.dial = std::make_shared<Dialler>(shared_from_this(), qp, at->second.choice, *at->second.send_number);
  }
  dial->Start();
}

std::shared_ptr<Endpoint> QueuePairPorts::State::TakeWaiting(uint32_t number, Looking& looking,
                                                             std::vector<std::shared_ptr<Endpoint>>& stale) {
  std::shared_ptr<Endpoint> found;
  for (auto at = waiting.begin(); at != waiting.end();) {
    if (at->wish.to != number || !Fits(looking, at->wish, at->endpoint->remote_address()) || !Proven(looking, at->wish)) {
      ++at;
      continue;
    }
    if (found != nullptr) stale.push_back(std::move(found));  // of a life before
    found = std::move(at->endpoint);
    at = waiting.erase(at);
  }
  if (found != nullptr) looking.endpoint = found;
  return found;
}

void QueuePairPorts::ConnectToItself(QueuePair& qp, const PeerChoice& choice) {
  auto loop = state_->around.wire.OpenLoop(choice.local, {.queue_pair = qp.number(), .device = qp.device()});
  if (!loop.ok()) {
    LogWarning(Format("qp 0x%x cannot be connected to itself: %s", qp.number(), std::strerror(loop.error())));
    return;
  }
  EstablishOptions options;
  options.outcome.ird = options.outcome.ord = std::min<uint16_t>(choice.ird, kMaxReads);
  options.initiator = options.to_itself = options.dialled = true;
  options.delivery = choice.delivery;
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
  const transport::SocketAddress from = event.endpoint->remote_address();
  std::shared_ptr<QueuePair> qp;
  PeerChoice choice;
  std::shared_ptr<Endpoint> refused, stale, given_up;
  bool wrong_numbers = false;
  {
    std::lock_guard lock(mutex);
    const auto port = wish ? ports.find(static_cast<uint16_t>(wish->to >> 8)) : ports.end();
    const auto at = wish ? looking.find(wish->to) : looking.end();
    if (port == ports.end() || !port->second.taken[wish->to % kPerPort]) {
      refused = event.endpoint;
    } else if (at != looking.end() && Fits(at->second, *wish, from) && Proven(at->second, *wish) && Answers(at->second)) {
      qp = at->second.qp.lock();
      choice = at->second.choice;
      given_up = std::exchange(at->second.endpoint, event.endpoint);
      at->second.dial = nullptr;
    } else {
      wrong_numbers = at != looking.end() && at->second.send_number && Fits(at->second, *wish, from) && !Proven(at->second, *wish);
      if (wrong_numbers) choice = at->second.choice;
      if (wrong_numbers) refused = event.endpoint;
      // One request of each: an older one is from a life before.
      const auto same = [&](const Waiting& other) {
        return other.wish.to == wish->to && other.wish.from == wish->from && other.wish.receive_number == wish->receive_number &&
               other.wish.send_number == wish->send_number && other.endpoint->remote_address().SameHost(from);
      };
      auto old = std::find_if(waiting.begin(), waiting.end(), same);
      if (old == waiting.end() && !wrong_numbers && waiting.size() >= kMostWaiting) old = waiting.begin();
      if (old != waiting.end()) {
        stale = std::move(old->endpoint);
        waiting.erase(old);
      }
      if (!wrong_numbers) waiting.push_back({*wish, event.endpoint});
    }
  }
  if (stale != nullptr) stale->Close();
  if (given_up != nullptr) {
    given_up->SetObserver(nullptr);
    given_up->Close();
  }
  if (refused != nullptr) {
    if (wrong_numbers) {
      WarnOfNumbers(wish->to, choice, from);
    } else {
      LogWarning("refused " + from.ToString() + ": it wants a queue pair that does not exist (a wrong number?)");
    }
    refused->Reject({});
  } else if (qp != nullptr) {
    Accept(qp, choice, event.endpoint);
  } else {
    static_cast<EndpointImpl&>(*event.endpoint).LimitAnswer(kWaitLimit);
  }
}

void QueuePairPorts::State::WarnOfNumbers(uint32_t number, const PeerChoice& choice, const transport::SocketAddress& from) {
  LogWarning(Format("qp 0x%x: refused %s, which says that it is the peer qp 0x%x and knows other packet sequence numbers (sq_psn of each end has to "
                    "be rq_psn of the other)",
                    number, from.ToString().c_str(), choice.number));
}

void QueuePairPorts::State::Accept(const std::shared_ptr<QueuePair>& qp, const PeerChoice& choice,
                                   const std::shared_ptr<Endpoint>& endpoint) {
  if (static_cast<EndpointImpl&>(*endpoint).AcceptFor(qp, ParametersOf(choice), choice.delivery, /*dialled=*/true) == 0) return;
  // The peer left meanwhile. It comes again, or, where it is only there to receive, is come to.
  {
    std::lock_guard lock(mutex);
    const auto at = looking.find(qp->number());
    if (at != looking.end() && at->second.endpoint == endpoint) at->second.endpoint = nullptr;
  }
  StartDialling(qp->number());
}

}  // namespace weft::sim
