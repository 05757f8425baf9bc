#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "wires/sctp/locator/locator.h"
#include "wires/sctp/locator/message.h"

namespace weft::sctp {
namespace {

constexpr std::chrono::milliseconds kFirstInterval{50};
constexpr std::chrono::milliseconds kLongestInterval{2000};

uint64_t RandomTransaction() {
  uint64_t value = 0;
  [[maybe_unused]] const ssize_t got = getrandom(&value, sizeof value, 0);
  return value;
}

}  // namespace

// The network keeps it, and does not keep the search alive by that.
class LocatorSearch::Relay final : public transport::ReadyHandler {
 public:
  explicit Relay(std::weak_ptr<LocatorSearch> search) : search_(std::move(search)) {}
  void OnReady(transport::Interest) override {
    if (const auto alive = search_.lock()) alive->OnReady();
  }

 private:
  const std::weak_ptr<LocatorSearch> search_;
};

LocatorSearch::LocatorSearch(transport::Network& network, std::unique_ptr<transport::DatagramSocket> socket,
                             const transport::SocketAddress& remote)
    : network_(network), socket_(std::move(socket)), remote_(remote), transaction_(RandomTransaction()), interval_(kFirstInterval) {}

LocatorSearch::~LocatorSearch() {
  if (watch_ != 0) network_.Unwatch(watch_);
  if (timer_ != 0) network_.Cancel(timer_);
}

Result<std::shared_ptr<LocatorSearch>, int> LocatorSearch::Begin(transport::Network& network, const transport::SocketAddress& local,
                                                                 const transport::SocketAddress& remote) {
  transport::SocketAddress from = local;
  from.set_port(0);
  auto socket = network.OpenDatagram(from, {.peer = remote});
  if (!socket.ok()) return socket.error();
  const std::shared_ptr<LocatorSearch> search(new LocatorSearch(network, std::move(*socket), remote));
  const std::lock_guard lock(search->mutex_);
  search->watch_ = network.Watch(*search->socket_, {.read = true}, std::make_shared<Relay>(search));
  search->Ask();
  return search;
}

Result<uint16_t, int> LocatorSearch::outcome() const {
  const std::lock_guard lock(mutex_);
  return outcome_;
}

void LocatorSearch::Wait(std::function<void()> done) {
  const std::lock_guard lock(mutex_);
  if (outcome_.ok() || outcome_.error() != EINPROGRESS) {
    network_.Post(std::move(done));
  } else {
    waiting_.push_back(std::move(done));
  }
}

void LocatorSearch::OnReady() {
  if (auto outcome = Look()) Finish(*outcome);
}

std::optional<Result<uint16_t, int>> LocatorSearch::Look() {
  if (socket_->TakeError() == ECONNREFUSED) return Result<uint16_t, int>(ECONNREFUSED);
  uint8_t bytes[LocatorMessage::kLength + 1];
  while (true) {
    transport::IncomingDatagram datagram;
    datagram.room = {bytes, sizeof bytes};
    if (socket_->Receive({&datagram, 1}) == 0) return std::nullopt;
    const auto message = LocatorMessage::Parse({bytes, datagram.length});
    if (message && message->type == LocatorMessage::Type::kAnswer && message->transaction == transaction_ &&
        message->sctp_port == remote_.port()) {
      return Result<uint16_t, int>(message->udp_port);
    }
  }
}

void LocatorSearch::Ask() {
  auto bytes = LocatorMessage{.transaction = transaction_, .sctp_port = remote_.port()}.Serialize();
  const iovec piece{bytes.data(), bytes.size()};
  const transport::OutgoingDatagram datagram{remote_, {}, 0, {&piece, 1}};
  int error = 0;
  socket_->Send({&datagram, 1}, &error);  // one that did not go is repeated like one that was lost
  timer_ = network_.RunAt(network_.Now() + interval_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->OnTimer();
  });
  interval_ = std::min(2 * interval_, kLongestInterval);
}

void LocatorSearch::OnTimer() {
  const std::lock_guard lock(mutex_);
  timer_ = 0;
  if (watch_ != 0) Ask();
}

void LocatorSearch::Finish(Result<uint16_t, int> outcome) {
  std::vector<std::function<void()>> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (watch_ == 0) return;
    network_.Unwatch(std::exchange(watch_, 0));
    if (timer_ != 0) network_.Cancel(std::exchange(timer_, 0));
    outcome_ = outcome;
    waiting.swap(waiting_);
  }
  for (const auto& done : waiting) done();
}

}  // namespace weft::sctp
