#ifndef PMI_LAUNCH_POLLER_H_
#define PMI_LAUNCH_POLLER_H_

#include <poll.h>

#include <functional>
#include <utility>
#include <vector>

namespace weft::pmi {

// One round of poll(2). The descriptors to watch are added again before each round.
class Poller {
 public:
  // `ready` is called with the events that occurred (including POLLHUP and POLLERR). A negative fd is not watched.
  void Watch(int fd, short events, std::function<void(short)> ready) {
    if (fd < 0) return;
    entries_.push_back({fd, events, 0});
    ready_.push_back(std::move(ready));
  }

  // Waits until a descriptor is ready or `milliseconds` have passed (negative: no limit). Calls the handlers of ready
  // descriptors in the order of Watch, then removes all entries. A handler may close descriptors of later ones; these
  // must check that before they use them.
  void Wait(int milliseconds) {
    if (poll(entries_.data(), entries_.size(), milliseconds) > 0) {
      for (size_t i = 0; i < entries_.size(); ++i) {
        if (entries_[i].revents != 0) ready_[i](entries_[i].revents);
      }
    }
    entries_.clear();
    ready_.clear();
  }

 private:
  std::vector<pollfd> entries_;
  std::vector<std::function<void(short)>> ready_;
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_POLLER_H_
