#ifndef MPI_HYBRID_P2P_SCTP_SCTP_TRANSPORT_H_
#define MPI_HYBRID_P2P_SCTP_SCTP_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/job_secret.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/p2p/device/transport.h"
#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/loop/event_loop.h"
#include "mpi_hybrid/p2p/sctp/bell.h"
#include "mpi_hybrid/p2p/sctp/card.h"
#include "mpi_hybrid/p2p/sctp/connection.h"
#include "transport/network.h"
#include "transport/sctp/sctp.h"

namespace weft::mpi {

struct Job;

// Links over SCTP, one association each. Either side may start it; both sides say and prove who they are before their
// first message (connection.h). If both have greeted, each on an association of its own, the association of the lower
// name stays. Nothing is lost with the other one, because data sent with a greeting counts as sent only after the
// welcome.
//
// `network` handles SCTP's packets and timers. Its thread answers peers while the program computes, and rings the bell
// when a wait sleeps; a wait that polls drives the network itself.
class SctpTransport final : public Transport, SctpConnection::Owner, EventLoop::Handler {
 public:
  using Clock = EventLoop::Clock;
  // peers that connected and have not proven who they are; when full, the oldest is dropped
  static constexpr size_t kMostStrangers = 64;
  static constexpr auto kShortest = std::chrono::seconds(1);  // ... if it has had this much time
  // with a peer that closes each association, or with a lack of resources
  static constexpr auto kPatience = std::chrono::seconds(30);
  static constexpr int kFewestAttempts = 20;
  static constexpr auto kPause = std::chrono::milliseconds(500);  // between attempts

  // All but `settings` must outlive it.
  SctpTransport(Job& job, Engine& engine, EventLoop& loop, transport::Network& network, transport::sctp::Sctp& sctp,
                const transport::sctp::Settings& settings);
  ~SctpTransport() override;

  // Listens at the addresses of the settings, or else at those of the job, and publishes them.
  Error Start() override;
  Error Listen() override;
  bool Reaches(ProcessId) const override { return true; }
  void Connect(Link& link) override;
  bool Flush(Link& link) override;
  size_t WriteAtOnce(Link& link, std::span<const iovec> pieces, size_t total, uint32_t flow) override;
  bool Poll() override;
  bool Arm() override;
  std::optional<Clock::time_point> deadline() const override;
  void OnTime(Clock::time_point now) override;
  void StopConnecting() override { stopping_ = true; }
  void EndOutput(Link& link) override;
  bool HasConnections() const override;
  void Close() override;
  bool IsConnected(const Link& link) const override;
  void Drop(const Link& link) override;

 private:
  struct Guest {
    std::unique_ptr<SctpConnection> connection;
    Clock::time_point since;
  };
  // A process to which there is no association yet.
  struct Call {
    Card card;
    int attempts = 0;
    Clock::time_point since;
    std::optional<Clock::time_point> retry_at;  // nullopt: an association is being made
  };

  SctpConnection* ConnectionOf(ProcessId process) const {
    const size_t at = static_cast<size_t>(process);
    return at < connections_.size() ? connections_[at].get() : nullptr;
  }
  SctpConnection* Find(uint64_t number) const;
  std::optional<Card> CardOf(ProcessId process, Error* error);
  std::unique_ptr<SctpConnection> NewConnection(std::unique_ptr<transport::sctp::Association> association, bool up);
  SctpConnection& Install(ProcessId process, std::unique_ptr<SctpConnection> connection);
  void Drop(ProcessId process);
  void Try(ProcessId process);
  void TryAgain(ProcessId process, const std::string& why);
  bool TakeGuests();
  bool HearBell();
  bool ReadAndWrite(uint64_t number);
  bool Settle(uint64_t number, bool moved);
  void OnEnd(ProcessId process, int error);

  void OnReady(uint32_t events) override;
  bool OnProven(SctpConnection& connection, ProcessId process, const Nonce& nonce) override;
  void OnOpen(SctpConnection& connection) override { calls_.erase(connection.link()->peer()); }
  void OnTurnOver(SctpConnection& connection) override { turns_.push_back(connection.number()); }

  Job& job_;
  Engine& engine_;
  EventLoop& loop_;
  transport::Network& network_;
  transport::sctp::Sctp& sctp_;
  transport::sctp::Settings settings_;  // Start() sets their addresses
  std::vector<uint8_t> staging_;
  Card card_;
  uint8_t challenge_[Challenge::kLength];
  std::shared_ptr<Bell> bell_;
  EventLoop::Registration registration_;
  std::shared_ptr<Porter> porter_;
  std::list<Guest> guests_;  // by age
  std::map<ProcessId, Call> calls_;
  std::vector<std::unique_ptr<SctpConnection>> connections_;  // by process
  std::vector<ProcessId> by_process_;                         // those with a connection
  std::unordered_map<uint64_t, SctpConnection*> by_number_;   // those, and the guests'
  uint64_t next_number_ = 1;
  std::vector<uint64_t> turns_, turns_now_;  // connections that have more to do
  bool stopping_ = false;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_SCTP_SCTP_TRANSPORT_H_
