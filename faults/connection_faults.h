#ifndef FAULTS_CONNECTION_FAULTS_H_
#define FAULTS_CONNECTION_FAULTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "faults/injector.h"
#include "transport/network.h"
#include "transport/socket_address.h"

// The faults of what passes over a connection (cut, reset, blackhole, delay, bandwidth, corrupt, and a port that is down), whatever carries it:
// which there are, and when they strike. What is then done is the affair of who owns the connection.
namespace weft::faults {

// What a connection is, for selectors and for log lines.
struct ConnectionInfo {
  uint32_t qp = 0;
  std::string device;
  bool crc = false;  // what is corrupted is found
};

// Whether any such fault may concern the connection, now. Counts nothing.
bool ConcernsConnection(const ConnectionInfo& info, const transport::SocketAddress& peer);
// Whether it needs CRC, so that what is corrupted is found.
bool WantsCrc(const ConnectionInfo& info, const transport::SocketAddress& peer);

// Of one connection. Time is the network's, so that it works in virtual time as well. Used by one thread at a time.
class ConnectionFaults {
 public:
  enum class End : uint8_t {
    kNone,
    kCut,      // in order, at both ends
    kReset,    // takes what was not read with it
    kGivenUp,  // this end gives up; the peer, beyond a blackhole, hears nothing
  };

  // `wake`: called by the network's timers, without locks, when Update() has something new. `network` outlives it. Faults are chosen now.
  ConnectionFaults(ConnectionInfo info, const transport::SocketAddress& peer, transport::Network& network, std::function<void()> wake);
  ~ConnectionFaults();
  ConnectionFaults(const ConnectionFaults&) = delete;

  // The plan changed: what is no longer in it ends, what is new begins.
  void Reselect();

  // Brings all that follows up to date. True: the connection has come to its end by this.
  bool Update();
  // So many bytes went, in either direction.
  void Passed(size_t bytes) { passed_ += bytes; }

  End end() const { return end_; }
  void SetEnd(End end) { end_ = end; }
  bool shut() const { return shut_; }                             // nothing passes
  uint64_t bits_per_second() const { return bits_per_second_; }  // at most; 0: no limit
  // How much later than now what is sent now arrives.
  transport::Duration Delay();
  // How many bytes may pass until a fault that counts them strikes; UINT64_MAX: there is none.
  uint64_t UntilByteFault() const;
  // What is sent now is to be damaged, if StrikeCorruption(), which counts it and says `what` in the log, agrees.
  bool CorruptionIsDue();
  bool StrikeCorruption(const std::string& what);

  uint64_t passed() const { return passed_; }
  void WakeAt(transport::Time when);

 private:
  // A fault that was chosen for this connection.
  struct Armed {
    std::shared_ptr<ActiveFault> active;
    transport::Time from{};  // after=
    bool struck = false;     // logged and counted
    transport::Time struck_at{};
    bool over = false;
  };

  const Fault& Of(const Armed& armed) const { return armed.active->fault; }
  void Select(Kind kind, const Place& place);
  bool IsDue(const Armed& armed, transport::Time now) const;
  bool Strike(Armed& armed, transport::Time now);
  Armed* Corruption();
  std::string Where(const std::string& what) const;

  const ConnectionInfo info_;
  const transport::SocketAddress peer_;
  transport::Network& network_;
  // Shared with timers, which may fire while this is destroyed.
  struct Waker {
    std::mutex mutex;
    std::function<void()> wake;
    transport::Time armed = transport::Time::max();
  };
  const std::shared_ptr<Waker> waker_;
  const transport::Time established_;

  std::vector<Armed> armed_;
  bool shut_ = false;
  End end_ = End::kNone;
  uint64_t bits_per_second_ = 0;
  uint64_t passed_ = 0;
};

}  // namespace weft::faults

#endif  // FAULTS_CONNECTION_FAULTS_H_
