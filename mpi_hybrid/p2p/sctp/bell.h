#ifndef MPI_HYBRID_P2P_SCTP_BELL_H_
#define MPI_HYBRID_P2P_SCTP_BELL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "mpi_hybrid/core/descriptor.h"
#include "transport/network.h"
#include "transport/sctp/sctp.h"

namespace weft::mpi {

// By which the network's thread tells those that wait for MPI that something happened to an association, or that a peer
// came: a list of what, and a descriptor that is readable from the first one on. Thread safe; it takes no lock of the
// library.
class Bell {
 public:
  Bell();
  int fd() const { return event_.fd(); }  // an eventfd; -1: there was no descriptor for it

  void Ring(uint64_t what);
  bool rang() const { return rang_.load(std::memory_order_acquire); }
  // What it rang for since the last call, some of it more than once.
  std::vector<uint64_t> Take();

 private:
  const Descriptor event_;
  std::atomic<bool> rang_{false};
  std::mutex mutex_;
  std::vector<uint64_t> what_;
};

// Rings for one association, which may go at any time.
class AssociationBell final : public transport::ReadyHandler {
 public:
  AssociationBell(std::shared_ptr<Bell> bell, uint64_t number, transport::sctp::Association& association)
      : bell_(std::move(bell)), number_(number), association_(&association) {}
  // Rings once, then it is silent about what can be received until SetReading(true).
  void OnReady(transport::Interest ready) override;
  // Before the association goes.
  void Forget();

 private:
  const std::shared_ptr<Bell> bell_;
  const uint64_t number_;
  std::mutex mutex_;
  transport::sctp::Association* association_;
};

// Accepts at once whoever comes, on whatever thread, so that a process that computes turns nobody away, and rings 0.
class Porter final : public transport::ReadyHandler {
 public:
  static constexpr size_t kMost = 4096;  // that wait; more are turned away

  Porter(std::shared_ptr<Bell> bell, std::unique_ptr<transport::sctp::Listener> listener)
      : bell_(std::move(bell)), listener_(std::move(listener)) {}
  void Watch(const std::shared_ptr<Porter>& self) { listener_->Watch(self); }
  void OnReady(transport::Interest) override;
  std::vector<std::unique_ptr<transport::sctp::Association>> Take();
  // Nobody is accepted any more; those that wait are aborted.
  void Close();

 private:
  const std::shared_ptr<Bell> bell_;
  std::mutex mutex_;
  std::unique_ptr<transport::sctp::Listener> listener_;
  std::vector<std::unique_ptr<transport::sctp::Association>> waiting_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_SCTP_BELL_H_
