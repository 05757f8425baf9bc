#ifndef TRANSPORT_DATAGRAM_CAPTURE_H_
#define TRANSPORT_DATAGRAM_CAPTURE_H_

#include <memory>
#include <string>

#include "base/byte_reader.h"
#include "transport/datagram_socket.h"
#include "transport/pcap.h"

namespace weft::transport {

// Records the datagrams of a socket in a capture file, each once: a datagram from another socket of this process was
// recorded there. Passes all datagrams on unchanged.
class CapturingDatagramSocket final : public DatagramSocket {
 public:
  // Returns a comment on a datagram for readers of the capture; empty: none.
  using Describe = std::string (*)(ByteSpan datagram);

  // `file` outlives the socket.
  CapturingDatagramSocket(std::unique_ptr<DatagramSocket> socket, PcapFile* file, Describe describe);
  ~CapturingDatagramSocket() override;

  size_t Send(std::span<const OutgoingDatagram> datagrams, int* error) override;
  size_t Receive(std::span<IncomingDatagram> into) override;
  int TakeError() override { return socket_->TakeError(); }
  SocketAddress LocalAddress() const override { return socket_->LocalAddress(); }
  int fd() const override { return socket_->fd(); }

 private:
  void Show(const SocketAddress& from, const SocketAddress& to, std::span<const iovec> pieces);

  const std::unique_ptr<DatagramSocket> socket_;
  PcapFile* const file_;
  const Describe describe_;
  const uint16_t port_;
};

// WEFT_PCAP: wraps `socket`, or returns it unchanged if there is no capture.
std::unique_ptr<DatagramSocket> CaptureIfAsked(std::unique_ptr<DatagramSocket> socket, CapturingDatagramSocket::Describe describe);

}  // namespace weft::transport

#endif  // TRANSPORT_DATAGRAM_CAPTURE_H_
