#ifndef TRANSPORT_SCTP_USRSCTP_STACK_H_
#define TRANSPORT_SCTP_USRSCTP_STACK_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "transport/network.h"
#include "transport/sctp/usrsctp/dispatcher.h"
#include "transport/sctp/usrsctp/host.h"
#include "transport/sctp/usrsctp/outbox.h"
#include "transport/sctp/usrsctp/peers.h"
#include "transport/sctp/usrsctp/ports.h"
#include "transport/sctp/usrsctp/seam.h"
#include "transport/sctp/usrsctp/watched.h"

namespace weft::transport::sctp {

// usrsctp of this process, and the one lock around it. Moves packets between the hosts' sockets and usrsctp in batches.
// The network's timers drive usrsctp's timers. Sockets that become ready are collected, and their handlers called when
// no lock is held.
//
// Lock order: an owner's own lock, then this one, then the network's. Handlers are called without this lock.
class Stack final : public World, private Outbox::Observer {
 public:
  // Holds the lock. Functions below that say so require it.
  class Locked {
   public:
    // Takes the lock, and updates usrsctp's clock.
    explicit Locked(Stack& stack, bool caller_dispatches = false);
    // Sends nothing at the end of this scope: another one follows at once.
    void SetMoreFollows() { more_follows_ = true; }
    // Sends waiting packets, and arranges that the handlers of ready sockets are called, unless the caller does that.
    ~Locked();
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

   private:
    Stack& stack_;
    const bool caller_dispatches_;
    bool more_follows_ = false;
  };

  struct Counters {
    uint64_t packets_in = 0, packets_out = 0;
    uint64_t damaged = 0;         // packets that are not SCTP, are malformed (MayEnter), or have a wrong checksum
    uint64_t strangers = 0;       // packets with a peer's address from a UDP port that is not the peer's
    uint64_t not_sent = 0;        // packets that the kernel did not accept
    uint64_t output_batches = 0;  // calls that sent packets
    uint64_t input_batches = 0;   // calls that received packets
    uint64_t posts = 0;           // times that another thread left calls of handlers to the network's thread
  };

  // Only one exists in a process, apart from what a parent process of fork() left behind. `random`: fills memory; for
  // tests.
  explicit Stack(std::function<void(void*, size_t)> random);
  ~Stack() override = default;

  // Starts to receive the host's packets. It has at least one address and one socket.
  void Attach(Host& host);
  // False in a child of the process that made it.
  bool InThisProcess() const;
  // Receives from the host's sockets. Returns whether anything arrived. Must be called without the lock. `calm`: its
  // handler is not called.
  bool Pump(Host& host, bool caller_dispatches, const Watched* calm = nullptr);
  // Like Pump() for all hosts, on behalf of `mine`. Returns what `mine` is ready for; its handler is not called for
  // that.
  Interest Poll(Watched& mine);
  // A spinning thread polls `watched`, see Association::Lend(). Must be called without the lock.
  void Lend(Watched& watched) { dispatcher_.Lend(watched); }
  Counters counters() const;
  std::vector<std::vector<Path>> AllPaths();
  // At the end of the process: aborts every association, if the lock is available soon.
  void AbortAll();
  // Waits until peers have acknowledged what was sent, also on associations closed in order; until nothing arrives for
  // `quiet`, and at most `most`. Another thread drives the network.
  void Drain(std::chrono::milliseconds quiet, std::chrono::milliseconds most);

  // --- these require the lock ---

  // From now on, `socket` reports readiness to `watched`.
  void Add(struct socket* socket, Watched& watched);
  // The socket is closed. `abort`: ends the association at once, otherwise in order.
  void Close(struct socket* socket, Watched& watched, bool abort);
  void Rouse(Watched& watched) { dispatcher_.Rouse(watched); }
  // Adds the addresses that appeared since, if one of `wanted` is unknown.
  void LookForAddresses(Host& host, const std::vector<SocketAddress>& wanted);
  Ports& ports() { return ports_; }
  // See Ports::Leave.
  void LeavePort(uint16_t port, std::vector<PeerKey> awaited) { ports_.Leave(port, std::move(awaited), now_); }
  PeerTable& peers() { return peers_; }
  // The peer has a record from now on.
  void Accepted(const PeerKey& peer) { young_.erase(peer); }
  Outbox& outbox() { return outbox_; }
  // The watch of the first host's socket for packets.
  WatchId PacketWatch(bool udp, int family) const;
  std::vector<PeerRecord*>& scratch() { return scratch_; }  // scratch memory for callers

 private:
  class SocketHandler;
  struct Attachment;
  struct Route {
    std::optional<SocketAddress> source;
    Time until;
  };

  static void OnUpcall(struct socket* socket, void* watched, int flags);

  uint64_t NowMicroseconds() override;
  void FillRandom(void* to, size_t count) override { random_(to, count); }
  uint8_t* RoomForOutput(size_t bytes) override;
  bool TakesData(const Packet& packet, bool in_doubt) override;
  int Output(const Packet& packet) override;

  Host* HostOf(const SocketAddress& address);
  static PeerKey KeyOf(const Packet& outgoing);
  // The source address of the packet; nullopt: there is no route.
  std::optional<SocketAddress> SourceFor(Host& host, const Packet& packet);
  bool TakeAll(Host& host);
  bool IsStranger(const Packet& packet, const PeerKey& key, PeerTable::const_iterator known) const;
  void NoteYoung(const Packet& cookie_ack, const PeerKey& key);
  void RefuseStranger(const Packet& stranger);
  void TakeRefusals(Host& host);
  void OnRefused(const RefusedDatagram& refused, std::span<const uint8_t> sent);
  void Take(const Host& host, const IncomingDatagram& datagram, std::span<const uint8_t> bytes, bool native);
  void Flush();
  bool HasUnacknowledged() const;
  void ShowIncoming(const Host& host, const Packet& packet, bool native);
  void OnPacket(const SocketAddress& from, const SocketAddress& to, const DatagramSocket& socket, std::span<const uint8_t> packet) override;
  void OnSent(size_t packets) override;
  void OnNotSent(const SocketAddress& to, int error) override;
  // Advances usrsctp's clock, which counts milliseconds.
  void AdvanceClock();
  void ScheduleTick();
  void OnTick();

  const unsigned born_;  // number of forks before it was made
  const std::function<void(void*, size_t)> random_;
  mutable std::mutex mutex_;  // guards usrsctp and everything below
  std::vector<Host*> hosts_;
  std::map<std::string, Host*> host_of_;  // by address, if there are several hosts
  std::vector<LocalAddress> known_;
  Outbox outbox_{*this};
  std::vector<uint8_t> incoming_bytes_;
  std::vector<IncomingDatagram> incoming_;
  Ports ports_;
  std::unordered_map<PeerKey, Route, PeerKeyHash> routes_;  // ports 0
  PeerTable peers_;
  struct Young {
    uint16_t udp_port;
    Time until;
  };
  std::unordered_map<PeerKey, Young, PeerKeyHash> young_;
  std::vector<PeerRecord*> scratch_;
  Dispatcher dispatcher_;
  std::map<struct socket*, Watched*> sockets_;
  bool ticking_ = false;
  Time now_{};       // last reading of the clock: when the lock was taken, or packets were
  Time ticked_{};    // time up to which usrsctp's clock was advanced
  Time activity_{};  // time of the last packet or call
  Counters counters_;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_STACK_H_
