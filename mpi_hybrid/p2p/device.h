#ifndef MPI_HYBRID_P2P_DEVICE_H_
#define MPI_HYBRID_P2P_DEVICE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/job_secret.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/p2p/tcp/dial.h"
#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/loop/event_set.h"
#include "mpi_hybrid/p2p/tcp/greeting.h"
#include "mpi_hybrid/p2p/tcp/socket.h"
#include "mpi_hybrid/p2p/tcp/strangers.h"

namespace weft::mpi {

struct Job;

// The sockets under an Engine: a listener, connections made on first use, and one epoll instance to sleep in. Guarded by the library's
// lock; only Sleep lets go of it.
//
// One connection per pair. Either side may open it (dial.h); both prove that they are of the job (greeting.h), and the listener (strangers.h)
// answers welcome, or busy when there is or will be another. When both greet at once, the connection of the lower rank stays; the other asks
// again until that is there, since it may never be. No frame is sent before the welcome, so that none is lost with the other.
//
// Having no descriptor for a connection says nothing of the peer: it is tried again, and after Dial::kPatience the sends that wait for it fail.
class Device {
 public:
  // `job` and `engine` outlive it.
  Device(Job& job, Engine& engine) : job_(job), engine_(engine) {}
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Raises the limit on descriptors, listens and publishes the addresses.
  Error Start();
  // Writes what is queued, says goodbye, waits until the others did too; gives up each when nothing moves for `patience`.
  void Stop(std::chrono::milliseconds patience = std::chrono::seconds(3));

  // Reads and writes what can be without sleeping; whether anything moved.
  bool Poll();
  // Writes what was queued since the last call, and connects where that is needed; whether anything was written.
  bool Flush();
  // Until a descriptor is ready, Wake(), `timeout_ms` (-1: none) is over, or time brings something; then deals with it. Lets go of the lock. False: no
  // descriptor was ready.
  bool Sleep(int timeout_ms);
  void Wake();  // from any thread

  // A descriptor that ends Sleep while it is readable.
  void Watch(int fd);
  void Unwatch(int fd);

  // Opens connections to the processes that posted receives and probes wait for, so that their death is noticed; for MPI_ANY_SOURCE to 16 that
  // follow this one in the communicator.
  void ConnectToAwaited();
  // How many attempts to connect ended without telling whether the process lives. Who waits for it has nothing to learn its death by then.
  unsigned unreached() const { return unreached_; }

  // Writes an eager message at once, without a request, when nothing stands in the way: the bytes that went out (of header and payload,
  // of `total`), 0 when nothing could be.
  size_t WriteAtOnce(Link& link, std::span<const iovec> pieces);
  bool IsIdle(const Link& link) const;  // open, nothing queued

 private:
  using Clock = std::chrono::steady_clock;
  // One that leads to a process of the job.
  struct Connection {
    enum class State : uint8_t {
      kConnecting,  // until the other side's challenge is here
      kGreeting,    // ... its answer
      kOpen,
    };
    Socket socket;
    Link* link = nullptr;
    State state = State::kConnecting;
    size_t low_water = 1;  // SO_RCVLOWAT
    bool blocked = false;  // the kernel's buffer is full: epoll tells when it is not
    std::optional<Clock::time_point> give_up_at;  // kConnecting
    size_t have = 0;                              // bytes of the challenge or the answer
    uint8_t challenge[Challenge::kLength];
    uint8_t hello[Hello::kLength];
    uint8_t answer[Answer::kLength];
  };

  bool DispatchReady(int timeout_ms);
  void OnReady(int fd, uint32_t events);

  Connection& Connect(Link& link, Socket socket);
  void StartConnect(Link& link);
  void TryDial(ProcessId process);
  void OnDialEnd(ProcessId process, Dial::Next next, const Error& error);
  void OnConnecting(Connection& connection);
  void OnGreeting(Connection& connection);
  void OnNotGreeted(Connection& connection, int error, Dial::End end);
  void Open(Connection& connection, uint64_t window);
  void Admit(Visitor visitor);
  bool AnswerVisitor(const Visitor& visitor, Answer::Kind kind);
  void BoundSendBuffer(const Socket& socket);

  // What time brings: attempts to connect that are due, or took too long.
  std::optional<Clock::time_point> deadline() const;
  void OnTime();

  // Lets the kernel report a long body only when much of it is there; before a sleep.
  void RaiseLowWater();
  void SetLowWater(Connection& connection, size_t bytes);

  bool Read(Connection& connection);
  bool Write(Connection& connection);  // whether any byte went, or the connection; either may have completed requests
  void OnWriteError(Connection& connection, int error);
  // Closes; what needs the process fails unless it left in order.
  void Lost(Connection& connection, int error, const char* what);
  void Close(Connection& connection);
  static Connection* ConnectionOf(const Link& link) { return static_cast<Connection*>(link.connection); }

  bool HasOutput() const;
  template <typename Done>
  void PollUntil(Done done, std::chrono::milliseconds patience);

  Job& job_;
  Engine& engine_;
  std::optional<JobSecret> secret_;
  EventSet events_;
  Socket wake_;
  std::vector<std::unique_ptr<Connection>> connections_;  // by descriptor
  std::optional<Strangers> strangers_;
  std::map<ProcessId, Dial> dials_;  // that are not open yet
  std::optional<Clock::time_point> told_of_shortage_;
  std::vector<Connection*> open_;  // state kOpen
  unsigned polls_ = 0;
  unsigned unreached_ = 0;
  bool stopping_ = false;
  std::vector<uint8_t> staging_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_DEVICE_H_
