#ifndef MPI_HYBRID_P2P_HOST_HOST_TRANSPORT_H_
#define MPI_HYBRID_P2P_HOST_HOST_TRANSPORT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/host/own_words.h"
#include "mpi_hybrid/host/process_memory.h"
#include "mpi_hybrid/host/segment.h"
#include "mpi_hybrid/p2p/device/transport.h"
#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/host/cells.h"
#include "mpi_hybrid/p2p/host/death_watch.h"
#include "mpi_hybrid/p2p/host/host_connection.h"
#include "mpi_hybrid/p2p/loop/event_loop.h"

namespace weft::mpi::host {

inline constexpr size_t kNeverInPlace = SIZE_MAX;

// Links to the processes that share memory with this one. Either side connects without waiting for the other: the rings
// exist already, and the number of bytes that a process stores is on its card. The connecting process sets the kKnock
// bit of the other, which then looks up the caller.
//
// The receiver copies long data directly from the sender's memory, whatever the sender does. While the sender is
// certain to poll, the data goes through the rings instead, in a third of the time.
//
// The death of a process is detected by its pidfd. A process that ends in an orderly way, or that closes its connection
// with a peer, says so in the segment and knocks.
//
// Another process of the user may overwrite the rings. While this process sleeps or polls, it checks its own words of
// all kinds (host/own_words.h) from time to time. If one differs, a peer that waits for that word would wait forever.
// This process then gives up all connections on the host, and tells each peer.
class HostTransport final : public Transport, HostConnection::Owner, EventLoop::Handler, EventLoop::Nap, OwnWords {
 public:
  // All arguments must outlive it. Pieces of `in_place_from` bytes or more are copied directly from the memory of the
  // sending process, if the kernel permits that. kNeverInPlace: this process does not read other processes' memory
  // either.
  HostTransport(Segment& segment, Engine& engine, EventLoop& loop, size_t in_place_from);
  ~HostTransport() override;

  // Publishes this process's card.
  Error Start() override;
  Error Listen() override { return {}; }  // processes of other jobs do not share the memory
  bool Reaches(ProcessId process) const override { return segment_.PlaceOf(process).has_value(); }
  void Connect(Link& link) override;
  bool Flush(Link& link) override;
  size_t WriteAtOnce(Link& link, std::span<const iovec> pieces, size_t total, uint32_t flow) override;
  bool Poll() override;
  bool Arm() override;
  void OnAwake() override;
  void OnLeaving() override;
  // The timer: from time to time, checks the own words and looks for dead peers that have no descriptor. It also ends a
  // sleep whose ring was lost.
  std::optional<EventLoop::Clock::time_point> deadline() const override;
  void OnTime(EventLoop::Clock::time_point now) override;
  void StopConnecting() override { stopping_ = true; }
  void EndOutput(Link& link) override;
  bool HasConnections() const override { return !open_.empty(); }
  void Close() override { End(PlaceCard::kLeft); }
  bool IsConnected(const Link& link) const override { return PeerOf(link.peer()) != nullptr; }
  void Drop(const Link& link) override;

 private:
  using Clock = EventLoop::Clock;

  struct Peer {
    Peer(HostTransport& owner, Link& link, int place, const HostConnection::Memory& memory)
        : connection(owner, link, place, memory, owner.in_place_from_, owner.staging_) {}

    DeathWatch watch;
    std::shared_ptr<ProcessMemory> memory;  // null: this process does not read it
    HostConnection connection;
  };

  PlaceCard& CardOf(int place) const { return *reinterpret_cast<PlaceCard*>(segment_.CardOf(place)); }
  RingPage& Ring(int from, int to) const { return *reinterpret_cast<RingPage*>(segment_.OfPair(from, to)); }
  Peer* PeerOf(ProcessId process) const {
    const size_t at = static_cast<size_t>(process);
    return at < peers_.size() ? peers_[at].get() : nullptr;
  }
  Peer& PeerWith(const HostConnection& connection) const { return *PeerOf(connection.link().peer()); }

  void Open(Link& link, int place);
  void Knock(int place);
  void AnswerKnocks();
  bool HasKnock() const { return (own_attention_.load(std::memory_order_relaxed) & kKnock) != 0; }
  bool DropLost();
  void GiveUp();
  std::string Overwritten() const override;
  void End(PlaceCard::State state);

  void WakePeer(HostConnection& connection) override { segment_.RingAfterFence(connection.place()); }
  ssize_t ReadPeer(HostConnection& connection, std::span<const iovec> to, uint64_t from, size_t bytes) override;
  bool StaysForLongData() override;
  void OnLost(HostConnection& connection) override { lost_.push_back(connection.link().peer()); }
  void OnReady(uint32_t events) override;
  // EventLoop::Nap
  bool Take(std::chrono::milliseconds most) override { return segment_.Nap(most); }
  void End() override { segment_.EndNap(); }

  Segment& segment_;
  Engine& engine_;
  EventLoop& loop_;
  const size_t in_place_from_;
  const std::atomic<uint32_t>& own_attention_;
  std::vector<uint8_t> staging_;
  Cells cells_;
  uint8_t cookie_[sizeof(PlaceCard::cookie)];
  EventLoop::Registration bell_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by process
  std::vector<Peer*> open_;                   // those that are not null
  std::vector<ProcessId> lost_;               // to be destroyed when none of their functions is running
  Clock::time_point look_at_{};               // time of the next check
  uint32_t polls_ = 0;
  bool asleep_ = false;
  bool stopping_ = false;
  bool ended_ = false;
};

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_P2P_HOST_HOST_TRANSPORT_H_
