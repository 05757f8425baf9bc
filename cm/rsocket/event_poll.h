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

// What repoll_create makes: the interest list of epoll(7), of rsockets and other descriptors. Events are level triggered, also with EPOLLET, as in
// rdma-core; EPOLLONESHOT holds. Its number is a descriptor that stands for it and that nothing can be waited for at. Thread safe.
class EventPoll {
 public:
  // 0 and the number in `*fd`; EMFILE, ENFILE, ENOMEM.
  static int Create(bool close_on_exec, int* fd);
  // nullptr: no EventPoll has that number.
  static std::shared_ptr<EventPoll> Find(int fd);
  // The number is free, and threads that wait there are told (EBADF). False: no EventPoll had it.
  static bool Close(int fd);

  // epoll_ctl(2): 0, EEXIST, ENOENT, EINVAL. A descriptor that is closed leaves the list.
  int Control(int operation, int fd, const epoll_event* event);
  // How many of `events` are filled (at most `count`); negative: an errno.
  int Wait(epoll_event* events, int count, const Deadline& deadline);

 private:
  struct Interest {
    uint32_t events;  // 0: reported, with EPOLLONESHOT
    epoll_data_t data;
  };

  int Report(const pollfd* fds, size_t size, epoll_event* events, int count);

  std::mutex mutex_;  // guards what follows
  std::map<int, Interest> interests_;
  std::list<int> waiting_;  // an eventfd for each thread that waits: readable when the list has changed
  int turn_ = 0;            // the descriptor behind which the next report begins, so that none is starved where `count` is small
  bool closed_ = false;
};

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_EVENT_POLL_H_
