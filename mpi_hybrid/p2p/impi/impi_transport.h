#ifndef MPI_HYBRID_P2P_IMPI_IMPI_TRANSPORT_H_
#define MPI_HYBRID_P2P_IMPI_IMPI_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "impi/job/ranks.h"
#include "impi/message/endpoint.h"
#include "mpi_hybrid/core/impi_world.h"
#include "mpi_hybrid/p2p/device/transport.h"
#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/impi/impi_contexts.h"
#include "mpi_hybrid/p2p/impi/impi_link.h"
#include "mpi_hybrid/p2p/impi/packet_stream.h"
#include "mpi_hybrid/p2p/loop/event_loop.h"

namespace weft::mpi {

// Links to the processes of other clients of an IMPI job. One stream leads to the agent of this host (impi/agent), which knows the way to them; on it are
// packets of the protocol, as between agents. The agent is a process of its own or, for the only process of a host, in this process (own_agent.h). Each link becomes an ImpiLink when the engine makes it, or when its process sends the first packet.
//
// Output: links take turns, a packet each. Short packets are copied, so that many leave with one system call; the data of long ones are written from where
// they are. Whatever waits to be sent, all that comes is read: this is what the agent asks for to be without deadlock.
//
// The end: when all links have said goodbye, FINI goes to the agent, which ends the stream. If it ends before, or a packet is wrong, all processes
// of other clients are dead for the engine: the job ends, since in an IMPI job nobody survives the loss of a client.
class ImpiTransport final : public Transport, EventLoop::Handler {
 public:
  struct Setup {
    Descriptor agent;  // a stream socket, which does not block
    std::map<impi::HostRank, Descriptor> hosts{};  // with which this process takes the agent's place; empty: it does not (impi/entry/hello.h)
    // Bytes of unmatched messages that this process stores for each other one, beyond what hiwater allows (impi/message/flow.h).
    uint64_t store = 16 << 20;
  };

  // `world`, `engine` and `loop` must outlive it. It sees all links that the engine makes from now on.
  ImpiTransport(const ImpiWorld& world, Engine& engine, EventLoop& loop, Setup setup);

  // A communicator that spans clients: see ImpiContextTable. Messages may have come for it already.
  void AddContext(ContextId context, uint64_t on_wire, const Ref<Group>& remote);
  void RemoveContext(ContextId context) { contexts_.Remove(context); }

  Error Start() override;
  Error Listen() override { return {}; }
  bool Reaches(ProcessId process) const override { return world_.IsForeign(process); }
  void Connect(Link&) override {}  // it is open
  bool Flush(Link& link) override;
  size_t WriteAtOnce(Link& link, std::span<const iovec> pieces, size_t total, uint32_t flow) override;
  bool Poll() override;
  bool Arm() override { return true; }
  std::optional<EventLoop::Clock::time_point> deadline() const override { return lost_ ? std::nullopt : agent_->deadline(); }
  void OnTime(EventLoop::Clock::time_point now) override;
  void StopConnecting() override { stopping_ = true; }
  void EndOutput(Link& link) override;
  bool HasConnections() const override { return !lost_; }
  void Close() override { End(); }
  bool IsConnected(const Link& link) const override { return PeerAt(link.peer()) != nullptr && !lost_; }
  void Drop(const Link&) override {}

 private:
  struct Peer {
    Peer(Link& link, impi::Endpoint& endpoint, impi::PeerId id, const ImpiContexts& contexts) : engine_link(link), link(link, endpoint, id, contexts), id(id) {}
    Link& engine_link;
    ImpiLink link;
    const impi::PeerId id;
    bool has_turn = false;  // it is in turns_
    bool ended = false;
  };

  Peer* PeerAt(ProcessId process) const {
    const size_t at = static_cast<size_t>(process);
    return at < peers_.size() ? peers_[at].get() : nullptr;
  }
  void OnLink(Link& link);
  void OnReady(uint32_t events) override;
  // Reads what is there, and takes the packets.
  bool Read();
  bool TakePackets();
  Peer* SenderOf(const impi::Packet& packet);
  void GiveTurn(Peer& peer);
  // Writes what there is, as far as the socket takes it.
  bool Write();
  void Gather();
  bool WriteGathered();
  void SendFiniIfOver();
  void Lose(const std::string& why);
  void End();

  const ImpiWorld& world_;
  Engine& engine_;
  EventLoop& loop_;
  const impi::FlowLimits flow_;
  std::unique_ptr<PacketStream> agent_;
  ImpiContextTable contexts_;
  impi::Endpoint endpoint_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by process
  std::vector<Peer*> by_id_;                  // by PeerId

  std::vector<uint8_t> in_;  // bytes [0, came_) of packets, from the begin of one
  size_t came_ = 0;

  std::deque<Peer*> turns_;        // those that have packets
  std::vector<uint8_t> gathered_;  // packets to be written, from `written_` on
  size_t written_ = 0;
  // A packet whose header is the last of `gathered_`, and whose data are written from where they are.
  struct Long {
    Peer* peer;
    ImpiLink::Packet packet;
  };
  std::optional<Long> long_;
  size_t long_written_ = 0;
  bool full_ = false;  // the stream; the loop tells when it no longer is
  bool stopping_ = false, fini_sent_ = false, lost_ = false;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_IMPI_IMPI_TRANSPORT_H_
