#ifndef MPI_HYBRID_P2P_TCP_ATTEMPT_H_
#define MPI_HYBRID_P2P_TCP_ATTEMPT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/job_secret.h"
#include "mpi_hybrid/p2p/greeting/greeting.h"
#include "mpi_hybrid/p2p/loop/event_loop.h"
#include "mpi_hybrid/p2p/tcp/dial.h"
#include "mpi_hybrid/p2p/tcp/socket.h"

namespace weft::mpi {

// One attempt to connect to a process: a connection that is being made, and the connector's side of the greeting on it
// (greeting.h).
class Attempt final : EventLoop::Handler {
 public:
  struct Result {
    enum class Kind : uint8_t {
      kWelcome,  // take the socket: frames may follow
      kBusy,     // another connection between the two exists or will exist
      kFailed,
    };
    Kind kind = Kind::kFailed;
    uint64_t window = 0;  // kWelcome: bytes of eager messages that the peer stores
    // kFailed: how it failed, and an errno; 0: end of the stream.
    Dial::End end = Dial::End::kNobody;
    int error = 0;
  };
  class Owner {
   public:
    // The last call for the attempt. The owner destroys it.
    virtual void OnEnd(Attempt& attempt, const Result& result) = 0;

   protected:
    ~Owner() = default;
  };

  // Connects to `process`. `hello`: describes both ends. `secret`: of their bond. All but the socket must outlive it.
  Attempt(Owner& owner, EventLoop& loop, ProcessId process, const JobSecret& secret, Socket socket, const Hello& hello,
          std::optional<EventLoop::Clock::time_point> give_up_at)
      : owner_(owner),
        process_(process),
        secret_(secret),
        socket_(std::move(socket)),
        about_(hello),
        give_up_at_(give_up_at),
        registration_(loop, socket_.get(), EPOLLIN, *this) {}

  ProcessId process() const { return process_; }
  // The peer has received our greeting, and may have accepted it.
  bool has_greeted() const { return state_ == State::kGreeting; }
  // Deadline for the first bytes of the peer.
  std::optional<EventLoop::Clock::time_point> give_up_at() const { return give_up_at_; }
  void GiveUp();
  // The connection, after kWelcome.
  Socket TakeSocket();

 private:
  enum class State : uint8_t {
    kConnecting,  // until the peer's challenge arrives
    kGreeting,    // until its answer arrives
  };

  void OnReady(uint32_t events) override;
  void OnConnecting();
  void OnGreeting();
  void Fail(int error, Dial::End end) { owner_.OnEnd(*this, {.end = end, .error = error}); }

  Owner& owner_;
  const ProcessId process_;
  const JobSecret secret_;
  Socket socket_;
  const Hello about_;
  State state_ = State::kConnecting;
  std::optional<EventLoop::Clock::time_point> give_up_at_;
  size_t have_ = 0;  // bytes of the challenge or the answer
  uint8_t challenge_[Challenge::kLength];
  uint8_t hello_[Hello::kLength];
  uint8_t answer_[Answer::kLength];
  EventLoop::Registration registration_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_TCP_ATTEMPT_H_
