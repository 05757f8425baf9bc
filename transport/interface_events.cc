#include "transport/interface_events.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace weft::transport {
namespace {

bool IsNews(const nlmsghdr& message) {
  switch (message.nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
    case RTM_NEWADDR:
    case RTM_DELADDR:
      return true;
    default:
      return false;
  }
}

}  // namespace

Result<std::unique_ptr<InterfaceEvents>, int> InterfaceEvents::Open() {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
  if (fd < 0) return errno;
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    close(fd);
    return error;
  }
  return std::unique_ptr<InterfaceEvents>(new InterfaceEvents(fd));
}

InterfaceEvents::~InterfaceEvents() { close(fd_); }

bool InterfaceEvents::Drain() {
  bool news = false;
  alignas(nlmsghdr) char buffer[16384];
  for (;;) {
    sockaddr_nl from = {};
    socklen_t from_length = sizeof from;
    const ssize_t length = recvfrom(fd_, buffer, sizeof buffer, 0, reinterpret_cast<sockaddr*>(&from), &from_length);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0 && errno == ENOBUFS) {  // the kernel dropped some
      news = true;
      continue;
    }
    if (length <= 0) return news;
    if (from.nl_pid != 0) continue;  // not the kernel
    int left = static_cast<int>(length);
    for (auto* message = reinterpret_cast<nlmsghdr*>(buffer); NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
      news |= IsNews(*message);
    }
  }
}

}  // namespace weft::transport
