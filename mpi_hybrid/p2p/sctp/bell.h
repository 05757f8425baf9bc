#ifndef MPI_HYBRID_P2P_SCTP_BELL_H_
#define MPI_HYBRID_P2P_SCTP_BELL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "transport/network.h"
#include "transport/sctp/sctp.h"

namespace weft::mpi {

// Tells threads that wait in MPI of events from the network's thread: something happened to an association, or a peer
// connected. It has a list of event numbers, and a descriptor that is readable while the list is not empty.
// Thread-safe; it takes no lock of the library.
class Bell {
 public:
  Bell();
  int fd() const { return event_.get(); }  // an eventfd; -1: no descriptor was available

  void Ring(uint64_t what);
  bool rang() const { return rang_.load(std::memory_order_acquire); }
  // The event numbers since the last call; some may occur more than once.
  std::vector<uint64_t> Take();

 private:
  const Descriptor event_;
  std::atomic<bool> rang_{false};
  std::mutex mutex_;
  std::vector<uint64_t> what_;
};

// Rings for one association, which may be destroyed at any time.
class AssociationBell final : public transport::ReadyHandler {
 public:
  AssociationBell(std::shared_ptr<Bell> bell, uint64_t number, transport::sctp::Association& association)
      : bell_(std::move(bell)), number_(number), association_(&association) {}
  // Rings once; then it ignores received data until SetReading(true).
  void OnReady(transport::Interest ready) override;
  // Call it before the association is destroyed.
  void Forget();

 private:
  const std::shared_ptr<Bell> bell_;
  const uint64_t number_;
  std::mutex mutex_;
  transport::sctp::Association* association_;
};

// Accepts associations at once, on any thread, so that a process that computes refuses no peer. Rings 0.
class Porter final : public transport::ReadyHandler {
 public:
  static constexpr size_t kMost = 4096;  // waiting associations; more are refused

  Porter(std::shared_ptr<Bell> bell, std::unique_ptr<transport::sctp::Listener> listener)
      : bell_(std::move(bell)), listener_(std::move(listener)) {}
  void Watch(const std::shared_ptr<Porter>& self) { listener_->Watch(self); }
  void OnReady(transport::Interest) override;
  std::vector<std::unique_ptr<transport::sctp::Association>> Take();
  // Accepts no more associations and aborts the waiting ones.
  void Close();

 private:
  const std::shared_ptr<Bell> bell_;
  std::mutex mutex_;
  std::unique_ptr<transport::sctp::Listener> listener_;
  std::vector<std::unique_ptr<transport::sctp::Association>> waiting_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_SCTP_BELL_H_
