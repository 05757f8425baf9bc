#ifndef MPI_HYBRID_DYNAMIC_PORTS_H_
#define MPI_HYBRID_DYNAMIC_PORTS_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/dynamic/port_name.h"
#include "mpi_hybrid/p2p/progress.h"
#include "mpi_hybrid/p2p/request/request.h"

namespace weft::mpi {

// This process's ports, and how two processes meet at one (MPI 4.0 section 11.9): the one that has the port's name
// knocks, with a message in a context that all processes have for that; the other says that it accepts, or that the port
// is closed; and the first says that it is still there. From then on the two have a bridge, a communicator of their own.
//
//   to the port's context, tag NUMBER          knock, withdraw (tag NUMBER + kWithdraw):  | 1 or 2 | context |
//   to the context that the knock named        accept, closed:                            | 3 or 4 | context |
//   to the context that the acceptance named   go:                                        | 5      | 0       |
//
// Big-endian words. With the library's lock.
class Ports final : private ProgressStage {
 public:
  using Clock = std::chrono::steady_clock;
  using Deadline = std::optional<Clock::time_point>;  // nullopt: none

  static Ports& Instance();

  // MPI_ERR_OTHER: this process cannot listen.
  Error Open(std::string* name);
  // MPI_ERR_PORT: it is not open here. Those who wait at it are told.
  Error Close(const std::string& name);

  // Waits for the next who comes to the port, which is this process's. MPI_ERR_PORT: it is not open here; nobody came in
  // time.
  Error Accept(const std::string& name, Deadline deadline, Ref<Comm>* bridge);
  // Comes to a port of another process. MPI_ERR_PORT: the name is none, nobody is there, it is closed, or is not accepted
  // in time.
  Error Connect(const std::string& name, Deadline deadline, Ref<Comm>* bridge);

 private:
  enum class Word : uint32_t { kKnock = 1, kWithdraw = 2, kAccept = 3, kClosed = 4, kGo = 5 };
  static constexpr size_t kMessage = 8;
  static constexpr int kWithdrawTag = 1 << 28;
  struct Said {
    Word word = Word::kGo;
    ContextId context = 0;
  };
  // A message that may be on its way for longer than the call that sent it.
  struct Sending {
    uint8_t bytes[kMessage];
    Request* request = nullptr;
  };
  struct Knock {
    ProcessId process = 0;
    ContextId context = 0;  // for the answer
  };

  Ports();

  bool Poll() override;
  bool Arm() override { return !Poll(); }
  int fd() const override { return -1; }

  Error FindOpen(const std::string& name, PortName* port) const;
  Error Say(Comm& comm, int tag, const Said& said, Sending** sending = nullptr);
  Error Hear(Comm& comm, Said* said, Deadline deadline, bool* heard);
  std::optional<Knock> TakeKnock(int tag);
  void TakeWithdrawals(int32_t number);
  void TellClosed(const Knock& knock);
  bool IsThere(int tag);
  Error AwaitGo(int32_t number, const Knock& knock, Comm& bridge, Deadline deadline, bool* came);
  void ForgetSent();

  static constexpr size_t kMostClosed = 64;  // of which those who knock are told so

  std::map<int32_t, PortName> open_;  // by number
  std::deque<int32_t> closed_;        // oldest first
  int32_t next_number_ = 1;
  Ref<Comm> knocks_;  // where they come in
  unsigned knocks_seen_ = 0;
  std::set<std::pair<ProcessId, ContextId>> withdrawn_;
  std::vector<std::unique_ptr<Sending>> sending_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DYNAMIC_PORTS_H_
