#ifndef SIM_NET_VIRTUAL_DATAGRAMS_H_
#define SIM_NET_VIRTUAL_DATAGRAMS_H_

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "sim/net/link.h"
#include "transport/network.h"

namespace weft::sim {

struct VirtualDatagram {
  SocketAddress from, to;
  std::vector<uint8_t> bytes;
};

// A UDP socket of a host in virtual time. There are no groups.
class VirtualDatagramSocket : public transport::DatagramSocket {
 public:
  static constexpr size_t kMostWaiting = 1000;  // further datagrams are dropped
  static constexpr size_t kLongest = 65507;

  // `leave` is called for each datagram sent, `gone` on destruction.
  VirtualDatagramSocket(const void* host, const SocketAddress& local, const transport::DatagramOptions& options,
                        std::function<void(VirtualDatagramSocket&, VirtualDatagram)> leave,
                        std::function<void(VirtualDatagramSocket*)> gone)
      : host_(host), local_(local), options_(options), leave_(std::move(leave)), gone_(std::move(gone)) {}
  ~VirtualDatagramSocket() override { gone_(this); }

  size_t Send(std::span<const transport::OutgoingDatagram> datagrams, int* error) override {
    for (size_t i = 0; i < datagrams.size(); ++i) {
      VirtualDatagram datagram{datagrams[i].from, datagrams[i].to, {}};
      if (datagram.from.family() == 0) datagram.from = local_;
      datagram.from.set_port(local_.port());
      for (const iovec& piece : datagrams[i].pieces) {
        const auto* bytes = static_cast<const uint8_t*>(piece.iov_base);
        datagram.bytes.insert(datagram.bytes.end(), bytes, bytes + piece.iov_len);
      }
      if (datagram.bytes.size() > kLongest) {
        *error = EMSGSIZE;
        return i;
      }
      leave_(*this, std::move(datagram));
    }
    return datagrams.size();
  }

  size_t Receive(std::span<transport::IncomingDatagram> into) override {
    size_t count = 0;
    for (; count < into.size() && !waiting_.empty(); ++count) {
      const VirtualDatagram& datagram = waiting_.front();
      transport::IncomingDatagram& out = into[count];
      out.length = std::min(out.room.iov_len, datagram.bytes.size());
      if (out.length > 0) std::memcpy(out.room.iov_base, datagram.bytes.data(), out.length);
      out.cut_off = out.length < datagram.bytes.size();
      out.from = datagram.from;
      out.to = datagram.to;
      out.to.set_port(0);
      waiting_.pop_front();
    }
    return count;
  }

  int TakeError() override { return std::exchange(error_, 0); }
  SocketAddress LocalAddress() const override { return local_; }

  const void* host() const { return host_; }
  bool Takes(const void* host, const SocketAddress& from, const SocketAddress& to) const {
    if (host != host_ || to.port() != local_.port()) return false;
    if (options_.peer.family() != 0 && !(options_.peer == from)) return false;
    if (!local_.is_wildcard()) return local_.SameHost(to);
    return local_.family() == to.family() || (local_.family() == AF_INET6 && !options_.only_v6);
  }
  void Arrives(VirtualDatagram datagram) {
    if (waiting_.size() < kMostWaiting) waiting_.push_back(std::move(datagram));
  }
  // A datagram of this socket reached no receiver.
  bool Refused() {
    if (options_.peer.family() != 0) error_ = ECONNREFUSED;
    return error_ != 0;
  }
  transport::Interest Ready() const { return {.read = !waiting_.empty() || error_ != 0, .write = true}; }

 private:
  const void* const host_;
  const SocketAddress local_;
  const transport::DatagramOptions options_;
  const std::function<void(VirtualDatagramSocket&, VirtualDatagram)> leave_;
  const std::function<void(VirtualDatagramSocket*)> gone_;
  std::deque<VirtualDatagram> waiting_;
  int error_ = 0;
};

}  // namespace weft::sim

#endif  // SIM_NET_VIRTUAL_DATAGRAMS_H_
