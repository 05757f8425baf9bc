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

// The ports of this process, and the protocol by which two processes meet at one (MPI 4.0 section 11.9). The caller has
// the port's name and knocks: it sends a message in a context that all processes reserve for that. The owner of the
// port accepts the knock. The caller confirms that it is still there ("go"). The owner replies that the two have met.
// From then on they have a bridge, a communicator of their own.
//
//   to the port's context, tag NUMBER          knock, withdraw (tag NUMBER + kWithdraw):  | 1 or 2      | context |
//   to the context in the knock                accept, closed, met:                       | 3, 4 or 6   | context |
//   to the context in the acceptance           go:                                        | 5           | 0       |
//
// Words are big-endian. Each knock is answered in the end, with "met" or with "closed". "Closed" means that the port is
// closed or that the caller has withdrawn the knock. A caller whose deadline has passed withdraws its knock. It keeps
// the context of its bridge until the answer, after which no further message comes. Once it has sent "go" it waits for
// the answer, because the owner may already have met it. Call with the library's lock held.
class Ports final : private ProgressStage {
 public:
  using Clock = std::chrono::steady_clock;
  using Deadline = std::optional<Clock::time_point>;  // nullopt: none

  static Ports& Instance();

  // MPI_ERR_OTHER: this process cannot listen.
  Error Open(std::string* name);
  // MPI_ERR_PORT: the port is not open in this process. Callers that wait at it are told.
  Error Close(const std::string& name);

  // Waits for the next caller at the port, which this process owns. MPI_ERR_PORT: the port is not open in this process,
  // or no caller came before the deadline.
  Error Accept(const std::string& name, Deadline deadline, Ref<Comm>* bridge);
  // Connects to a port of another process. MPI_ERR_PORT: the name is not a port name, the process does not answer, the
  // port is closed, or the knock was not accepted before the deadline.
  Error Connect(const std::string& name, Deadline deadline, Ref<Comm>* bridge);

 private:
  enum class Word : uint32_t { kKnock = 1, kWithdraw = 2, kAccept = 3, kClosed = 4, kGo = 5, kMet = 6 };
  static constexpr size_t kMessage = 8;
  static constexpr int kWithdrawTag = 1 << 28;
  // How long a caller whose knock was accepted delays the callers behind it. It may be a stopped process; it meets the
  // owner when it goes on.
  static constexpr std::chrono::seconds kGoPatience{1};
  struct Said {
    Word word = Word::kGo;
    ContextId context = 0;
  };
  // A message that may be in flight for longer than the call that sent it.
  struct Sending {
    uint8_t bytes[kMessage];
    Request* request = nullptr;
  };
  struct Knock {
    ProcessId process = 0;
    ContextId context = 0;  // for the answer
    Ref<Comm> way;          // communicator for the answer; keeps the process's number in use
    bool operator==(const Knock& other) const { return process == other.process && context == other.context; }
  };
  // A message that is being received: the next one on `bridge` if that is set. The destructor cancels the receive.
  struct Hearing {
    ~Hearing();
    Ref<Comm> bridge;
    Knock knock;  // its sender; only the process is set for a message to a port
    uint8_t bytes[kMessage] = {};
    Request* receive = nullptr;
  };
  using Hearings = std::list<std::unique_ptr<Hearing>>;
  struct Port {
    PortName name;
    std::deque<Knock> knocks;  // not accepted yet
    Hearings accepted;         // accepted, and their "go" has not arrived or was not taken yet
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
  Ref<Comm> knocks_;  // the communicator in which knocks arrive
  unsigned knocks_seen_ = 0;
  Hearings messages_;  // incoming messages to ports
  Hearings left_;      // withdrawn knocks, until their answers have come
  std::vector<std::unique_ptr<Sending>> sending_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DYNAMIC_PORTS_H_
