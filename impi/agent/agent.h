#ifndef IMPI_AGENT_AGENT_H_
#define IMPI_AGENT_AGENT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/byte_reader.h"
#include "impi/agent/inlet.h"
#include "impi/agent/outlet.h"
#include "impi/agent/packet_store.h"
#include "impi/job/job.h"
#include "impi/job/ranks.h"

namespace weft::impi {

// The agent of one host: carries packets between the processes of the host and the hosts of the other clients (IMPI 0.0, chapter 3).
//
//   process 100 --+                +-- host 3 (client 1)
//   process 101 --+---- agent -----+-- host 4 (client 1)
//   process 102 --+                +-- host 5 (client 2)
//
// A process is connected by a stream of the same packets as a host is. It names itself as source and any process of another client as destination, and ends
// with FINI, which goes to the agent. When all have ended, the agent sends FINI to each host; when each host's FINI has come and its own is written, it has
// ended (section 3.8). For a process that has ended, it discards packets and sends the protocol acknowledgements that are due.
//
// The agent neither matches messages nor keeps to ackmark and hiwater: processes do.
//
// Memory: each packet in the agent stands on the account of the connection that it came from, until it is written. An owner reads from a connection only while
// MayRead() says so, which is while its account is below a budget. So each connection occupies at most its budget, one read and one packet. A host that ignores
// hiwater is found out when more data packets of a pair of processes wait here than hiwater allows: those cannot have been acknowledged.
//
// No deadlock: what comes from a host goes to a process, and what comes from a process goes to a host; nothing goes from host to host. So reading from a host
// waits only for processes to read, and writing to a host waits only for that host's agent to read, which in turn waits only for its processes to read. The
// condition on processes: a process in MPI takes what comes from its agent, also while it waits to send. Then no wait is part of a circle, whatever is full,
// and no wait depends on another connection's account. The acknowledgements that the agent itself makes stand on no account: with one, reading from a host
// would wait for writing to it. They are bounded by hiwater: more than this can be outstanding only if the host did not wait for them.
//
// No I/O and no clock. Nothing calls back: after each event, the owner looks at state(), TakeReady() and TakeReadable().
class Agent {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // A connection: of another client's host, or of a process of this host.
  using Port = std::variant<HostRank, WorldRank>;

  struct Setup {
    HostRank host;                         // whose agent this is
    size_t host_budget = 64 << 20;         // bytes, on the account of a host
    size_t process_budget = 4 << 20;       // bytes, on the account of a process
    uint32_t lam_clients = 0;              // bit i: the hosts of client i are LAM/MPI's (message/departures.h)
    std::chrono::seconds fini_patience{60};  // a host may be silent so long when this one's FINI waits for its answer
  };

  enum class State : uint8_t {
    kRunning,
    kEnded,   // FINI went to all hosts, and came from all
    kFailed,  // reason()
  };

  static constexpr size_t kKept = 8 << 20;  // bytes, of long packets that are gone, for the next ones

  // `job` outlives it. All hosts of other clients are connected (Dance); processes connect when they like.
  Agent(const Job& job, Setup setup, Time now);
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // What came from a connection.
  void OnBytes(Port port, ByteSpan bytes, Time now);
  // The other end closed it, or it broke.
  void OnClosed(Port port);
  // Whether the owner may read from it now. While it may not, the peer waits.
  bool MayRead(Port port) const;

  // What is to be written next, whole or in part: at most `into.size()` spans. Returns how many. They are valid until the next Wrote of the port, or OnBytes.
  size_t Gather(Port port, std::span<ByteSpan> into);
  void Wrote(Port port, size_t bytes, Time now);

  // Those that have something to write, or may be read from, and had not or might not before.
  std::vector<Port> TakeReady();
  std::vector<Port> TakeReadable();

  // When OnTime has something to do.
  std::optional<Time> deadline() const;
  void OnTime(Time now);

  State state() const { return state_; }
  // Names the client, and what to do where that is known.
  const std::string& reason() const { return reason_; }
  // In kFailed: the connection whose fault it is.
  const std::optional<Port>& culprit() const { return culprit_; }
  // Both FINIs are through. The owner ends its own direction of the connection (shutdown) and closes it when the peer has closed: closing at once, with
  // acknowledgements of the peer unread, could destroy the FINI on its way there.
  bool IsOver(HostRank host) const;
  // The process sent FINI. The owner may close its connection.
  bool HasEnded(WorldRank process) const;
  // Bytes of packets that came from the connection and have not been written.
  size_t account(Port port) const;

 private:
  static constexpr int32_t kNobody = -1;  // pays for what the agent made

  struct Link {
    Link(Port which, Peer who, const PacketLimits& limits, PacketStore* store, size_t most) : port(which), peer(who), inlet(limits, store), budget(most) {}
    Link(Link&&) = default;
    Link(const Link&) = delete;
    const Port port;
    const Peer peer;
    uint64_t packets = 0;  // that were added to outlet; protocol acknowledgements overtake others and keep their numbers
    Inlet inlet;
    Outlet outlet;
    const size_t budget;  // bytes
    size_t account = 0;   // bytes
    bool fini_came = false, closed = false;
    bool fini_written = false;            // to a host
    std::optional<Time> silent_since;     // a host, when its FINI is awaited
  };
  // What a process of another client sends to a process here.
  struct Pair {
    uint32_t waiting_data = 0;    // data packets that are in the agent
    uint32_t unacknowledged = 0;  // packets that came, as the specification counts them, less those acknowledged
    uint32_t waiting_acks = 0;    // acknowledgements of the agent's own that are not written
  };

  Link& At(Port port);
  const Link& At(Port port) const { return const_cast<Agent*>(this)->At(port); }
  int32_t NumberOf(Port port) const;
  std::string NameOf(Port port) const;
  bool IsHere(WorldRank process) const { return job_.process(process).host == setup_.host; }
  Pair& PairOf(WorldRank source, WorldRank destination);

  void OnPacketOfHost(HostRank host, CarriedPacket packet);
  void OnPacketOfProcess(WorldRank process, CarriedPacket packet, Time now);
  void Discard(WorldRank source, WorldRank destination);
  void OnFiniOfProcess(WorldRank process, Time now);
  void Acknowledge(WorldRank source, WorldRank destination);
  void SendFini(Time now);
  void Add(Port to, CarriedPacket packet, int32_t payer);
  void Settle(Port port, const std::vector<Outlet::Entry>& gone, bool written);
  void CheckEnd();
  // `port` did what it must not.
  void Blame(Port port, const std::string& what);

  const Job& job_;
  const Setup setup_;
  State state_ = State::kRunning;
  std::string reason_;
  std::optional<Port> culprit_;
  PacketStore store_;
  std::vector<Link> links_;         // first of processes, then of hosts
  std::vector<int32_t> of_host_;    // their place in links_, by HostRank; kNobody: a host of this client
  int32_t processes_ = 0, ended_ = 0;
  std::unordered_map<uint64_t, Pair> pairs_;  // of those that have sent something
  std::vector<Port> ready_, readable_;
};

}  // namespace weft::impi

#endif  // IMPI_AGENT_AGENT_H_
