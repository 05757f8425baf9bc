#ifndef MPI_HYBRID_P2P_LOOP_EVENT_SET_H_
#define MPI_HYBRID_P2P_LOOP_EVENT_SET_H_

#include <sys/epoll.h>

#include <cstdint>
#include <span>

#include "base/check.h"
#include "mpi_hybrid/p2p/loop/descriptor.h"

namespace weft::mpi {

// The epoll instance of a Device: what its descriptors are watched for. Level-triggered; an event's data is the
// descriptor.
class EventSet {
 public:
  // False and errno: there is no descriptor for it.
  bool Create() {
    epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
    return static_cast<bool>(epoll_);
  }
  void Add(int fd, uint32_t events) { WEFT_CHECK(Control(EPOLL_CTL_ADD, fd, events) == 0); }
  void Modify(int fd, uint32_t events) { WEFT_CHECK(Control(EPOLL_CTL_MOD, fd, events) == 0); }
  void Remove(int fd) { Control(EPOLL_CTL_DEL, fd, 0); }

  int Wait(std::span<epoll_event> events, int timeout_ms) const {
    return epoll_wait(epoll_.fd(), events.data(), static_cast<int>(events.size()), timeout_ms);
  }

 private:
  int Control(int operation, int fd, uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    return epoll_ctl(epoll_.fd(), operation, fd, &event);
  }

  Descriptor epoll_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_LOOP_EVENT_SET_H_
