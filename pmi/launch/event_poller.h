#ifndef PMI_LAUNCH_EVENT_POLLER_H_
#define PMI_LAUNCH_EVENT_POLLER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace weft::pmi {

// Waits for events of descriptors, for pipes and sockets. A descriptor stays watched until it is changed: a round costs
// as much as there are ready descriptors, not watched ones (epoll(7), level-triggered). If no descriptor is available
// for epoll, the first Watch() fails, and so do all later ones.
class EventPoller {
 public:
  using Handler = std::function<void(uint32_t events)>;

  EventPoller() = default;
  ~EventPoller();
  EventPoller(const EventPoller&) = delete;
  EventPoller& operator=(const EventPoller&) = delete;

  // `ready` is called with the events that occurred (including EPOLLHUP and EPOLLERR, even if not requested). A
  // negative fd is not watched. False and errno: no resources.
  bool Watch(int fd, uint32_t events, Handler ready);
  // Changes the events that a descriptor is watched for.
  void Change(int fd, uint32_t events);
  // Stops watching; call it before the descriptor is closed. No effect if it is not watched.
  void Forget(int fd);

  // Readable when a watched descriptor is ready: for a poller that watches this one. -1 before the first Watch().
  int fd() const { return epoll_; }

  // Waits until a descriptor is ready or `milliseconds` have passed (negative: no limit), and calls the handlers. A
  // handler may call Watch() and Forget().
  void Wait(int milliseconds);

 private:
  struct Entry {
    uint32_t events;
    Handler ready;
  };

  int epoll_ = -1;
  std::vector<std::shared_ptr<Entry>> entries_;  // by descriptor; shared with the running call
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_EVENT_POLLER_H_
