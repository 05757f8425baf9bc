#ifndef CM_RSPRELOAD_EPOLL_H_
#define CM_RSPRELOAD_EPOLL_H_

namespace weft::rspreload {

// The program closes `set`, which may be an epoll descriptor.
void ForgetEpollSet(int set);

}  // namespace weft::rspreload

#endif  // CM_RSPRELOAD_EPOLL_H_
