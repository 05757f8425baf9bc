#ifndef MPI_HYBRID_P2P_IMPI_PACKET_STREAM_H_
#define MPI_HYBRID_P2P_IMPI_PACKET_STREAM_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/descriptor.h"
#include "mpi_hybrid/p2p/loop/event_loop.h"

namespace weft::mpi {

// The way of packets (impi/wire/packet.h) between this process and the agent of its host: a stream of bytes in each direction. After the FINI of this process,
// the agent ends the stream.
class PacketStream {
 public:
  virtual ~PacketStream() = default;

  // From now on, `loop` tells `handler` when something can be received. Both must outlive the stream.
  virtual void Start(EventLoop& loop, EventLoop::Handler& handler) = 0;
  // As recv(2) that does not wait: 0: the stream has ended; -1: errno.
  virtual ssize_t Receive(std::span<uint8_t> into) = 0;
  // As sendmsg(2) that does not wait.
  virtual ssize_t Send(std::span<const iovec> pieces) = 0;
  // Whether `handler` is also told when Send can take more.
  virtual void AwaitRoom(bool awaits) = 0;
  // When OnTime has something to do; then Receive may have, too.
  virtual std::optional<EventLoop::Clock::time_point> deadline() const { return std::nullopt; }
  virtual void OnTime(EventLoop::Clock::time_point) {}
  // Nothing is called afterwards.
  virtual void Close() = 0;
};

// A stream socket to an agent that is a process of its own.
class AgentSocket final : public PacketStream {
 public:
  explicit AgentSocket(Descriptor socket) : socket_(std::move(socket)) {}

  void Start(EventLoop& loop, EventLoop::Handler& handler) override;
  ssize_t Receive(std::span<uint8_t> into) override;
  ssize_t Send(std::span<const iovec> pieces) override;
  void AwaitRoom(bool awaits) override;
  void Close() override;

 private:
  Descriptor socket_;
  EventLoop::Registration registration_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_IMPI_PACKET_STREAM_H_
