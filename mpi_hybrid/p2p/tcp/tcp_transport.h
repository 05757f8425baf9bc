#ifndef MPI_HYBRID_P2P_TCP_TCP_TRANSPORT_H_
#define MPI_HYBRID_P2P_TCP_TCP_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/p2p/device/transport.h"
#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/loop/event_loop.h"
#include "mpi_hybrid/p2p/tcp/attempt.h"
#include "mpi_hybrid/p2p/tcp/connection.h"
#include "mpi_hybrid/p2p/tcp/dial.h"
#include "mpi_hybrid/p2p/tcp/socket.h"
#include "mpi_hybrid/p2p/tcp/strangers.h"

namespace weft::mpi {

struct Job;

// Links over TCP, one connection each.
//
// Either side may open the connection (dial.h). Both sides prove who they are (greeting.h). The listener (strangers.h)
// answers "welcome", or "busy" if there is or will be another connection. If both greet at the same time, the
// connection of the lower name stays. The other process asks again until that connection exists, because it may fail.
// No frame is sent before the welcome, so that none is lost with the other connection.
//
// A lack of descriptors says nothing about the peer: the connection is tried again, and after Dial::kPatience the sends
// that wait for it fail.
class TcpTransport final : public Transport, Attempt::Owner, Connection::Owner {
 public:
  // `job`, `engine` and `loop` must outlive it. `short_buffers`: use small kernel buffers for connections within this
  // host. `beside_another`: another wire carries most messages, so that this one is polled less often.
  TcpTransport(Job& job, Engine& engine, EventLoop& loop, bool short_buffers, bool beside_another = false);

  // Listens at the job's addresses, and publishes them.
  Error Start() override;
  Error Listen() override;
  bool Reaches(ProcessId) const override { return true; }
  void Connect(Link& link) override;
  bool Flush(Link& link) override;
  size_t WriteAtOnce(Link& link, std::span<const iovec> pieces, size_t total, uint32_t flow) override;
  size_t WriteSoon(Link& link, std::span<const iovec> pieces, size_t total, uint32_t flow) override;
  bool Poll() override;
  bool Arm() override;
  // The timer: attempts to connect that are due or took too long, and peers whose hosts are gone.
  std::optional<EventLoop::Clock::time_point> deadline() const override;
  void OnTime(EventLoop::Clock::time_point now) override;
  void StopConnecting() override { stopping_ = true; }
  void EndOutput(Link& link) override;
  bool HasConnections() const override { return !open_.empty(); }
  void Close() override;
  bool IsConnected(const Link& link) const override;
  void Drop(const Link& link) override;

 private:
  using Clock = EventLoop::Clock;
  // A process to which there is no connection yet.
  struct Call {
    Dial dial;
    std::unique_ptr<Attempt> attempt;  // null: none until dial.retry_at()
  };

  Connection* ConnectionOf(ProcessId process) const {
    const size_t at = static_cast<size_t>(process);
    return at < connections_.size() ? connections_[at].get() : nullptr;
  }
  void TryDial(ProcessId process);
  void OnDialEnd(ProcessId process, Dial::Next next, const Error& error);
  void OnFailed(ProcessId process, const Attempt::Result& result);
  void Open(Link& link, Socket socket, uint64_t window);
  void Admit(Visitor visitor);
  bool AnswerVisitor(const Visitor& visitor, Answer::Kind kind);

  void OnEnd(Attempt& attempt, const Attempt::Result& result) override;
  void OnLost(Connection& connection) override;
  void OnTurnOver(Connection& connection) override;

  Job& job_;
  Engine& engine_;
  EventLoop& loop_;
  const bool short_buffers_, beside_another_;
  std::vector<uint8_t> staging_;
  Corks corks_;
  std::optional<Strangers> strangers_;
  std::map<ProcessId, Call> calls_;
  std::optional<Clock::time_point> told_of_shortage_;
  Clock::time_point look_at_{};  // next check whether the peers' hosts still answer
  std::vector<std::unique_ptr<Connection>> connections_;  // by process
  std::vector<Connection*> open_;                         // those that are not null
  std::vector<ProcessId> turns_, turns_now_;              // connections that have more to write
  std::vector<ProcessId> holding_;                        // connections that have held frames since the last poll
  unsigned polls_ = 0;
  bool stopping_ = false;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_TCP_TCP_TRANSPORT_H_
