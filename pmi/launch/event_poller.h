#ifndef PMI_LAUNCH_EVENT_POLLER_H_
#define PMI_LAUNCH_EVENT_POLLER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace weft::pmi {

// What is watched stays watched until it is changed: a round costs what is ready, not what there is (epoll(7),
// level-triggered). For pipes and sockets. The first Watch() fails without a descriptor for it: then so do all.
class EventPoller {
 public:
  using Handler = std::function<void(uint32_t events)>;

  EventPoller() = default;
  ~EventPoller();
  EventPoller(const EventPoller&) = delete;
  EventPoller& operator=(const EventPoller&) = delete;

  // `ready` is called with the events that came (EPOLLHUP and EPOLLERR among them, wanted or not). A negative fd is not
  // watched. False and errno: no room for it.
  bool Watch(int fd, uint32_t events, Handler ready);
  // Changes what a descriptor is watched for.
  void Change(int fd, uint32_t events);
  // No more; before it is closed. Nothing for one that is not watched.
  void Forget(int fd);

  // Ready to be read when something is ready here: for a poller that watches this one. -1 before the first Watch().
  int fd() const { return epoll_; }

  // Until something is ready or `milliseconds` (negative: any time) are over; calls what is ready. A call may watch and
  // forget.
  void Wait(int milliseconds);

 private:
  struct Entry {
    uint32_t events;
    Handler ready;
  };

  int epoll_ = -1;
  std::vector<std::shared_ptr<Entry>> entries_;  // by descriptor; shared with the call under way
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_EVENT_POLLER_H_
