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

// Packets that wait for the system call that sends them. Small ones of one association that follow one another become one, as if
// their chunks had been there at once (RFC 9260 section 6.10). Not thread safe.
class Outbox {
 public:
  // What becomes of packets: so many went out; or the first of what was left did not, for `error`, and goes to `to`.
  struct Observer {
    virtual ~Observer() = default;
    // Of each that went out, if SetTapped() was called.
    virtual void OnPacket(const SocketAddress& from, const SocketAddress& to, const DatagramSocket& socket, std::span<const uint8_t> packet) = 0;
    virtual void OnSent(size_t packets) = 0;
    virtual void OnNotSent(const SocketAddress& to, int error) = 0;
  };
  explicit Outbox(Observer& observer) : observer_(observer) {}

  // Memory for a packet with what is in front of it; null: it is too long. Sends if there is no room.
  uint8_t* Room(size_t bytes);
  // A packet from its common header on, at the end of what Room() gave; its checksum is not there yet.
  void Add(const SocketAddress& from, const SocketAddress& to, DatagramSocket& socket, std::span<const uint8_t> packet);
  void Flush();
  void SetTapped() { tapped_ = true; }
  // The next packet that is added, or what it becomes part of, goes out with an inverted bit.
  void DamageNext() { damage_next_ = true; }
  bool empty() const { return outgoing_.empty(); }
  // Packets longer than this are not made of others. At first what each path takes.
  void LimitJoined(size_t bytes);

 private:
  struct Outgoing {
    SocketAddress from, to;
    size_t offset = 0, length = 0;  // length 0: it need not go
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
  std::vector<const Outgoing*> order_;  // while they are sent
  std::vector<uint8_t> bytes_;
  size_t used_ = 0;
  static constexpr size_t kNone = static_cast<size_t>(-1);
  size_t last_sack_ = kNone;  // the packet of outgoing_ that is nothing but a SACK
  // An IPv6 packet of 1280 bytes (RFC 8200 section 5) without headers of IP and UDP.
  size_t most_joined_ = 1232;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_OUTBOX_H_
