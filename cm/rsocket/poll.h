#ifndef CM_RSOCKET_POLL_H_
#define CM_RSOCKET_POLL_H_

#include <poll.h>

#include "cm/rsocket/waiting.h"

namespace weft::rsocket {

// poll(2) for rsockets and other descriptors together. Returns the number of ready ones, or a negative errno.
int PollAll(pollfd* fds, nfds_t count, const Deadline& deadline);

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_POLL_H_
