#ifndef PMI_LAUNCH_POLLER_H_
#define PMI_LAUNCH_POLLER_H_

#include <poll.h>

#include <functional>
#include <utility>
#include <vector>

namespace weft::pmi {

// One round of poll(2): what to watch is said anew before each.
class Poller {
 public:
  // `ready` is called with the events that came (POLLHUP and POLLERR among them). A negative fd is not watched.
  void Watch(int fd, short events, std::function<void(short)> ready) {
    if (fd < 0) return;
    entries_.push_back({fd, events, 0});
    ready_.push_back(std::move(ready));
  }

  // Until something is ready or `milliseconds` (negative: any time) are over; calls what is ready, in the order of Watch, and
  // forgets all. A call may close descriptors of later ones, which must look before they touch them.
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
