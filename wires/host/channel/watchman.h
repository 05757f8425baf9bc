#ifndef WIRES_HOST_CHANNEL_WATCHMAN_H_
#define WIRES_HOST_CHANNEL_WATCHMAN_H_

#include <atomic>
#include <memory>
#include <utility>

#include "llp/channel.h"
#include "transport/network.h"

namespace weft::host {

// Records that a descriptor became ready, for a thread that reads this flag before it looks at the descriptor; then
// passes the event on.
class News final : public transport::ReadyHandler {
 public:
  explicit News(std::shared_ptr<transport::ReadyHandler> handler) : handler_(std::move(handler)) {}
  void OnReady(transport::Interest ready) override {
    is_there_.store(true, std::memory_order_release);
    handler_->OnReady(ready);
  }
  void OnDriven(transport::Interest ready, bool spinning) override {
    is_there_.store(true, std::memory_order_release);
    handler_->OnDriven(ready, spinning);
  }
  bool is_there() const { return is_there_.load(std::memory_order_relaxed); }
  bool Take() { return is_there_.load(std::memory_order_relaxed) && is_there_.exchange(false, std::memory_order_acq_rel); }

 private:
  const std::shared_ptr<transport::ReadyHandler> handler_;
  std::atomic<bool> is_there_{false};  // a hint: the descriptor tells what is ready
};

// While a program examines a ring in a loop, the producer need not wake it. The watchman runs on the network's timers
// and checks whether the program still does so. If not, it wakes the channel's user, and the channel asks the producer
// for wake-ups.
//
// Lend() stores `lent_` and then `armed_`; OnTick() stores `armed_` and then `lent_`. The stores are sequentially
// consistent. Otherwise `lent_` could stay true and `armed_` false, and then there would be neither a watchman nor a
// wake-up.
class Watchman final : public std::enable_shared_from_this<Watchman> {
 public:
  Watchman(transport::Network& network, std::weak_ptr<llp::ChannelUser> user) : network_(network), user_(std::move(user)) {}

  // The program examines the ring, and will do so again at once. Requires the channel's lock.
  void Lend() {
    looks_.store(looks_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (!lent_.load(std::memory_order_relaxed)) [[unlikely]] {
      lent_.store(true, std::memory_order_seq_cst);
      if (!armed_.exchange(true, std::memory_order_seq_cst)) Arm(kFirstTick);
    }
  }
  void EndLend() { lent_.store(false, std::memory_order_relaxed); }
  bool lent() const { return lent_.load(std::memory_order_relaxed); }

 private:
  static constexpr transport::Duration kFirstTick = std::chrono::microseconds(250), kLongestTick = std::chrono::milliseconds(1);

  void Arm(transport::Duration after) {
    network_.RunAt(network_.Now() + after, [weak = weak_from_this(), after, before = looks_.load(std::memory_order_relaxed)] {
      if (const auto self = weak.lock()) self->OnTick(after, before);
    });
  }
  void OnTick(transport::Duration after, uint64_t before) {
    if (lent() && looks_.load(std::memory_order_relaxed) != before) return Arm(std::min(2 * after, kLongestTick));
    armed_.store(false, std::memory_order_seq_cst);
    lent_.store(false, std::memory_order_seq_cst);
    if (const auto user = user_.lock()) user->OnWake();
  }

  transport::Network& network_;
  const std::weak_ptr<llp::ChannelUser> user_;
  std::atomic<uint64_t> looks_{0};  // a hint for OnTick(), which runs again in a tick
  std::atomic<bool> lent_{false}, armed_{false};
};

}  // namespace weft::host

#endif  // WIRES_HOST_CHANNEL_WATCHMAN_H_
