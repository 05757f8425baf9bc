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

// Faults that act on the data of a connection (cut, reset, blackhole, delay, bandwidth, corrupt, and a port that is
// down), on any wire: which there are, and when they strike. The owner of the connection carries them out.
namespace weft::faults {

// The properties of a connection, for selectors and for log lines.
struct ConnectionInfo {
  uint32_t qp = 0;
  std::string device;
  bool crc = false;  // corruption is detected
};

// Whether such a fault may concern the connection now. Counts nothing.
bool ConcernsConnection(const ConnectionInfo& info, const transport::SocketAddress& peer);
// Whether the connection needs CRC, so that corruption is detected.
bool WantsCrc(const ConnectionInfo& info, const transport::SocketAddress& peer);

// The faults of one connection. Uses the network's time, so it also works in virtual time. Used by one thread at a
// time.
class ConnectionFaults {
 public:
  enum class End : uint8_t {
    kNone,
    kCut,      // in order, at both ends
    kReset,    // data that was not read is lost
    kGivenUp,  // this end gives up; behind a blackhole, the peer is not told
  };

  // `wake`: called by the network's timers, without locks, when Update() has something new. `network` outlives this
  // object. The faults are chosen now.
  ConnectionFaults(ConnectionInfo info, const transport::SocketAddress& peer, transport::Network& network, std::function<void()> wake);
  ~ConnectionFaults();
  ConnectionFaults(const ConnectionFaults&) = delete;

  // The plan has changed: ends the faults that are no longer in it, and begins the new ones.
  void Reselect();

  // Updates the values below. Returns true if the connection has now ended.
  bool Update();
  // So many bytes have passed, in either direction.
  void Passed(size_t bytes) { passed_ += bytes; }

  End end() const { return end_; }
  void SetEnd(End end) { end_ = end; }
  bool shut() const { return shut_; }                             // no data may pass
  uint64_t bits_per_second() const { return bits_per_second_; }  // maximum; 0: no limit
  // How much later data that is sent now must arrive.
  transport::Duration Delay();
  // Number of bytes that may pass until a fault that counts bytes strikes; UINT64_MAX: there is none.
  uint64_t UntilByteFault() const;
  // Whether data that is sent now is to be damaged, if StrikeCorruption() is true, too; that one counts the fault and
  // logs it with `what`.
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
