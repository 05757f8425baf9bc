#ifndef TRANSPORT_SCTP_USRSCTP_OUTBOX_H_
#define TRANSPORT_SCTP_USRSCTP_OUTBOX_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "transport/datagram_socket.h"
#include "transport/socket_address.h"

namespace weft::transport::sctp {

// Packets that wait for the system call that sends them. Consecutive small packets of one association are joined into
// one, as if their chunks had been ready at the same time (RFC 9260 section 6.10). Not thread safe.
class Outbox {
 public:
  // Told about packets: how many were sent; or that the first of the rest, which goes to `to`, was not sent, because of
  // `error`.
  struct Observer {
    virtual ~Observer() = default;
    // Called for each packet sent, if SetTapped() was called.
    virtual void OnPacket(const SocketAddress& from, const SocketAddress& to, const DatagramSocket& socket, std::span<const uint8_t> packet) = 0;
    virtual void OnSent(size_t packets) = 0;
    virtual void OnNotSent(const SocketAddress& to, int error) = 0;
  };
  explicit Outbox(Observer& observer) : observer_(observer) {}

  // Memory for a packet with its headers; null: too long. Sends waiting packets if there is no room.
  uint8_t* Room(size_t bytes);
  // Adds a packet, from its common header on, at the end of the memory from Room(); its checksum is not set yet.
  void Add(const SocketAddress& from, const SocketAddress& to, DatagramSocket& socket, std::span<const uint8_t> packet);
  void Flush();
  void SetTapped() { tapped_ = true; }
  // One bit is inverted in the next added packet, or in the packet that it is joined to.
  void DamageNext() { damage_next_ = true; }
  bool empty() const { return outgoing_.empty(); }
  // Joined packets are not longer than this. The initial value fits every path.
  void LimitJoined(size_t bytes);

 private:
  struct Outgoing {
    SocketAddress from, to;
    size_t offset = 0, length = 0;  // length 0: need not be sent
    DatagramSocket* socket = nullptr;
    bool ordered = false;
    bool damaged = false;
  };
  bool Join(const SocketAddress& from, const SocketAddress& to, const DatagramSocket& socket, std::span<const uint8_t> packet);

  void Supersede(const SocketAddress& from, const SocketAddress& to, std::span<const uint8_t> packet);
  void Order();

  Observer& observer_;
  bool tapped_ = false, damage_next_ = false;
  std::vector<Outgoing> outgoing_;
  std::vector<const Outgoing*> order_;  // during sending
  std::vector<uint8_t> bytes_;
  size_t used_ = 0;
  static constexpr size_t kNone = static_cast<size_t>(-1);
  size_t last_sack_ = kNone;  // the packet of outgoing_ that consists of a SACK
  // An IPv6 packet of 1280 bytes (RFC 8200 section 5) without IP and UDP headers.
  size_t most_joined_ = 1232;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_OUTBOX_H_
