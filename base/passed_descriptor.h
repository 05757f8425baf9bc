#ifndef BASE_PASSED_DESCRIPTOR_H_
#define BASE_PASSED_DESCRIPTOR_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "base/descriptor.h"
#include "base/uncancelled.h"

namespace weft {

// Sends `bytes` and with them `fd` over a connected Unix socket (SCM_RIGHTS, unix(7)). The receiver gets a descriptor of its own of the same open file.
// Does not wait. Returns what sendmsg(2) does.
inline ssize_t SendWithDescriptor(int socket, std::span<const uint8_t> bytes, int fd) {
  iovec piece{const_cast<uint8_t*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return uncancelled::SendMessage(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

struct ReceivedWithDescriptor {
  ssize_t bytes = -1;    // what recvmsg(2) returned
  Descriptor fd{};       // closed in programs that this one executes
  size_t descriptors = 0;  // how many came, of which all but the last are closed again
  bool truncated = false;  // of more that came, some were lost, or what came did not fit into `into` (MSG_CTRUNC, MSG_TRUNC)
};

// Receives bytes and the descriptor that came with them, if any. `flags`: as for recvmsg, such as MSG_DONTWAIT. On a stream, bytes that were sent with
// different descriptors do not come together.
inline ReceivedWithDescriptor ReceiveWithDescriptor(int socket, std::span<uint8_t> into, int flags) {
  iovec piece{into.data(), into.size()};
  constexpr size_t kMostDescriptors = 4;
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ReceivedWithDescriptor received;
  received.bytes = uncancelled::ReceiveMessage(socket, &message, flags | MSG_CMSG_CLOEXEC);
  if (received.bytes < 0) return received;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      received.fd = Descriptor(fd);  // closes the one before
      ++received.descriptors;
    }
  }
  received.truncated = (message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0;
  return received;
}

}  // namespace weft

#endif  // BASE_PASSED_DESCRIPTOR_H_
