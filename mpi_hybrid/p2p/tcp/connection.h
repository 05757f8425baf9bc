#ifndef MPI_HYBRID_P2P_TCP_CONNECTION_H_
#define MPI_HYBRID_P2P_TCP_CONNECTION_H_

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "mpi_hybrid/p2p/engine/link.h"
#include "mpi_hybrid/p2p/loop/event_loop.h"
#include "mpi_hybrid/p2p/tcp/cork.h"
#include "mpi_hybrid/p2p/tcp/socket.h"
#include "transport/silent_peer.h"

namespace weft::mpi {

// A host that has answered nothing for so long is gone: by the kernel's keepalive where nothing is under way (socket.cc), else by LookForPeer.
inline constexpr std::chrono::seconds kSilence{90};
inline constexpr std::chrono::seconds kSilenceLook{10};  // between two looks at all connections

// The socket that carries one link's frames, both ends having proven themselves. Owns the socket.
class Connection final : EventLoop::Handler {
 public:
  class Owner {
   public:
    // The connection is broken or at its end, in whichever of its functions; destroys it.
    virtual void OnLost(Connection& connection) = 0;
    // It had its turn at writing and has more; WriteOn() when others had theirs.
    virtual void OnTurnOver(Connection& connection) = 0;

   protected:
    ~Owner() = default;
  };

  // `staging` is where bytes are read that have no place yet; it is anyone's between calls. All but the socket outlive
  // it.
  Connection(Owner& owner, EventLoop& loop, Corks& corks, Link& link, Socket socket, std::span<uint8_t> staging)
      : owner_(owner),
        link_(link),
        staging_(staging),
        socket_(std::move(socket)),
        cork_(corks, socket_),
        registration_(loop, socket_.fd(), EPOLLIN, *this) {}

  Link& link() const { return link_; }

  // Each may complete requests, and may be the last (Owner::OnLost); whether any byte moved.
  bool Poll();   // reads, and writes where the socket was full
  bool Write();  // what is queued, unless the socket was full or others have their turn
  bool WriteOn();

  // Transport::WriteAtOnce. An error shows again when the rest is written.
  size_t WriteAtOnce(std::span<const iovec> pieces) {
    const ssize_t written = cork_.empty() ? socket_.Write(pieces) : cork_.Write(pieces);
    return written > 0 ? static_cast<size_t>(written) : 0;
  }
  // Transport::WriteSoon, where it may wait; false: it may not.
  bool Hold(std::span<const iovec> pieces, size_t total) { return total <= Cork::kMostFrame && cork_.Hold(pieces, total); }
  bool holds() const { return !cork_.empty(); }
  void EndOutput();
  // Ends it where the peer's host is gone: then a read finds the end. Now and then.
  void LookForPeer(EventLoop::Clock::time_point now);
  // Before a sleep: lets the kernel report a long body only when much of it is there.
  void RaiseLowWater();

 private:
  void OnReady(uint32_t events) override;
  bool WriteQueued();
  bool WriteHeld(bool* moved);
  void OnFull();
  bool ReadReady();
  void OnWriteError(int error);
  void Lose(int error, const char* what);
  bool Settle(bool moved);
  void SetLowWater(size_t bytes);

  Owner& owner_;
  Link& link_;
  const std::span<uint8_t> staging_;
  Socket socket_;
  Cork cork_;  // goes out before what is queued
  EventLoop::Registration registration_;
  size_t low_water_ = 1;     // SO_RCVLOWAT
  bool full_ = false;        // the socket's buffer is: the loop tells when it is not
  bool waits_turn_ = false;  // to write on
  bool output_ended_ = false;
  bool lost_ = false;
  transport::SilentPeer peer_{kSilence};
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_TCP_CONNECTION_H_
