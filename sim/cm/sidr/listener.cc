#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "base/log.h"
#include "sim/cm/sidr/sidr.h"
#include "sim/cm/sidr/message.h"

namespace weft::sim {
namespace {

using transport::SocketAddress;

constexpr size_t kMostRemembered = 1024;            // answers, for requesters that did not get theirs, and requests that the program has
constexpr std::chrono::seconds kRememberedFor{60};  // a requester gives up before
constexpr int kDatagramsPerTurn = 64;

class Request;

// The socket of a listener and what is known of its requests. Outlives the listener while requests wait for the program.
class Service final : public transport::ReadyHandler, public std::enable_shared_from_this<Service> {
 public:
  Service(transport::Network& network, std::unique_ptr<transport::DatagramSocket> socket, int backlog,
          std::shared_ptr<CmObserver> observer)
      : network_(network),
        socket_(std::move(socket)),
        local_(socket_->LocalAddress()),
        backlog_(static_cast<size_t>(std::max(backlog, 1))),
        observer_(std::move(observer)) {}
  ~Service() override {
    if (watch_ != 0) network_.Unwatch(watch_);
  }

  void Start() {
    std::lock_guard lock(mutex_);
    watch_ = network_.Watch(*socket_, {.read = true}, shared_from_this());
  }
  const SocketAddress& local() const { return local_; }

  // No kConnectRequest after this returned. Requests that the program has are still answered.
  void CloseListener() {
    std::lock_guard wait_for_delivery(delivery_mutex_);
    std::lock_guard lock(mutex_);
    observer_.reset();
    StopIfIdle();
  }

  void OnReady(transport::Interest) override {
    for (int i = 0; i < kDatagramsPerTurn; ++i) {
      uint8_t bytes[SidrMessage::kLongest + 1];
      transport::IncomingDatagram datagram;
      datagram.room = {bytes, sizeof bytes};
      if (socket_->Receive({&datagram, 1}) == 0) return;
      auto message = datagram.cut_off ? std::nullopt : SidrMessage::Parse({bytes, datagram.length});
      if (!message || message->type != SidrMessage::Type::kRequest) continue;
      OnRequest(datagram, std::move(*message));
    }
  }

  // The program has the request: its place in the backlog is free again.
  void OnFetched(const SocketAddress& peer, uint64_t transaction) {
    std::lock_guard lock(mutex_);
    for (Known& known : known_) {
      if (known.peer == peer && known.transaction == transaction) known.fetched = true;
    }
  }

  void Answer(const SocketAddress& peer, const SocketAddress& local, const SidrMessage& reply) {
    std::lock_guard lock(mutex_);
    const std::vector<uint8_t> bytes = reply.Serialize();
    for (Known& known : known_) {
      if (known.peer == peer && known.transaction == reply.transaction && known.reply.empty()) {
        known.reply = bytes;
        known.until = network_.Now() + kRememberedFor;
        break;
      }
    }
    Send(peer, local, bytes);
    --open_;
    StopIfIdle();
  }

 private:
  struct Known {
    SocketAddress peer;
    uint64_t transaction;
    std::vector<uint8_t> reply;  // empty: the program has not answered
    transport::Time until{};     // once it did
    bool fetched = false;        // the program has it
  };

  void OnRequest(const transport::IncomingDatagram& datagram, SidrMessage message);

  // With the lock.
  void Send(const SocketAddress& peer, const SocketAddress& local, const std::vector<uint8_t>& bytes) {
    const iovec piece{const_cast<uint8_t*>(bytes.data()), bytes.size()};
    const transport::OutgoingDatagram datagram{peer, local, 0, {&piece, 1}};
    int error = 0;
    socket_->Send({&datagram, 1}, &error);  // lost: the requester asks again
  }
  void Forget() {
    const transport::Time now = network_.Now();
    std::erase_if(known_, [now](const Known& known) { return !known.reply.empty() && known.until < now; });
    // Of those that the program keeps without an answer the oldest are forgotten too: one that is repeated then comes as a new request.
    while (known_.size() > kMostRemembered) {
      auto oldest = std::find_if(known_.begin(), known_.end(), [](const Known& known) { return !known.reply.empty(); });
      if (oldest == known_.end()) oldest = std::find_if(known_.begin(), known_.end(), [](const Known& known) { return known.fetched; });
      if (oldest == known_.end()) return;
      known_.erase(oldest);
    }
  }
  // Those that count against the backlog.
  size_t Waiting() const {
    return static_cast<size_t>(
        std::count_if(known_.begin(), known_.end(), [](const Known& known) { return known.reply.empty() && !known.fetched; }));
  }
  void StopIfIdle() {
    if (observer_ != nullptr || open_ > 0) return;
    if (watch_ != 0) network_.Unwatch(std::exchange(watch_, 0));
  }

  transport::Network& network_;
  const std::unique_ptr<transport::DatagramSocket> socket_;
  const SocketAddress local_;
  const size_t backlog_;
  std::recursive_mutex delivery_mutex_;  // before mutex_
  std::mutex mutex_;                     // guards what follows
  transport::WatchId watch_ = 0;
  std::shared_ptr<CmObserver> observer_;
  std::deque<Known> known_;  // oldest first
  size_t open_ = 0;          // requests without an answer
};

// A request that waits for the program's answer.
class Request final : public Endpoint {
 public:
  Request(std::shared_ptr<Service> service, const SocketAddress& local, const SocketAddress& remote, uint64_t transaction)
      : service_(std::move(service)), local_(local), remote_(remote), transaction_(transaction) {}
  ~Request() override { Close(); }

  // Nothing happens to it; but it was fetched.
  void SetObserver(std::shared_ptr<CmObserver> observer) override {
    std::shared_ptr<Service> service;
    {
      std::lock_guard lock(mutex_);
      service = service_;
    }
    if (observer != nullptr && service != nullptr) service->OnFetched(remote_, transaction_);
  }
  int Connect(const SocketAddress&, const SocketAddress&, ibv_qp*, const ConnectParameters&) override { return EINVAL; }
  int Accept(ibv_qp*, const ConnectParameters& parameters) override {
    return Answer(SidrMessage::kAccepted, parameters.number, parameters.qkey, parameters.private_data);
  }
  int Reject(const std::vector<uint8_t>& private_data, CmEvent::Reason) override { return Answer(SidrMessage::kRejected, 0, 0, private_data); }
  int Disconnect() override { return ENOTCONN; }
  void Close() override { Answer(SidrMessage::kRejected, 0, 0, {}); }
  SocketAddress local_address() const override { return local_; }
  SocketAddress remote_address() const override { return remote_; }

 private:
  int Answer(uint8_t status, uint32_t number, uint32_t qkey, const std::vector<uint8_t>& private_data) {
    if (private_data.size() > SidrMessage::kMostPrivateData) return EINVAL;
    std::shared_ptr<Service> service;
    {
      std::lock_guard lock(mutex_);
      service = std::move(service_);
    }
    if (service == nullptr) return EINVAL;  // answered
    SidrMessage reply;
    reply.type = SidrMessage::Type::kReply;
    reply.transaction = transaction_;
    reply.status = status;
    reply.number = number;
    reply.qkey = qkey;
    reply.private_data = private_data;
    service->Answer(remote_, local_, reply);
    return 0;
  }

  std::mutex mutex_;                  // guards service_
  std::shared_ptr<Service> service_;  // until there is an answer
  const SocketAddress local_, remote_;
  const uint64_t transaction_;
};

void Service::OnRequest(const transport::IncomingDatagram& datagram, SidrMessage message) {
  std::lock_guard delivering(delivery_mutex_);
  std::shared_ptr<CmObserver> observer;
  SocketAddress local = datagram.to.family() != 0 ? datagram.to : local_;
  local.set_port(local_.port());
  {
    std::lock_guard lock(mutex_);
    for (const Known& known : known_) {
      if (!(known.peer == datagram.from) || known.transaction != message.transaction) continue;
      if (!known.reply.empty()) return Send(datagram.from, datagram.to, known.reply);
      SidrMessage pending;
      pending.type = SidrMessage::Type::kPending;
      pending.transaction = message.transaction;
      return Send(datagram.from, datagram.to, pending.Serialize());
    }
    Forget();
    if (observer_ == nullptr || Waiting() >= backlog_) return;
    known_.push_back({datagram.from, message.transaction, {}, {}, false});
    ++open_;
    observer = observer_;
  }
  CmEvent event;
  event.kind = CmEvent::Kind::kConnectRequest;
  event.private_data = std::move(message.private_data);
  event.endpoint = std::make_shared<Request>(shared_from_this(), local, datagram.from, message.transaction);
  observer->OnCmEvent(std::move(event));
}

class Listener final : public CmListener {
 public:
  explicit Listener(std::shared_ptr<Service> service) : service_(std::move(service)) {}
  ~Listener() override { Close(); }
  SocketAddress local_address() const override { return service_->local(); }
  void Close() override { service_->CloseListener(); }

 private:
  const std::shared_ptr<Service> service_;
};

}  // namespace

Result<std::shared_ptr<CmListener>, int> ListenForSidr(transport::Network& network, const SocketAddress& local, int backlog,
                                                       bool only_v6, bool reuse_address, std::shared_ptr<CmObserver> observer) {
  auto socket = network.OpenDatagram(local, {.only_v6 = only_v6, .shared = reuse_address});
  if (!socket.ok()) return socket.error();
  auto service = std::make_shared<Service>(network, std::move(socket.value()), backlog, std::move(observer));
  service->Start();
  return std::shared_ptr<CmListener>(std::make_shared<Listener>(std::move(service)));
}

}  // namespace weft::sim
