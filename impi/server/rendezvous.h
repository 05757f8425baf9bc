#ifndef IMPI_SERVER_RENDEZVOUS_H_
#define IMPI_SERVER_RENDEZVOUS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "impi/wire/command.h"

namespace weft::impi {

// The server of one IMPI job (IMPI 0.0, section 2.3): it lets clients in, collects what they say about themselves, tells all of it to each, and waits until
// they have ended. It knows nothing of what the labels mean. No I/O and no clock: its owner carries the bytes and says what time it is.
class Rendezvous {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Connection = uint64_t;  // a number of the owner's, never used twice

  static constexpr int kMostClients = 32;  // bits of a mask
  // A connection that has not joined the job has so many seconds for it, and there are so many of them at most.
  static constexpr std::chrono::seconds kJoinPatience{10};
  static constexpr size_t kMostStrangers = 64;
  // When all clients have joined, they exchange what they have to say in so many seconds.
  static constexpr std::chrono::seconds kExchangePatience{60};
  static constexpr size_t kLongestPayload = 4 << 20;  // bytes, of a command of a client: 16 for each of 262,144 processes
  static constexpr size_t kMostSaid = 16 << 20;       // bytes, of what clients said and have not been told yet

  struct Setup {
    int clients = 1;                  // 1 to kMostClients
    std::vector<AuthMethod> methods;  // that it accepts, the preferred one first; not empty
    uint64_t key = 0;                 // of kKey
  };

  enum class State : uint8_t {
    kGathering,   // clients are missing
    kExchanging,  // all are there; not all have sent DONE
    kRunning,     // the job
    kEnded,       // all clients sent FINI
    kFailed,      // reason()
  };

  // What the owner does for it. No call may re-enter the server.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void Send(Connection connection, const Bytes& bytes) = 0;
    // After what was sent. The connection is not spoken of any more.
    virtual void Close(Connection connection) = 0;
    // What the user should know; the job goes on. Bounded: strangers cannot cause more than kMostWarnings.
    virtual void Warn(const std::string& text) = 0;
  };
  static constexpr int kMostWarnings = 100;

  Rendezvous(Setup setup, Owner& owner);

  void OnConnected(Connection connection, const std::string& address, Time now);
  void OnBytes(Connection connection, ByteSpan bytes, Time now);
  // The peer closed it, or it broke.
  void OnClosed(Connection connection);
  // When OnTime has something to do.
  std::optional<Time> deadline() const;
  void OnTime(Time now);

  State state() const { return state_; }
  // Why it failed: names the client, and what to do where that is known.
  const std::string& reason() const { return reason_; }

 private:
  // What a connection has to send next.
  enum class Awaits : uint8_t { kAuth, kKey, kRank, kCommands };
  struct Peer {
    std::string address;
    Time joins_by;
    CommandReader reader;
    Awaits awaits = Awaits::kAuth;
    std::optional<int> rank;  // of the client
  };
  struct Client {
    Connection connection = 0;
    std::string address;
    Label last = Label::kNone;  // that it sent
    bool done = false, ended = false;
  };

  void Read(Connection connection, Peer& peer, Time now);
  // What a stranger or a client said; false: the connection is no more.
  bool Authenticate(Connection connection, Peer& peer, const Command& command);
  bool CheckKey(Connection connection, Peer& peer, uint64_t key);
  bool Join(Connection connection, Peer& peer, const Command& command, Time now);
  bool Obey(Peer& peer, const Command& command);
  void Collect(int rank, const Command& command);
  void Finish(Connection connection, int rank);
  // Sends out what no client can add to any more.
  void Distribute();
  void SendToAll(const Command& command);
  bool Everybody(bool Client::*flag) const;

  void TurnAway(Connection connection, const std::string& why);
  void Fail(std::string reason);
  void Warn(const std::string& text);
  std::string NameOf(int rank) const;  // "client 1 (192.0.2.7:4711)"

  const Setup setup_;
  Owner& owner_;
  State state_ = State::kGathering;
  std::string reason_;
  std::map<Connection, Peer> peers_;
  std::vector<std::optional<Client>> clients_;  // by rank
  std::map<Label, std::map<int, Bytes>> said_;  // by client; what has not been told yet
  size_t said_bytes_ = 0;
  size_t strangers_ = 0;  // connections without a rank
  std::optional<Time> exchanged_by_;
  int warnings_ = 0;
};

}  // namespace weft::impi

#endif  // IMPI_SERVER_RENDEZVOUS_H_
