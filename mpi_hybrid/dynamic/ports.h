#ifndef MPI_HYBRID_DYNAMIC_PORTS_H_
#define MPI_HYBRID_DYNAMIC_PORTS_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/dynamic/port_name.h"
#include "mpi_hybrid/p2p/progress.h"
#include "mpi_hybrid/p2p/request/request.h"

namespace weft::mpi {

// This process's ports, and how two processes meet at one (MPI 4.0 section 11.9). The caller has the port's name and knocks, with a message
// in a context that all processes have for that. The owner of the port accepts the knock, the caller says that it is still there, and the
// owner says that the two have met. From then on they have a bridge, a communicator of their own.
//
//   to the port's context, tag NUMBER          knock, withdraw (tag NUMBER + kWithdraw):  | 1 or 2      | context |
//   to the context that the knock named        accept, closed, met:                       | 3, 4 or 6   | context |
//   to the context that the acceptance named   go:                                        | 5           | 0       |
//
// Big-endian words. Each knock is answered in the end, by "met" or by "closed": the latter if the port is closed, or if the caller has
// withdrawn it. A caller whose time is over withdraws its knock, and keeps the context of its bridge until that answer, behind which nothing
// comes. Once it has said go, it waits for the answer: the owner may have met it already. With the library's lock.
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
  enum class Word : uint32_t { kKnock = 1, kWithdraw = 2, kAccept = 3, kClosed = 4, kGo = 5, kMet = 6 };
  static constexpr size_t kMessage = 8;
  static constexpr int kWithdrawTag = 1 << 28;
  // How long a caller whose knock was accepted keeps others waiting behind it. It may be stopped; it is met when it goes on.
  static constexpr std::chrono::seconds kGoPatience{1};
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
    Ref<Comm> way;          // of the answer; keeps the process's number
    bool operator==(const Knock& other) const { return process == other.process && context == other.context; }
  };
  // A message that is being received; the next one on `bridge` where there is one. Gives up the receive at its end.
  struct Hearing {
    ~Hearing();
    Ref<Comm> bridge;
    Knock knock;  // whose it is; its process alone where it is a message to a port
    uint8_t bytes[kMessage] = {};
    Request* receive = nullptr;
  };
  using Hearings = std::list<std::unique_ptr<Hearing>>;
  struct Port {
    PortName name;
    std::deque<Knock> knocks;  // not accepted
    Hearings accepted;         // ... and have not said go, or it was not taken yet
  };

  Ports();

  bool Poll() override;
  bool Arm() override { return !Poll(); }
  int fd() const override { return -1; }

  Error FindOpen(const std::string& name, int32_t* number) const;
  Port* Find(int32_t number);  // null: it is not open (any more)
  Error Say(Comm& comm, int tag, const Said& said);
  Error StartHearing(Hearing& hearing);
  Error Hear(Comm& comm, Said* said, Deadline deadline, bool* heard);
  void Answer(const Knock& knock, Word word);
  bool TakeMessages();
  void TakeMessage(const Hearing& message);
  void Withdraw(int32_t number, const Knock& knock);
  Error AcceptNext(Port& port, bool* accepted);
  Ref<Comm> TakeGo(Port& port);
  void LeaveTo(Ref<Comm> bridge);
  bool ForgetLeft();
  void ForgetSent();

  std::map<int32_t, Port> open_;  // by number
  int32_t next_number_ = 1;
  Ref<Comm> knocks_;  // where they come in
  unsigned knocks_seen_ = 0;
  Hearings messages_;  // to ports, that are coming in
  Hearings left_;      // knocks that were withdrawn, until their answers have come
  std::vector<std::unique_ptr<Sending>> sending_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DYNAMIC_PORTS_H_
