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

// A host that has not answered for this long is gone. The kernel's keepalive detects it on an idle connection
// (socket.cc), LookForPeer otherwise.
inline constexpr std::chrono::seconds kSilence{90};
inline constexpr std::chrono::seconds kSilenceLook{10};  // between two checks of all connections

// The socket that carries the frames of one link, after both ends have been authenticated. Owns the socket.
class Connection final : EventLoop::Handler {
 public:
  class Owner {
   public:
    // The connection is broken or has ended; may be called from any of its functions. The owner destroys it.
    virtual void OnLost(Connection& connection) = 0;
    // The connection has used its turn for writing and has more. Call WriteOn() after the others' turns.
    virtual void OnTurnOver(Connection& connection) = 0;

   protected:
    ~Owner() = default;
  };

  // `staging`: memory for bytes that have no place yet; shared, its contents are valid only during a call. All but the
  // socket must outlive it.
  Connection(Owner& owner, EventLoop& loop, Corks& corks, Link& link, Socket socket, std::span<uint8_t> staging)
      : owner_(owner),
        link_(link),
        staging_(staging),
        socket_(std::move(socket)),
        cork_(corks, socket_),
        registration_(loop, socket_.get(), EPOLLIN, *this) {}

  Link& link() const { return link_; }

  // These may complete requests and may end the connection (Owner::OnLost). They return whether any byte moved.
  bool Poll();   // reads; writes if the socket was full
  bool Write();  // writes the queue, unless the socket was full or it is the turn of others
  bool WriteOn();

  // See Transport::WriteAtOnce. An error appears again when the rest is written.
  size_t WriteAtOnce(std::span<const iovec> pieces) {
    const ssize_t written = cork_.empty() ? socket_.Write(pieces) : cork_.Write(pieces);
    return written > 0 ? static_cast<size_t>(written) : 0;
  }
  // See Transport::WriteSoon. False: the frame must not wait.
  bool Hold(std::span<const iovec> pieces, size_t total) { return total <= Cork::kMostFrame && cork_.Hold(pieces, total); }
  bool holds() const { return !cork_.empty(); }
  void EndOutput();
  // Ends the connection if the peer's host is gone: a read then finds the end. Call it from time to time.
  void LookForPeer(EventLoop::Clock::time_point now);
  // Called before a sleep: the kernel then reports a long body only when much of it has arrived.
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
  Cork cork_;  // written before the queue
  EventLoop::Registration registration_;
  size_t low_water_ = 1;     // SO_RCVLOWAT
  bool full_ = false;        // the socket's buffer is full; the loop tells when it no longer is
  bool waits_turn_ = false;  // for writing
  bool output_ended_ = false;
  bool lost_ = false;
  transport::SilentPeer peer_{kSilence};
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_TCP_CONNECTION_H_
