#include "transport/datagram_capture.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "transport/ip_frame.h"

namespace weft::transport {
namespace {

// The UDP ports of this process whose datagrams are shown when they are sent.
struct OwnPorts {
  std::mutex mutex;
  std::multiset<uint16_t> ports;

  static OwnPorts& Process() {
    static OwnPorts* const known = new OwnPorts;
    return *known;
  }
  bool Has(uint16_t port) {
    std::lock_guard lock(mutex);
    return ports.contains(port);
  }
};

SocketAddress WithPort(SocketAddress address, uint16_t port) {
  address.set_port(port);
  return address;
}

// The beginning is enough for who describes it.
ByteSpan FirstOf(std::span<const iovec> pieces) {
  return pieces.empty() ? ByteSpan() : ByteSpan(static_cast<const uint8_t*>(pieces[0].iov_base), pieces[0].iov_len);
}

}  // namespace

CapturingDatagramSocket::CapturingDatagramSocket(std::unique_ptr<DatagramSocket> socket, PcapFile* file, Describe describe)
    : socket_(std::move(socket)), file_(file), describe_(describe), port_(socket_->LocalAddress().port()) {
  std::lock_guard lock(OwnPorts::Process().mutex);
  OwnPorts::Process().ports.insert(port_);
}

CapturingDatagramSocket::~CapturingDatagramSocket() {
  {
    std::lock_guard lock(OwnPorts::Process().mutex);
    auto& ports = OwnPorts::Process().ports;
    ports.erase(ports.find(port_));
  }
  file_->Flush();
}

void CapturingDatagramSocket::Show(const SocketAddress& from, const SocketAddress& to, std::span<const iovec> pieces) {
  if (!IpFrame::SameFamily(from, to)) return;  // where it came from is not known
  size_t length = 0;
  for (const iovec& piece : pieces) length += piece.iov_len;
  if (length > UdpPacket::kMostPayload) return;
  file_->Append(UdpPacket{from, to, pieces, length}, describe_ != nullptr ? describe_(FirstOf(pieces)) : "");
}

size_t CapturingDatagramSocket::Send(std::span<const OutgoingDatagram> datagrams, int* error) {
  const size_t sent = socket_->Send(datagrams, error);
  for (const OutgoingDatagram& datagram : datagrams.first(sent)) {
    const SocketAddress& from = datagram.from.family() != 0 ? datagram.from : socket_->LocalAddress();
    Show(WithPort(from, port_), datagram.to, datagram.pieces);
  }
  return sent;
}

size_t CapturingDatagramSocket::Receive(std::span<IncomingDatagram> into) {
  const size_t count = socket_->Receive(into);
  for (const IncomingDatagram& datagram : into.first(count)) {
    const SocketAddress& to = datagram.to.family() != 0 ? datagram.to : socket_->LocalAddress();
    // Of this host, and of a port that is ours.
    const bool same_host = WithPort(datagram.from, 0) == WithPort(to, 0);
    if (same_host && OwnPorts::Process().Has(datagram.from.port())) continue;
    const size_t each = datagram.each != 0 ? datagram.each : std::max<size_t>(datagram.length, 1);
    for (size_t at = 0; at == 0 || at < datagram.length; at += each) {
      const iovec piece{static_cast<uint8_t*>(datagram.room.iov_base) + at, std::min(each, datagram.length - at)};
      Show(datagram.from, WithPort(to, port_), {&piece, 1});
    }
  }
  return count;
}

std::unique_ptr<DatagramSocket> CaptureIfAsked(std::unique_ptr<DatagramSocket> socket, CapturingDatagramSocket::Describe describe) {
  PcapFile* file = PcapIfAsked();
  if (file == nullptr) return socket;
  return std::make_unique<CapturingDatagramSocket>(std::move(socket), file, describe);
}

}  // namespace weft::transport
