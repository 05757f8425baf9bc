#ifndef MPI_HYBRID_P2P_IMPI_OWN_AGENT_H_
#define MPI_HYBRID_P2P_IMPI_OWN_AGENT_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "impi/agent/agent.h"
#include "impi/job/ranks.h"
#include "mpi_hybrid/core/impi_world.h"
#include "mpi_hybrid/p2p/impi/packet_stream.h"

namespace weft::mpi {

// The agent in the only process of a host: impirun has handed over the connections with the hosts of other clients (impi/entry/hello.h), so a packet needs
// neither another process nor another wake-up on its way. Packets are checked as by any agent: the same Agent carries them.
//
// Where an agent of its own would read while this process computes, the sockets' buffers hold what comes. That is enough, because a sender waits for
// acknowledgements of this process before it may fill them (IMPI_H_HIWATER).
//
// When the FINIs are through, or the job has failed, impirun is told, and the stream ends.
class OwnAgent final : public PacketStream, EventLoop::Handler {
 public:
  // `impirun`: a stream socket. `hosts`: one of each host of another client. `world` must outlive it.
  OwnAgent(const ImpiWorld& world, Descriptor impirun, std::map<impi::HostRank, Descriptor> hosts);

  void Start(EventLoop& loop, EventLoop::Handler& handler) override;
  ssize_t Receive(std::span<uint8_t> into) override;
  ssize_t Send(std::span<const iovec> pieces) override;
  void AwaitRoom(bool) override {}  // the sockets that are full are watched for room
  std::optional<EventLoop::Clock::time_point> deadline() const override;
  void OnTime(EventLoop::Clock::time_point now) override;
  void Close() override;

 private:
  using Clock = EventLoop::Clock;
  struct Host {
    impi::HostRank rank;
    Descriptor socket;
    EventLoop::Registration registration{};
    bool ready = false;  // the agent has something for it
    bool full = false;   // the socket takes no more now
    bool deaf = false;   // the peer takes nothing more; what it has said is still read
    bool over = false;   // nothing more comes
  };

  // Of impirun's socket.
  void OnReady(uint32_t events) override;
  void LookAtImpirun();
  void ReadHosts();
  void Read(Host& host);
  void WriteHosts();
  void Write(Host& host);
  // What has come for this process. Returns how many bytes.
  size_t Take(std::span<uint8_t> into);
  // Whether the stream has ended; tells impirun how.
  bool CheckEnd();
  void Say(const impi::Command& command);

  const impi::WorldRank self_;
  Descriptor impirun_;
  std::vector<Host> hosts_;
  std::vector<int32_t> of_rank_;  // their places, by HostRank; -1: a host of this client
  impi::Agent agent_;
  EventLoop::Handler* handler_ = nullptr;
  EventLoop::Registration registration_;  // of impirun's socket
  std::vector<uint8_t> block_;
  std::optional<Clock::time_point> asks_again_;  // the kernel had no memory
  unsigned in_vain_ = 0;                         // calls of Receive, since impirun was looked at
  bool ended_ = false;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_IMPI_OWN_AGENT_H_
