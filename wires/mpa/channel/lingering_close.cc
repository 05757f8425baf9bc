#include "wires/mpa/channel/lingering_close.h"

#include <array>
#include <mutex>
#include <utility>

namespace weft::mpa {
namespace {

using transport::IoResult;

class Lingerer final : public transport::ReadyHandler, public std::enable_shared_from_this<Lingerer> {
 public:
  Lingerer(transport::Network& network, std::unique_ptr<transport::ByteStream> socket, std::vector<uint8_t> last_words)
      : network_(network), socket_(std::move(socket)), rest_(std::move(last_words)) {}

  void Start() {
    std::lock_guard lock(mutex_);
    if (Advance()) return;
    watch_ = network_.Watch(*socket_, {.read = true, .write = !rest_.empty()}, shared_from_this());
    timer_ = network_.RunAt(network_.Now() + kLingerLimit, [self = shared_from_this()] { self->GiveUp(); });
  }

  void OnReady(transport::Interest) override {
    std::lock_guard lock(mutex_);
    if (socket_ == nullptr) return;
    if (Advance()) return;
    if (rest_.empty()) network_.SetInterest(watch_, {.read = true, .write = false});
  }

 private:
  void GiveUp() {
    std::lock_guard lock(mutex_);
    if (socket_ == nullptr) return;
    timer_ = 0;
    socket_->Abort();
    Finish();
  }

  // Returns true when the socket is closed.
  bool Advance() {
    while (!rest_.empty()) {
      const iovec piece{rest_.data() + sent_, rest_.size() - sent_};
      const IoResult result = socket_->Write({&piece, 1});
      if (result.kind == IoResult::Kind::kWouldBlock) break;
      if (result.kind != IoResult::Kind::kDone) return Finish();
      sent_ += result.bytes;
      if (sent_ == rest_.size()) rest_.clear();
    }
    if (rest_.empty() && !shut_) {
      shut_ = true;
      socket_->ShutdownWrite();
    }
    std::array<uint8_t, 4096> discarded;
    const iovec into{discarded.data(), discarded.size()};
    for (int reads = 0; reads < 64; ++reads) {
      const IoResult result = socket_->Read({&into, 1});
      if (result.kind == IoResult::Kind::kWouldBlock) return false;
      if (result.kind != IoResult::Kind::kDone) return Finish();
    }
    return false;
  }

  bool Finish() {
    if (watch_ != 0) network_.Unwatch(std::exchange(watch_, 0));
    if (timer_ != 0) network_.Cancel(std::exchange(timer_, 0));
    socket_.reset();
    return true;
  }

  transport::Network& network_;
  std::mutex mutex_;  // guards everything below
  std::unique_ptr<transport::ByteStream> socket_;
  std::vector<uint8_t> rest_;
  size_t sent_ = 0;
  bool shut_ = false;
  transport::WatchId watch_ = 0;
  transport::TimerId timer_ = 0;
};

}  // namespace

void CloseLingering(transport::Network& network, std::unique_ptr<transport::ByteStream> socket,
                    std::vector<uint8_t> last_words) {
  std::make_shared<Lingerer>(network, std::move(socket), std::move(last_words))->Start();
}

}  // namespace weft::mpa
