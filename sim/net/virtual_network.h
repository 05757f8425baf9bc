#ifndef SIM_NET_VIRTUAL_NETWORK_H_
#define SIM_NET_VIRTUAL_NETWORK_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/net/connection.h"
#include "sim/net/link.h"
#include "sim/net/random.h"
#include "sim/net/virtual_clock.h"
#include "transport/network.h"

namespace weft::sim {

class VirtualListener;
class VirtualDatagramSocket;
struct VirtualDatagram;

// A network in virtual time, in one thread. The same seed gives the same run. The thread that calls Step is the
// network's thread. Time passes only there; each call of a handler takes a little time.
//
// Used directly it is one host with every address. AddHost makes further hosts, each a Network of its own. A connection
// crosses a link whose faults SetLink sets, for each direction.
class VirtualNetwork : public transport::Network {
 public:
  explicit VirtualNetwork(uint64_t seed);
  // All streams and listeners must be gone, except for those that waiting work and watches own; these are dropped.
  ~VirtualNetwork() override;

  // Adds a host with these addresses ("10.0.0.1", "fd00::1") and its own loopback addresses. The network owns it.
  transport::Network& AddHost(const std::vector<std::string>& addresses);

  // Sets the faults of connections opened from now on, for bytes from one host to the other, by address.
  void SetLink(const std::string& from, const std::string& to, const LinkFaults& faults);
  // For all links that SetLink does not name. The function is called for each direction of each connection.
  void SetDefaultLink(const LinkFaults& faults);
  void SetDefaultLink(std::function<LinkFaults(const SocketAddress& from, const SocketAddress& to)> choose);
  // Called for each datagram that is sent. It may change the datagram, but not its length. null: no change.
  void SetDatagramChange(std::function<void(std::vector<uint8_t>& bytes)> change) { datagram_change_ = std::move(change); }
  // Breaks every existing connection.
  void BreakAll(LinkFaults::Cut how);

  // Runs one handler or one piece of work; lets time pass until there is one. Returns false if nothing is left.
  bool Step();
  // Runs until nothing is left. Returns false if that takes more than `most_steps`.
  bool RunUntilIdle(size_t most_steps = 50'000'000);
  // Runs until this time, and advances to it even if nothing is left.
  void RunUntil(Time when);
  void RunFor(Duration duration) { RunUntil(Now() + duration); }
  // Runs until `done` is true. Returns false if nothing is left or the time is over before that.
  bool RunUntil(const std::function<bool()>& done, Duration most = std::chrono::hours(1));

  // Records a line for each event from now on, for ToString.
  void EnableTrace();
  std::string ToString() const { return trace_; }
  uint64_t seed() const { return seed_; }

  Result<std::unique_ptr<transport::ByteStream>, int> StartConnect(const SocketAddress& local,
                                                                   const SocketAddress& remote) override;
  Result<std::unique_ptr<transport::Listener>, int> Listen(const SocketAddress& local, int backlog, bool only_v6,
                                                           bool reuse_address) override;
  transport::WatchId Watch(transport::ByteStream& stream, Interest interest,
                           std::shared_ptr<transport::ReadyHandler> handler) override;
  transport::WatchId Watch(transport::Listener& listener, std::shared_ptr<transport::ReadyHandler> handler) override;
  Result<std::unique_ptr<transport::DatagramSocket>, int> OpenDatagram(const SocketAddress& local,
                                                                       const transport::DatagramOptions& options) override;
  transport::WatchId Watch(transport::DatagramSocket& socket, Interest interest,
                           std::shared_ptr<transport::ReadyHandler> handler) override;
  void SetInterest(transport::WatchId id, Interest interest) override;
  void Unwatch(transport::WatchId id) override;
  Time Now() override { return clock_.Now(); }
  transport::TimerId RunAt(Time when, std::function<void()> work) override;
  bool Cancel(transport::TimerId id) override;
  void Post(std::function<void()> work) override;

 private:
  class Host;
  friend class VirtualListener;

  struct WatchEntry {
    Interest interest;
    std::shared_ptr<transport::ReadyHandler> handler;
    std::function<Interest()> ready;
    const void* source = nullptr;  // what is watched
    bool queued = false;           // in maybe_ready_
  };

  // The host that `address` reaches from `from`; nullptr: none.
  Host* HostOf(const SocketAddress& address, Host* from);
  VirtualListener* FindListener(Host* host, const SocketAddress& address);
  Result<std::unique_ptr<transport::ByteStream>, int> Connect(Host& from, SocketAddress local,
                                                              const SocketAddress& remote);
  Result<std::unique_ptr<transport::Listener>, int> ListenOn(Host& host, SocketAddress local, int backlog,
                                                             bool only_v6);
  Result<std::unique_ptr<transport::DatagramSocket>, int> OpenDatagramOn(Host& host, SocketAddress local,
                                                                         const transport::DatagramOptions& options);
  void DatagramLeaves(Host& host, VirtualDatagramSocket& socket, VirtualDatagram datagram);
  void DatagramArrives(Host& from, VirtualDatagramSocket* sender, VirtualDatagram datagram);
  void SynArrives(std::shared_ptr<VirtualConnection> connection, Host& from, int attempt);
  LinkFaults LinkBetween(const SocketAddress& from, const SocketAddress& to);
  uint16_t EphemeralPort();

  transport::WatchId AddWatch(const void* source, Interest interest, std::shared_ptr<transport::ReadyHandler> handler,
                              std::function<Interest()> ready);
  void Changed(const void* source);
  void Enqueue(transport::WatchId id, WatchEntry& entry);
  bool DispatchOne();
  void Trace(const std::string& line);

  const uint64_t seed_;
  Random random_;
  VirtualClock clock_;
  VirtualConnection::Environment environment_;
  std::unique_ptr<Host> everywhere_;  // the host that the network itself represents
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<VirtualListener*> listeners_;
  std::vector<VirtualDatagramSocket*> datagram_sockets_;
  std::function<void(std::vector<uint8_t>&)> datagram_change_;
  std::vector<std::weak_ptr<VirtualConnection>> connections_;
  std::map<std::pair<std::string, std::string>, LinkFaults> links_;
  std::function<LinkFaults(const SocketAddress&, const SocketAddress&)> default_link_;
  uint16_t last_port_ = 32767;

  transport::WatchId last_watch_ = 0;
  std::map<transport::WatchId, WatchEntry> watches_;
  std::map<const void*, transport::WatchId> watch_of_;
  std::vector<transport::WatchId> maybe_ready_;
  bool stepping_ = false;

  std::string trace_;
};

}  // namespace weft::sim

#endif  // SIM_NET_VIRTUAL_NETWORK_H_
