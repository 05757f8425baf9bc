#ifndef SIM_NET_CONNECTION_H_
#define SIM_NET_CONNECTION_H_

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/net/link.h"
#include "sim/net/random.h"
#include "sim/net/virtual_clock.h"
#include "transport/network.h"

namespace weft::sim {

using transport::Interest;
using transport::IoResult;
using transport::SocketAddress;

// The two ends of a connection and the data in flight between them. It behaves like TCP as programs see it: bytes in
// order, FIN behind the bytes, RST on an abort or when bytes reach an end that is gone.
class VirtualConnection : public std::enable_shared_from_this<VirtualConnection> {
 public:
  enum End : uint8_t { kInitiator = 0, kAcceptor = 1 };
  static End Other(End end) { return end == kInitiator ? kAcceptor : kInitiator; }

  struct Environment {
    VirtualClock& clock;
    // An end may have become ready.
    std::function<void(VirtualConnection&, End)> changed;
    // Called with a line about each event; may be empty.
    std::function<void(const std::string&)> trace;
  };

  // `forward` is the link from the initiator to the acceptor. The environment outlives the connection.
  VirtualConnection(Environment& environment, uint64_t seed, const SocketAddress& initiator, const SocketAddress& acceptor,
             const LinkFaults& forward, const LinkFaults& back);

  // The acceptor's side exists from now on; the initiator learns of it after the link's delay.
  void Establish();
  // The initiator's attempt fails with this errno after `delay`.
  void FailConnect(int error, Duration delay);

  // The calls of the handles; see transport::ByteStream.
  IoResult Read(End end, std::span<const iovec> into);
  IoResult Write(End end, std::span<const iovec> from);
  int ConnectError(End end) const;
  void ShutdownWrite(End end);
  void Abort(End end);
  // The handle is destroyed: FIN, and RST for data that arrives later.
  void Close(End end);

  Interest Ready(End end) const;
  const SocketAddress& AddressOf(End end) const { return sides_[end].address; }
  Duration BackDelay() const { return sides_[kAcceptor].link.delay; }
  size_t SegmentSize(End end) const { return sides_[end].link.segment_size; }
  void Break(LinkFaults::Cut how);

 private:
  enum class State : uint8_t { kConnecting, kEstablished, kFailed };

  // One end, and the direction in which it writes.
  struct Side {
    SocketAddress address;
    LinkFaults link;
    Random random;
    State state = State::kConnecting;
    int error = 0;        // with kFailed: the error of reads and writes
    bool closed = false;  // the handle is gone
    bool fin_sent = false;
    bool fin_received = false;
    bool vanishing = false;  // data that it writes is lost
    uint64_t written = 0;
    uint64_t arrived = 0;
    Time last_arrival{};
    std::deque<uint8_t> unread;  // arrived at this end
  };

  Time ArrivalTime(Side& from);
  void Send(End from, std::vector<uint8_t> bytes);
  void Arrive(End from, std::vector<uint8_t> bytes);
  void ArriveFin(End from);
  void SendReset(End from);
  void Fail(End end, int error);
  void GiveUpLater(End end);
  size_t Unacknowledged(End from) const;
  void Corrupt(Side& from, std::vector<uint8_t>& segment);
  size_t Limit(Side& side, size_t bytes);
  void Note(End from, const std::string& what) const;
  // Runs `work`, and keeps this connection alive until then.
  void At(Time when, std::function<void()> work);

  Environment& environment_;
  const Time started_;
  Side sides_[2];
};

}  // namespace weft::sim

#endif  // SIM_NET_CONNECTION_H_
