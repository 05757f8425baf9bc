#ifndef IMPI_ENTRY_RECEPTION_H_
#define IMPI_ENTRY_RECEPTION_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_reader.h"
#include "impi/wire/command.h"

namespace weft::impi {

// Where the processes of a host come in: each says its rank (hello.h), once. A connection of another user, a wrong hello or a rank that is not here or not
// new is refused, and the job goes on. No I/O and no clock. Nothing calls back: after each event the owner looks at TakeWelcomed() and TakeRefused().
class Reception {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Connection = uint64_t;  // a number of the owner's, never used twice

  static constexpr size_t kMostWaiting = 64;  // connections that have not said who they are
  static constexpr std::chrono::seconds kPatience{10};

  struct Refusal {
    Connection connection;
    std::string why;  // "user 1001 ..."
    Bytes last_words;  // to be sent, if it can be done at once; may be empty
  };
  struct Guest {
    Connection connection;
    int32_t place;  // in the ranks of the constructor
    bool takes_connections;  // Hello
  };

  // `ranks`: of the processes of this host, in their client's MPI_COMM_WORLD, in the order of the job. `user`: whose processes they are.
  Reception(std::vector<int32_t> ranks, uid_t user);

  // Whether another connection may be accepted now.
  bool has_room() const { return waiting_.size() < kMostWaiting; }
  // `user`: of the other end.
  void OnAccepted(Connection connection, uid_t user, Time now);
  // How many bytes may be read from a connection now. What follows stays in the socket.
  size_t Wants(Connection connection) const;
  void OnBytes(Connection connection, ByteSpan bytes);  // at most Wants()
  // The other end closed it, or it broke.
  void OnClosed(Connection connection);

  // When OnTime has something to do.
  std::optional<Time> deadline() const;
  void OnTime(Time now);

  // They get WLCM, and belong to the agent from now on.
  std::vector<Guest> TakeWelcomed();
  // To be closed; the owner warns of them.
  std::vector<Refusal> TakeRefused();
  // Whether the process of this place has said its rank.
  bool HasCome(size_t place) const { return came_[place]; }

 private:
  struct Stranger {
    Time speaks_by;
    std::vector<uint8_t> said;
  };
  using Waiting = std::map<Connection, Stranger>;

  Waiting::iterator Refuse(Waiting::iterator stranger, const std::string& what);

  std::map<int32_t, size_t> place_of_;  // by rank
  std::vector<bool> came_;              // by place
  const uid_t user_;
  Waiting waiting_;
  std::vector<Guest> welcomed_;
  std::vector<Refusal> refused_;
};

}  // namespace weft::impi

#endif  // IMPI_ENTRY_RECEPTION_H_
