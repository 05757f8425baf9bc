#ifndef MPI_HYBRID_P2P_HOST_DEATH_WATCH_H_
#define MPI_HYBRID_P2P_HOST_DEATH_WATCH_H_

#include <sys/epoll.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "mpi_hybrid/host/process.h"
#include "mpi_hybrid/p2p/loop/event_loop.h"

namespace weft::mpi::host {

// Lets an event loop find out that a process has died.
class DeathWatch final : EventLoop::Handler {
 public:
  void Begin(EventLoop& loop, std::shared_ptr<Process> process) {
    process_ = std::move(process);
    if (process_->descriptor() >= 0 && process_->pid() != getpid()) {
      registration_ = {loop, process_->descriptor(), EPOLLIN, *this, EventLoop::Urgency::kPatient};
    }
  }

  // The loop found it, or Asks did.
  bool is_dead() const { return dead_; }
  // Without a descriptor, only Asks finds it.
  bool has_descriptor() const { return process_->descriptor() >= 0; }
  bool Asks() { return dead_ = dead_ || process_->HasEnded(); }

 private:
  void OnReady(uint32_t) override {
    dead_ = true;
    registration_.End();
  }

  std::shared_ptr<Process> process_;
  EventLoop::Registration registration_;
  bool dead_ = false;
};

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_P2P_HOST_DEATH_WATCH_H_
