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

// usrsctp of this process, and the one lock around it. Packets go from the hosts' sockets to it and back in batches;
// its timers are driven by the network's; what becomes ready is gathered, and its handlers called when nothing is
// locked.
//
// Lock order: an owner's own lock, then this one, then the network's. Handlers are called without this one.
class Stack final : public World, private Outbox::Observer {
 public:
  // Of what follows, what says so is called under it.
  class Locked {
   public:
    // Takes the lock, and brings usrsctp's clock up to date.
    explicit Locked(Stack& stack, bool caller_dispatches = false);
    // Nothing is sent at the end of this one: another follows at once.
    void SetMoreFollows() { more_follows_ = true; }
    // Sends what was put out, and has the handlers called of what became ready, unless the caller sees to that.
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
    uint64_t damaged = 0;         // packets that are none of SCTP, malformed (MayEnter), or have a wrong checksum
    uint64_t strangers = 0;       // packets of a peer's address from a UDP port that is not the peer's
    uint64_t not_sent = 0;        // packets that the kernel did not take
    uint64_t output_batches = 0;  // calls that sent packets
    uint64_t input_batches = 0;   // looks that found some
    uint64_t posts = 0;           // times that another thread left calls of handlers to the network's
  };

  // One per process at a time, but for what a parent process of fork() left behind. `random`: fills memory; for tests.
  explicit Stack(std::function<void(void*, size_t)> random);
  ~Stack() override = default;

  // Takes the host's packets from now on. It has at least one address and one socket.
  void Attach(Host& host);
  // False in a child of the process that made this.
  bool InThisProcess() const;
  // Takes in what came to the host's sockets. Whether anything did. Not under the lock. `calm`: its handler is not to
  // be called.
  bool Pump(Host& host, bool caller_dispatches, const Watched* calm = nullptr);
  // The same of all hosts, for `mine`; what that is ready for, which its handler does not hear of.
  Interest Poll(Watched& mine);
  // `watched` is looked at over and over by a thread that spins: as Association::Lend(). Not under the lock.
  void Lend(Watched& watched) { dispatcher_.Lend(watched); }
  Counters counters() const;
  std::vector<std::vector<Path>> AllPaths();
  // At the process's end: every association is aborted, if the lock can be had soon.
  void AbortAll();
  // Waits until peers have acknowledged what was sent, also on associations that were closed in order: until nothing comes
  // for `quiet`, and `most` long at most. Another thread drives the network.
  void Drain(std::chrono::milliseconds quiet, std::chrono::milliseconds most);

  // --- under the lock ---

  // A socket that calls `watched` ready from now on.
  void Add(struct socket* socket, Watched& watched);
  // It goes. `abort`: the association is ended at once, else in order.
  void Close(struct socket* socket, Watched& watched, bool abort);
  void Rouse(Watched& watched) { dispatcher_.Rouse(watched); }
  // Makes addresses known that came since, if not all that are wanted are known.
  void LookForAddresses(Host& host, const std::vector<SocketAddress>& wanted);
  Ports& ports() { return ports_; }
  // As Ports::Leave.
  void LeavePort(uint16_t port, std::vector<PeerKey> awaited) { ports_.Leave(port, std::move(awaited), now_); }
  PeerTable& peers() { return peers_; }
  // It has a record from now on.
  void Accepted(const PeerKey& peer) { young_.erase(peer); }
  Outbox& outbox() { return outbox_; }
  // Of the socket by which packets come, of the first host.
  WatchId PacketWatch(bool udp, int family) const;
  std::vector<PeerRecord*>& scratch() { return scratch_; }  // for whoever needs one

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
  // From where it is to go out; nullopt: there is no way.
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
  // Its clock, in milliseconds.
  void AdvanceClock();
  void ScheduleTick();
  void OnTick();

  const unsigned born_;  // number of forks before
  const std::function<void(void*, size_t)> random_;
  mutable std::mutex mutex_;  // guards usrsctp and all that follows
  std::vector<Host*> hosts_;
  std::map<std::string, Host*> host_of_;  // by address, where there are several
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
  Time now_{};       // of the last look at the clock: when the lock was taken, or packets were
  Time ticked_{};    // up to which usrsctp's clock goes
  Time activity_{};  // of the last packet or call
  Counters counters_;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_STACK_H_
