#ifndef IMPI_AGENT_DANCE_H_
#define IMPI_AGENT_DANCE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_reader.h"
#include "impi/job/job.h"
#include "impi/job/ranks.h"
#include "impi/wire/packet.h"

namespace weft::impi {

// How the agent of one host is connected with the hosts of all other clients (IMPI 0.0, section 2.3.8): it connects to those of lower ranks, one after the
// other in ascending order, and says its own rank in 32 bits to each; then it accepts those of higher ranks in any order, and each says its rank.
//
// The loop of the specification runs over all hosts. Two hosts of one client are left out here: the implementation is the same at both ends, so nobody else can
// tell, and Weft carries messages between them on its own network. What is left of the order is the same at all hosts, so nobody waits in a circle: the host of
// the lowest rank only accepts, and a connection is established before it is accepted.
//
// The specification has no other proof of who connects. By default its address has to be the one that the host announced, as LAM also wants it: others are
// strangers, and are refused without ending the job. No I/O and no clock. Nothing calls back: after each event the owner looks at step() and TakeRefused().
class Dance {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Connection = uint64_t;  // a number of the owner's, never used twice

  static constexpr size_t kGreeting = 4;       // bytes: the rank
  static constexpr size_t kMostStrangers = 64;  // connections that have not said who they are
  static constexpr std::chrono::seconds kGreetingPatience{10};

  enum class AddressRule : uint8_t {
    kAnnounced,  // a host connects from the address that it announced
    kAny,        // for hosts behind a router that changes addresses: who knows a rank and is the first one is believed
  };
  struct Setup {
    HostRank host;                          // whose agent this is
    std::chrono::seconds patience{60};      // until all are connected
    AddressRule rule = AddressRule::kAnnounced;
  };

  enum class Step : uint8_t {
    kConnect,  // to peer(), from the address that this host announced; then OnConnected or OnConnectFailed
    kAccept,   // any connection; then OnAccepted
    kDone,     // connections() are complete; the listener can be closed
    kFailed,   // reason()
  };
  struct Refusal {
    Connection connection;
    std::string why;  // "192.0.2.9 ..."; strangers can cause any number of them
  };

  // `job` outlives it.
  Dance(const Job& job, Setup setup, Time now);

  Step step() const { return step_; }
  HostRank peer() const;  // in kConnect
  // The connection to peer() is established. What is to be sent there first.
  std::vector<uint8_t> OnConnected(Connection connection);
  // `why`: as of strerror.
  void OnConnectFailed(const std::string& why);

  // A connection came in kAccept. `address`: its source, in either form.
  void OnAccepted(Connection connection, const HostId& address, Time now);
  // How many bytes may be read from a connection now. What follows the greeting belongs to the agent, and stays in the socket.
  size_t Wants(Connection connection) const;
  void OnBytes(Connection connection, ByteSpan bytes);  // at most Wants()
  // The other end closed it, or it broke. Also of those that are connected already.
  void OnClosed(Connection connection);

  // When OnTime has something to do.
  std::optional<Time> deadline() const;
  void OnTime(Time now);

  // To be closed; the owner warns of them. With kFailed and kDone those, too, that had not said who they are.
  std::vector<Refusal> TakeRefused();
  const std::map<HostRank, Connection>& connections() const { return connections_; }
  // Names the client and the host, and what to do.
  const std::string& reason() const { return reason_; }

 private:
  struct Stranger {
    HostId address;
    Time speaks_by;
    std::vector<uint8_t> said;
  };

  const Job::Host& own() const { return job_.host(setup_.host); }
  bool IsPartner(HostRank rank) const { return job_.host(rank).client != own().client; }
  bool IsAwaited(HostRank rank) const { return rank > setup_.host && IsPartner(rank) && !connections_.contains(rank); }
  bool FitsAny(const HostId& address) const;
  void Advance();
  void Welcome(Connection connection, const HostId& address, int32_t rank);
  void Refuse(Connection connection, const HostId& address, const std::string& why);
  void RefuseStrangers(const std::string& why);
  void Fail(std::string reason);

  const Job& job_;
  const Setup setup_;
  const Time connected_by_;
  Step step_ = Step::kAccept;
  int32_t next_ = 0;  // the lowest host that is not connected to
  std::map<HostRank, Connection> connections_;
  std::map<Connection, Stranger> strangers_;
  std::vector<Refusal> refused_;
  std::string reason_;
};

}  // namespace weft::impi

#endif  // IMPI_AGENT_DANCE_H_
