#ifndef TRANSPORT_UDP_SOCKET_H_
#define TRANSPORT_UDP_SOCKET_H_

#include <atomic>
#include <memory>

#include "base/result.h"
#include "transport/datagram_socket.h"

namespace weft::transport {

// The kernel's UDP. An IPv6 wildcard accepts IPv4 too, unless only_v6; IPv4 addresses are reported as IPv4.
class UdpSocket final : public DatagramSocket {
 public:
  // Errors: EADDRINUSE, EADDRNOTAVAIL, EACCES, EAFNOSUPPORT (the host lacks the family), ENODEV (the group's interface)
  // ...
  static Result<std::unique_ptr<DatagramSocket>, int> Open(const SocketAddress& local, const DatagramOptions& options);
  ~UdpSocket() override;
  UdpSocket(const UdpSocket&) = delete;
  UdpSocket& operator=(const UdpSocket&) = delete;

  size_t Send(std::span<const OutgoingDatagram> datagrams, int* error) override;
  size_t Receive(std::span<IncomingDatagram> into) override;
  int TakeError() override;
  bool TakeRefusal(iovec room, RefusedDatagram* refused) override;
  bool MayHaveRefusal() const override { return may_have_refusal_.load(std::memory_order_relaxed); }
  SocketAddress LocalAddress() const override { return SocketAddress::Local(fd_); }
  int fd() const override { return fd_; }

 private:
  UdpSocket(int fd, int family) : fd_(fd), family_(family) {}
  size_t TrainAt(std::span<const OutgoingDatagram> datagrams) const;
  bool IsPending(int error, bool* again);
  int Prepare(const SocketAddress& local, const DatagramOptions& options);

  const int fd_;
  const int family_;
  std::atomic<bool> trains_{false};  // the kernel supports them
  bool refusals_ = false;
  std::atomic<bool> may_have_refusal_{false};
};

}  // namespace weft::transport

#endif  // TRANSPORT_UDP_SOCKET_H_
