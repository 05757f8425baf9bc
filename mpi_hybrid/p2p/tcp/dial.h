#ifndef MPI_HYBRID_P2P_TCP_DIAL_H_
#define MPI_HYBRID_P2P_TCP_DIAL_H_

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "transport/socket_address.h"

namespace weft::mpi {

// Manages the attempts to reach one process: which of its addresses is next, when, and when to stop. No I/O; the caller
// opens the sockets.
//
// Addresses are tried in order. If in one round nothing accepts a connection, or only other processes do, the process
// is dead. If a connection was accepted but closed (the peer has no resources for more), further rounds follow for
// kPatience. A lack of descriptors, memory or ports in this process is waited for as long. Neither means that the
// process is dead; the call then fails. Time in which the program computes outside of MPI says nothing about the peer.
// Therefore patience also requires kFewestAttempts; it does not end by time alone.
//
// The kernel accepts connections for a process that computes; the process itself sends nothing until it enters MPI. If
// a round found one such silent address, the next attempt waits there without a limit. Several silent addresses are
// tried in turn, each time for longer.
class Dial {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kPatience = std::chrono::seconds(30);
  static constexpr int kFewestAttempts = 20;
  // time for one of several addresses to answer; doubled after a round in which all were silent
  static constexpr auto kAddressLimit = std::chrono::seconds(10);
  static constexpr auto kMostAddressLimit = std::chrono::minutes(10);
  static constexpr auto kBusyPause = std::chrono::seconds(1);
  static constexpr auto kRoomLook = std::chrono::milliseconds(100);

  enum class Next {
    kTry,          // at retry_at(), with address()
    kDead,         // the process is dead
    kUnreachable,  // the call fails
  };

  // How a failed attempt ended.
  enum class End {
    kNobody,   // nothing accepted the connection
    kAnother,  // another process accepted it, and said so
    kSilent,   // it was accepted, but nothing was received on it
    kClosed,   // it was accepted and then closed
  };

  // `published`: "HOST:PORT[,HOST:PORT...]". nullopt: it contains no address.
  static std::optional<Dial> Make(const std::string& published);

  const transport::SocketAddress& address() const { return addresses_[at_]; }
  Clock::time_point retry_at() const { return retry_at_; }
  // An attempt begins. Returns the time to give it up; nullopt: no limit.
  std::optional<Clock::time_point> Begin(Clock::time_point now);
  // The attempt failed.
  Next Failed(Clock::time_point now, End end);
  // The process itself answered that it is making a connection of its own. If that arrives, this Dial is no longer
  // needed; otherwise the same address is tried again.
  void Busy(Clock::time_point now);
  // The attempt could not begin.
  Next NoRoom(Clock::time_point now);

 private:
  Next EndRound(Clock::time_point now);

  std::vector<transport::SocketAddress> all_;        // at least one
  std::vector<transport::SocketAddress> addresses_;  // of this round: all, or those that were silent
  size_t at_ = 0;
  int rounds_ = 0;  // rounds that have ended
  int looks_for_room_ = 0;  // since no_room_since_
  // State of this round.
  bool somebody_ = false;  // a peer has closed a connection
  std::vector<transport::SocketAddress> silent_;
  Clock::duration limit_ = kAddressLimit;
  Clock::time_point retry_at_{};
  std::optional<Clock::time_point> since_, no_room_since_;
};

// The text for Dial::Make. Contains as many of the addresses as fit into `most` characters, at least the first.
std::string JoinAddresses(const std::vector<transport::SocketAddress>& addresses, size_t most);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_TCP_DIAL_H_
