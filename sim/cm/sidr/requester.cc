#include <sys/random.h>

#include <cerrno>
#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

#include "base/log.h"
#include "sim/cm/sidr/sidr.h"
#include "sim/cm/sidr/message.h"

namespace weft::sim {
namespace {

using transport::SocketAddress;

constexpr std::chrono::milliseconds kFirstInterval{50};
constexpr std::chrono::milliseconds kLongestInterval{2000};
constexpr int kMostUnanswered = 20;  // requests without a sign of life: 30 s

uint64_t RandomTransaction() {
  uint64_t value = 0;
  [[maybe_unused]] const ssize_t got = getrandom(&value, sizeof value, 0);
  return value;
}

class Requester final : public Endpoint,
                        public transport::ReadyHandler,
                        public std::enable_shared_from_this<Requester> {
 public:
  explicit Requester(transport::Network& network) : network_(network) {}
  ~Requester() override { Stop(); }

  void SetObserver(std::shared_ptr<CmObserver> observer) override {
    std::lock_guard wait_for_delivery(delivery_mutex_);
    std::lock_guard lock(mutex_);
    observer_ = std::move(observer);
  }

  int Connect(const SocketAddress& local, const SocketAddress& remote, ibv_qp*, const ConnectParameters& parameters) override {
    std::lock_guard lock(mutex_);
    if (socket_ != nullptr || over_ || parameters.private_data.size() > SidrMessage::kMostPrivateData) return EINVAL;
    auto socket = network_.OpenDatagram(local, {.peer = remote});
    if (!socket.ok()) return socket.error();
    socket_ = std::move(socket.value());
    local_ = socket_->LocalAddress();
    remote_ = remote;
    give_up_on_refusal_ = network_.Now() + kRefusalLimit;
    request_.transaction = RandomTransaction();
    request_.private_data = parameters.private_data;
    watch_ = network_.Watch(*socket_, {.read = true}, shared_from_this());
    Ask();
    return 0;
  }

  int Accept(ibv_qp*, const ConnectParameters&) override { return EINVAL; }
  int Reject(const std::vector<uint8_t>&, CmEvent::Reason) override { return EINVAL; }
  int Disconnect() override { return ENOTCONN; }

  void Close() override {
    std::lock_guard lock(mutex_);
    Stop();
  }

  SocketAddress local_address() const override {
    std::lock_guard lock(mutex_);
    return local_;
  }
  SocketAddress remote_address() const override {
    std::lock_guard lock(mutex_);
    return remote_;
  }

  void OnReady(transport::Interest) override {
    uint8_t bytes[SidrMessage::kLongest + 1];
    for (;;) {
      std::unique_lock lock(mutex_);
      if (over_) return;
      if (socket_->TakeError() == ECONNREFUSED && network_.Now() >= give_up_on_refusal_) return Finish(lock, Failure(ECONNREFUSED));
      transport::IncomingDatagram datagram;
      datagram.room = {bytes, sizeof bytes};
      if (socket_->Receive({&datagram, 1}) == 0) return;
      auto message = datagram.cut_off ? std::nullopt : SidrMessage::Parse({bytes, datagram.length});
      if (!message || message->transaction != request_.transaction) continue;
      if (message->type == SidrMessage::Type::kPending) unanswered_ = 0;
      if (message->type == SidrMessage::Type::kReply) return Finish(lock, Answer(std::move(*message)));
    }
  }

 private:
  static CmEvent Failure(int error) {
    CmEvent event;
    event.kind = CmEvent::Kind::kUnreachable;
    event.error = error;
    if (error == ECONNREFUSED) event.sidr_status = SidrMessage::kUnsupported;  // what InfiniBand's CM answers where nobody listens
    return event;
  }

  static CmEvent Answer(SidrMessage reply) {
    CmEvent event;
    event.kind = reply.status == SidrMessage::kAccepted ? CmEvent::Kind::kEstablished : CmEvent::Kind::kUnreachable;
    event.sidr_status = reply.status;
    event.number = reply.number;
    event.qkey = reply.qkey;
    event.private_data = std::move(reply.private_data);
    return event;
  }

  // With the lock.
  void Ask() {
    const std::vector<uint8_t> bytes = request_.Serialize();
    const iovec piece{const_cast<uint8_t*>(bytes.data()), bytes.size()};
    const transport::OutgoingDatagram datagram{remote_, {}, 0, {&piece, 1}};
    int error = 0;
    socket_->Send({&datagram, 1}, &error);  // one that did not go is repeated like one that was lost
    ++unanswered_;
    timer_ = network_.RunAt(network_.Now() + interval_, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->OnTimer();
    });
    interval_ = std::min(2 * interval_, kLongestInterval);
  }

  void OnTimer() {
    std::unique_lock lock(mutex_);
    if (over_) return;
    if (unanswered_ >= kMostUnanswered) return Finish(lock, Failure(ETIMEDOUT));
    Ask();
  }

  void Finish(std::unique_lock<std::mutex>& lock, CmEvent event) {
    Stop();
    lock.unlock();
    std::lock_guard delivering(delivery_mutex_);
    lock.lock();
    const std::shared_ptr<CmObserver> observer = observer_;
    lock.unlock();
    if (observer != nullptr) observer->OnCmEvent(std::move(event));
  }

  // With the lock. The socket stays until the end of this object: a handler may still be at it.
  void Stop() {
    over_ = true;
    if (watch_ != 0) network_.Unwatch(std::exchange(watch_, 0));
    if (timer_ != 0) network_.Cancel(std::exchange(timer_, 0));
  }

  transport::Network& network_;
  std::recursive_mutex delivery_mutex_;  // before mutex_
  mutable std::mutex mutex_;             // guards what follows
  std::shared_ptr<CmObserver> observer_;
  std::unique_ptr<transport::DatagramSocket> socket_;
  SocketAddress local_, remote_;
  SidrMessage request_;
  transport::WatchId watch_ = 0;
  transport::TimerId timer_ = 0;
  transport::Time give_up_on_refusal_{};
  std::chrono::milliseconds interval_ = kFirstInterval;
  int unanswered_ = 0;
  bool over_ = false;
};

}  // namespace

std::shared_ptr<Endpoint> MakeSidrRequester(transport::Network& network) { return std::make_shared<Requester>(network); }

}  // namespace weft::sim
