#ifndef CM_RSOCKET_DATAGRAM_H_
#define CM_RSOCKET_DATAGRAM_H_

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cm/rsocket/datagram_link.h"
#include "cm/rsocket/datagram_peers.h"
#include "cm/rsocket/datagram_wire.h"
#include "cm/rsocket/defaults.h"
#include "cm/rsocket/waiting_socket.h"

namespace weft::rsocket {

// An rsocket of type SOCK_DGRAM. Its UDP socket holds its address, and carries the datagrams that cannot go by RDMA:
// the first ones to a peer, those longer than the port's MTU, and one per second to a peer that does not answer, in
// order to find a peer that was restarted. There is no thread: each call checks both the UDP socket and the RDMA links.
class Datagram final : public WaitingSocket {
 public:
  // nullptr and errno; EOPNOTSUPP: the devices do not support datagrams.
  static std::shared_ptr<Datagram> Create(int domain);
  ~Datagram() override;

  int type() const override { return SOCK_DGRAM; }
  int Bind(const sockaddr* address, socklen_t length) override;
  int Listen(int) override { return EOPNOTSUPP; }
  int Accept(std::shared_ptr<Socket>*) override { return EOPNOTSUPP; }
  int Connect(const sockaddr* address, socklen_t length) override;  // AF_UNSPEC: removes the peer
  int Shutdown(int how) override;
  bool Close() override;
  bool Farewell() override { return true; }

  ssize_t Send(const iovec* pieces, int count, int flags, const sockaddr* to, socklen_t to_length) override;
  ssize_t Receive(const iovec* pieces, int count, int flags, sockaddr_storage* from, int* out_flags) override;
  int Name(bool peer, sockaddr_storage* name) override;

  int SetOption(int level, int name, const void* value, socklen_t length) override;
  int GetOption(int level, int name, void* value, socklen_t* length) override;

  off_t Map(void*, size_t, int, off_t) override { return -EOPNOTSUPP; }
  int Unmap(void*, size_t) override { return EOPNOTSUPP; }
  ssize_t WriteMapped(const void*, size_t, off_t, int) override { return -EOPNOTSUPP; }

 private:
  using Peer = DatagramPeer;
  // A datagram that arrived and was not read yet.
  struct Arrived {
    DatagramLink* link = nullptr;  // it is in a slot of this link, or
    uint32_t slot = 0;
    std::vector<uint8_t> copy;     // it came over UDP
    Bytes bytes;                   // the program's data
    sockaddr_storage from{};

    // Its cost in copied_: a short datagram takes memory, too.
    size_t Cost() const { return link == nullptr ? copy.size() + sizeof(Arrived) : 0; }
  };

  explicit Datagram(int domain);
  int Open();

  // All of these require mutex_.
  bool Readable() const { return closing_ || read_shut_ || !arrived_.empty() || error_ != 0; }
  bool Writable() const;
  short Events(short wanted) const override;
  void Drive() override;
  void DriveLinks();
  void DriveUdp();
  void OnUdp(Bytes datagram, const sockaddr_storage& from);
  void Deliver(Arrived arrived);
  bool IsWanted(const sockaddr_storage& from) const;  // connect(2): only datagrams of the peer
  void Arm() override;
  void TakeEvents() override;
  int wait_fd() const override { return wait_fd_; }

  // nullptr and errno.
  std::shared_ptr<Peer> FindPeer(const sockaddr_storage& address);
  int Resolve(Peer& peer);
  DatagramLink* LinkOn(ibv_context* device);
  int EnsureBound();
  bool GoesByRdma(const Peer& peer, size_t length) const;
  // Returns the count or a negative errno.
  ssize_t SendByUdp(Lock& lock, Peer& peer, LookupHeader::Op op, const iovec* pieces, int count, const Deadline& deadline);
  int CheckAddress(const sockaddr* address, socklen_t length, sockaddr_storage* into) const;
  sockaddr_storage InDomain(const sockaddr_storage& address) const;

  // Guarded by mutex_:
  int udp_ = -1;
  int wait_fd_ = -1;  // an epoll instance of the UDP socket and the links' channels
  bool bound_ = false;
  bool read_shut_ = false, write_shut_ = false;
  int error_ = 0;  // SO_ERROR
  LinkSizes sizes_;
  std::vector<std::unique_ptr<DatagramLink>> links_;
  DatagramPeers peers_;                // by KeyOf
  std::string connected_;              // key of the peer; empty: not connected
  std::deque<Arrived> arrived_;
  size_t copied_ = 0;                  // bytes of `arrived_` that came over UDP
  std::vector<uint8_t> staging_;       // for one UDP datagram
};

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_DATAGRAM_H_
