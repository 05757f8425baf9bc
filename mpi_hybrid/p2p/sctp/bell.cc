#include "mpi_hybrid/p2p/sctp/bell.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace weft::mpi {

Bell::Bell() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

void Bell::Ring(uint64_t what) {
  {
    const std::lock_guard lock(mutex_);
    what_.push_back(what);
    if (rang_.exchange(true, std::memory_order_release)) return;
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event_.get(), &one, sizeof(one));
}

std::vector<uint64_t> Bell::Take() {
  uint64_t times;
  [[maybe_unused]] const ssize_t got = read(event_.get(), &times, sizeof(times));
  const std::lock_guard lock(mutex_);
  rang_.store(false, std::memory_order_release);
  return std::exchange(what_, {});
}

void AssociationBell::OnReady(transport::Interest ready) {
  {
    const std::lock_guard lock(mutex_);
    if (association_ == nullptr) return;
    if (ready.read) association_->SetReading(false);
  }
  bell_->Ring(number_);
}

void AssociationBell::Forget() {
  const std::lock_guard lock(mutex_);
  association_ = nullptr;
}

void Porter::OnReady(transport::Interest) {
  bool any = false;
  {
    const std::lock_guard lock(mutex_);
    while (listener_ != nullptr) {
      auto accepted = listener_->Accept();
      if (!accepted.ok()) break;
      if (waiting_.size() >= kMost) continue;  // destroying it aborts it
      waiting_.push_back(std::move(accepted).value());
      any = true;
    }
  }
  if (any) bell_->Ring(0);
}

std::vector<std::unique_ptr<transport::sctp::Association>> Porter::Take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(waiting_, {});
}

void Porter::Close() {
  const std::lock_guard lock(mutex_);
  listener_.reset();
  waiting_.clear();
}

}  // namespace weft::mpi
