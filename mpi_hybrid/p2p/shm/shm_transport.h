#ifndef MPI_HYBRID_P2P_SHM_SHM_TRANSPORT_H_
#define MPI_HYBRID_P2P_SHM_SHM_TRANSPORT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mpi_hybrid/core/descriptor.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/p2p/device/transport.h"
#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/loop/event_loop.h"
#include "mpi_hybrid/p2p/shm/cells.h"
#include "mpi_hybrid/p2p/shm/peer_process.h"
#include "mpi_hybrid/p2p/shm/shm_connection.h"
#include "mpi_hybrid/shm/node_segment.h"
#include "mpi_hybrid/shm/own_words.h"

namespace weft::mpi::shm {

inline constexpr size_t kNeverInPlace = SIZE_MAX;

// Links to the processes that have memory in common with this one. Either side connects without waiting for the other:
// the rings are there, and how much a process stores stands on its card. The other is knocked at, and looks who calls.
//
// Long data are copied by the receiver from where they lie, whatever the sender does; or go through the rings, in a third of the time, while the
// sender is sure to poll.
//
// A process that dies is noticed by its pidfd. One that ends in order, or wants no more of a peer, says so in the segment
// and knocks.
//
// Another process of the user may write into the rings. While this one sleeps or polls it compares its own words of all kinds (shm/own_words.h) now and then.
// If one is different, a peer that waits for the word waits for ever. Then this process reaches no other of the host any more, and tells each.
class ShmTransport final : public Transport, ShmConnection::Owner, EventLoop::Handler, OwnWords {
 public:
  // All outlive it. Pieces of `in_place_from` bytes and more are copied from the memory of the process that sends them,
  // where the kernel lets the other do that; kNeverInPlace: nor do we read any other's memory.
  ShmTransport(NodeSegment& node, Engine& engine, EventLoop& loop, size_t in_place_from);
  ~ShmTransport() override;

  // Puts up this process's card.
  Error Start() override;
  Error Listen() override { return {}; }  // processes of other jobs have no such memory
  bool Reaches(ProcessId process) const override { return node_.PlaceOf(process).has_value(); }
  void Connect(Link& link) override;
  bool Flush(Link& link) override;
  size_t WriteAtOnce(Link& link, std::span<const iovec> pieces, size_t total, uint32_t flow) override;
  bool Poll() override;
  bool Arm() override;
  void OnAwake() override;
  void OnLeaving() override;
  // Now and then the own words are compared, and a peer is looked for of whose death no descriptor tells. Should a bell be lost, the sleep ends, too.
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
  // A bit of a process's attention: somebody calls, or is gone.
  static constexpr uint32_t kKnock = 2;

  struct Peer {
    Peer(ShmTransport& owner, Link& link, int place, const ShmConnection::Memory& memory)
        : connection(owner, link, place, memory, owner.in_place_from_, owner.staging_) {}

    PeerProcess process;
    ShmConnection connection;
  };

  PlaceCard& CardOf(int place) const { return *reinterpret_cast<PlaceCard*>(node_.OfPlace(Area::kMessages, place)); }
  RingPage& Ring(int from, int to) const { return *reinterpret_cast<RingPage*>(node_.OfPair(Area::kMessages, from, to)); }
  Peer* PeerOf(ProcessId process) const {
    const size_t at = static_cast<size_t>(process);
    return at < peers_.size() ? peers_[at].get() : nullptr;
  }
  Peer& PeerWith(const ShmConnection& connection) const { return *PeerOf(connection.link().peer()); }

  void Open(Link& link, int place);
  void Knock(int place);
  void AnswerKnocks();
  bool HasKnock() const { return (own_attention_.load(std::memory_order_relaxed) & kKnock) != 0; }
  bool DropLost();
  void GiveUp();
  std::string Overwritten() const override;
  void End(PlaceCard::State state);

  void WakePeer(ShmConnection& connection) override { node_.RingAfterFence(connection.place()); }
  ssize_t ReadPeer(ShmConnection& connection, std::span<const iovec> to, uint64_t from, size_t bytes) override;
  bool StaysForLongData() override;
  void OnLost(ShmConnection& connection) override { lost_.push_back(connection.link().peer()); }
  void OnReady(uint32_t events) override;

  NodeSegment& node_;
  Engine& engine_;
  EventLoop& loop_;
  const size_t in_place_from_;
  const std::atomic<uint32_t>& own_attention_;
  std::vector<uint8_t> staging_;
  Cells cells_;
  uint8_t cookie_[sizeof(PlaceCard::cookie)];
  EventLoop::Registration bell_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by process
  std::vector<Peer*> open_;                   // the same that are not null
  std::vector<ProcessId> lost_;               // to be dropped when nobody is in them
  Clock::time_point look_at_{};               // the next time
  uint32_t polls_ = 0;
  bool asleep_ = false;
  bool stopping_ = false;
  bool ended_ = false;
};

}  // namespace weft::mpi::shm

#endif  // MPI_HYBRID_P2P_SHM_SHM_TRANSPORT_H_
