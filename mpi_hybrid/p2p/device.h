#ifndef MPI_HYBRID_P2P_DEVICE_H_
#define MPI_HYBRID_P2P_DEVICE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/p2p/engine.h"
#include "mpi_hybrid/p2p/socket.h"
#include "mpi_hybrid/p2p/wire.h"

namespace weft::mpi {

struct Job;

// The sockets under an Engine: a listener, connections made on first use, and one epoll instance to sleep in. Guarded by the library's
// lock; only Sleep lets go of it.
//
// One connection per pair. Either side may open it and says hello; the other answers welcome, or busy when there is or will be another. When
// both open one at once, that of the lower rank stays. No frame is sent before the welcome, so that none is lost with the other.
class Device {
 public:
  // `job` and `engine` outlive it.
  Device(Job& job, Engine& engine) : job_(job), engine_(engine) {}
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Listens and publishes the address.
  Error Start();
  // Writes what is queued, says goodbye, waits until the others did too; gives up each when nothing moves for `patience`.
  void Stop(std::chrono::milliseconds patience = std::chrono::seconds(3));

  // Reads and writes what can be without sleeping; whether anything moved.
  bool Poll();
  // Writes what was queued since the last call, and connects where that is needed; whether anything was written.
  bool Flush();
  // Until a descriptor is ready, Wake(), or `timeout_ms` (-1: none) is over; then deals with it. Lets go of the lock. False: time-out.
  bool Sleep(int timeout_ms);
  void Wake();  // from any thread

  // A descriptor that ends Sleep while it is readable.
  void Watch(int fd);
  void Unwatch(int fd);

  // Opens connections to the processes that posted receives wait for, so that their death is noticed.
  void ConnectToAwaited();

  // Writes an eager message at once, without a request, when nothing stands in the way: the bytes that went out (of header and payload,
  // of `total`), 0 when nothing could be.
  size_t WriteAtOnce(Link& link, std::span<const iovec> pieces);
  bool IsIdle(const Link& link) const;  // open, nothing queued

 private:
  using Clock = std::chrono::steady_clock;
  // One that leads to a process of the job.
  struct Connection {
    enum class State : uint8_t { kConnecting, kGreeting, kOpen };
    Socket socket;
    Link* link = nullptr;
    State state = State::kConnecting;
    size_t low_water = 1;  // SO_RCVLOWAT
    bool blocked = false;  // the kernel's buffer is full: epoll tells when it is not
    size_t greeting_have = 0;
    uint8_t greeting[Greeting::kLength];
  };
  // One that was accepted and has not proven yet whose it is.
  struct Stranger {
    Socket socket;
    Clock::time_point since;
    size_t have = 0;
    uint8_t greeting[Greeting::kLength];
  };

  void Add(int fd, uint32_t events);
  void Modify(int fd, uint32_t events);
  bool DispatchReady(int timeout_ms);
  void OnReady(int fd, uint32_t events);

  Connection& Connect(Link& link, Socket socket);
  void StartConnect(Link& link);
  void OnConnecting(Connection& connection);
  void OnGreeting(Connection& connection);
  void Open(Connection& connection, const Greeting& greeting);
  void OnListener();
  void OnStranger(int fd);
  void Adopt(Stranger stranger, const Greeting& greeting);
  bool SendGreeting(const Socket& socket, ProcessId to, Greeting::Answer answer);

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
  JobSecret secret_;
  Socket listener_, epoll_, wake_;
  std::vector<std::unique_ptr<Connection>> connections_;  // by descriptor
  std::vector<std::unique_ptr<Stranger>> strangers_;      // by descriptor
  size_t stranger_count_ = 0;
  std::vector<Connection*> open_;  // state kOpen
  unsigned polls_ = 0;
  bool stopping_ = false;
  std::vector<uint8_t> staging_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_DEVICE_H_
