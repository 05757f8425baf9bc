#ifndef TRANSPORT_SCTP_KERNEL_READINESS_H_
#define TRANSPORT_SCTP_KERNEL_READINESS_H_

#include <memory>
#include <mutex>
#include <utility>

#include "transport/network.h"

namespace weft::transport::sctp {

// Connects the network's watch of a descriptor with the handler. The descriptor's owner and the network share it.
// Thread safe.
class Readiness final : public ReadyHandler {
 public:
  explicit Readiness(Network& network) : network_(network) {}

  // Starts to watch. ENOMEM or similar: no watch is available.
  static int Begin(const std::shared_ptr<Readiness>& self, int fd, std::shared_ptr<ReadyHandler> handler) {
    const std::lock_guard lock(self->mutex_);
    self->handler_ = std::move(handler);
    self->watch_ = self->network_.WatchDescriptor(fd, self);
    if (self->watch_ == 0) return ENOMEM;
    self->Apply();
    return 0;
  }
  // To be called before the descriptor is closed.
  void End() {
    std::shared_ptr<ReadyHandler> last;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    if (const WatchId watch = std::exchange(watch_, 0)) network_.Unwatch(watch);
    last = std::move(handler_);
  }

  void SetReading(bool reading) {
    const std::lock_guard lock(mutex_);
    wanted_.read = reading;
    Apply();
  }
  // OnReady() will report once that a message may be sent.
  void AwaitRoom() {
    const std::lock_guard lock(mutex_);
    wanted_.write = true;
    Apply();
  }
  WatchId watch() const {
    const std::lock_guard lock(mutex_);
    return watch_;
  }
  void Lend() {
    if (const WatchId id = watch()) network_.Lend(id);
  }

  void OnReady(Interest ready) override {
    std::shared_ptr<ReadyHandler> handler;
    Interest tell;
    {
      const std::lock_guard lock(mutex_);
      tell = {.read = ready.read && wanted_.read, .write = ready.write && wanted_.write};
      if (tell.write) {
        wanted_.write = false;
        Apply();
      }
      handler = handler_;
    }
    if (handler != nullptr && (tell.read || tell.write)) handler->OnReady(tell);
  }

 private:
  void Apply() {
    if (watch_ != 0) network_.SetInterest(watch_, wanted_);
  }

  Network& network_;
  mutable std::mutex mutex_;
  std::shared_ptr<ReadyHandler> handler_;
  WatchId watch_ = 0;
  Interest wanted_{.read = true, .write = false};
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_KERNEL_READINESS_H_
