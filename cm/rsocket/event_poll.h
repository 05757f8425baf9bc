#ifndef CM_RSOCKET_EVENT_POLL_H_
#define CM_RSOCKET_EVENT_POLL_H_

#include <poll.h>
#include <sys/epoll.h>

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "cm/rsocket/waiting.h"

namespace weft::rsocket {

// The object that repoll_create makes: the interest list of epoll(7), for rsockets and other descriptors. Events are
// level triggered, also with EPOLLET, as in rdma-core; EPOLLONESHOT works. Its number is a descriptor that only
// reserves the number; a program cannot wait for that descriptor. Thread safe.
class EventPoll {
 public:
  // Returns 0 and the number in `*fd`; or EMFILE, ENFILE, ENOMEM.
  static int Create(bool close_on_exec, int* fd);
  // nullptr: no EventPoll has that number.
  static std::shared_ptr<EventPoll> Find(int fd);
  // Frees the number; threads that wait there get EBADF. Returns false if no EventPoll has that number.
  static bool Close(int fd);

  // epoll_ctl(2): 0, EEXIST, ENOENT, EINVAL. A descriptor leaves the list when it is closed.
  int Control(int operation, int fd, const epoll_event* event);
  // Returns how many of `events` are filled (at most `count`), or a negative errno.
  int Wait(epoll_event* events, int count, const Deadline& deadline);

 private:
  struct Interest {
    uint32_t events;  // 0: already reported, with EPOLLONESHOT
    epoll_data_t data;
  };

  int Report(const pollfd* fds, size_t size, epoll_event* events, int count);

  std::mutex mutex_;  // guards the members below
  std::map<int, Interest> interests_;
  std::list<int> waiting_;  // an eventfd for each waiting thread: readable when the list has changed
  // The descriptor behind which the next report begins, so that none is starved if `count` is small.
  int turn_ = 0;
  bool closed_ = false;
};

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_EVENT_POLL_H_
