#ifndef PMI_LAUNCH_KVS_SESSION_H_
#define PMI_LAUNCH_KVS_SESSION_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pmi/launch/connection.h"
#include "pmi/server/reception.h"
#include "pmi/tls/tls_stream.h"
#include "transport/silent_peer.h"

namespace weft::pmi {

// A connection of the KVS server: a TCP socket, which it owns, and pending output. It begins in the reception.
class KvsSession {
 public:
  using Clock = std::chrono::steady_clock;

  // `job` must outlive it. `tls`: if set, all data goes through it.
  KvsSession(int fd, const Reception::Job* job, std::unique_ptr<TlsStream> tls);
  ~KvsSession();
  KvsSession(const KvsSession&) = delete;
  KvsSession& operator=(const KvsSession&) = delete;

  int fd() const { return fd_; }
  const std::string& peer() const { return peer_; }  // its address, for messages
  Clock::time_point since() const { return since_; }
  bool open() const { return open_; }
  // After it was closed: why, as the end of "it ..."
  const std::string& end() const { return end_; }

  // Its rank, once the reception knows it.
  std::optional<int> rank() const { return rank_; }
  void set_rank(int rank) { rank_ = rank; }
  // The rank for which it receives out-of-band messages.
  std::optional<int> listens_for() const { return listens_for_; }
  void set_listens_for(int rank) { listens_for_ = rank; }
  Reception& reception() { return reception_; }

  void Send(std::string_view bytes);
  // Sends as much as the socket accepts.
  void Flush();
  bool wants_to_write() const { return open_ && !out_.empty(); }
  bool has_room() const { return out_.size() < kMostUnread; }
  // Returns received data; empty: nothing now, or not open() any more. May close the session in either case.
  std::string Receive();
  void Close(std::string why);
  // Ends a connection to a host that is gone. Call it every few seconds.
  void LookForPeer(Clock::time_point now);

 private:
  void SendWire(std::string_view bytes);

  // bytes for a rank that does not read; beyond that its next requests wait
  static constexpr size_t kMostUnread = 1 << 20;

  const int fd_;
  const std::string peer_;
  const Clock::time_point since_ = Clock::now();
  const std::unique_ptr<TlsStream> tls_;
  Reception reception_;
  std::optional<int> rank_, listens_for_;
  Outbox out_;
  transport::SilentPeer silence_{kSilence};
  bool open_ = true;
  std::string end_;
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_KVS_SESSION_H_
