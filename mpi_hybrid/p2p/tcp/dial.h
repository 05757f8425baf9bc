#ifndef MPI_HYBRID_P2P_TCP_DIAL_H_
#define MPI_HYBRID_P2P_TCP_DIAL_H_

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "transport/socket_address.h"

namespace weft::mpi {

// The attempts to reach one process: which of its addresses is next, when, and when to stop. No I/O; the caller opens
// the sockets.
//
// Addresses are tried in order. Where one round through them found nobody at all, or others in its place, the process is dead. Where somebody was
// there but closed the connection (it has no room for more), there are more rounds, for kPatience; as long is waited for
// a descriptor, memory or a port here. Neither says that the process is dead: then the call fails. Time in which the program computes, outside of
// MPI, tells nothing of the peer: patience ends after kFewestAttempts, too, not by time alone.
//
// A kernel accepts for a process that computes, which itself says nothing until it looks. Where a round found such a silent address, that one is
// waited for without a limit; several take turns, each time for longer.
class Dial {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kPatience = std::chrono::seconds(30);
  static constexpr int kFewestAttempts = 20;
  static constexpr auto kAddressLimit = std::chrono::seconds(10);  // for one of several addresses to answer; doubled after a round of silence
  static constexpr auto kMostAddressLimit = std::chrono::minutes(10);
  static constexpr auto kBusyPause = std::chrono::seconds(1);
  static constexpr auto kRoomLook = std::chrono::milliseconds(100);

  enum class Next {
    kTry,          // at retry_at(), address()
    kDead,         // nobody is there
    kUnreachable,  // the call fails
  };

  // How an attempt ended without success.
  enum class End {
    kNobody,   // nothing accepted the connection
    kAnother,  // another process did, and said so
    kSilent,   // it was accepted, and nothing said on it
    kClosed,   // it was accepted, and closed
  };

  // `published`: "HOST:PORT[,HOST:PORT...]". nullopt: no address in it.
  static std::optional<Dial> Make(const std::string& published);

  const transport::SocketAddress& address() const { return addresses_[at_]; }
  Clock::time_point retry_at() const { return retry_at_; }
  // An attempt begins; when to give it up, if at all.
  std::optional<Clock::time_point> Begin(Clock::time_point now);
  // It ended.
  Next Failed(Clock::time_point now, End end);
  // It ended with the process itself, which says that a connection of its own making is on its way. If that comes, this Dial is over; else the
  // same address is asked again.
  void Busy(Clock::time_point now);
  // It could not begin.
  Next NoRoom(Clock::time_point now);

 private:
  Next EndRound(Clock::time_point now);

  std::vector<transport::SocketAddress> all_;        // at least one
  std::vector<transport::SocketAddress> addresses_;  // of this round: all, or those that were silent
  size_t at_ = 0;
  int rounds_ = 0;  // that have ended
  int looks_for_room_ = 0;  // since no_room_since_
  // In this round.
  bool somebody_ = false;  // closed a connection
  std::vector<transport::SocketAddress> silent_;
  Clock::duration limit_ = kAddressLimit;
  Clock::time_point retry_at_{};
  std::optional<Clock::time_point> since_, no_room_since_;
};

// What Dial::Make takes; as many of the addresses as fit in `most` characters, at least the first.
std::string JoinAddresses(const std::vector<transport::SocketAddress>& addresses, size_t most);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_TCP_DIAL_H_
