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

// A connection of the KVS server's: a socket of TCP, which it owns, and what is on its way out. It begins at the reception.
class KvsSession {
 public:
  using Clock = std::chrono::steady_clock;

  // `job` outlives it. With `tls` all of it goes through that.
  KvsSession(int fd, const Reception::Job* job, std::unique_ptr<TlsStream> tls);
  ~KvsSession();
  KvsSession(const KvsSession&) = delete;
  KvsSession& operator=(const KvsSession&) = delete;

  int fd() const { return fd_; }
  const std::string& peer() const { return peer_; }  // its address, for messages
  Clock::time_point since() const { return since_; }
  bool open() const { return open_; }
  // Once it is closed: why the connection ended, the end of "it ..."
  const std::string& end() const { return end_; }

  // The rank that it is, once the reception knows.
  std::optional<int> rank() const { return rank_; }
  void set_rank(int rank) { rank_ = rank; }
  // The rank that listens to it for out-of-band messages.
  std::optional<int> listens_for() const { return listens_for_; }
  void set_listens_for(int rank) { listens_for_ = rank; }
  Reception& reception() { return reception_; }

  void Send(std::string_view bytes);
  // Sends what the socket takes.
  void Flush();
  bool wants_to_write() const { return open_ && !out_.empty(); }
  bool has_room() const { return out_.size() < kMostUnread; }
  // What has come; empty: nothing now, or not open() any more. May close it all the same.
  std::string Receive();
  void Close(std::string why);
  // Ends a connection to a host that is gone; every few seconds.
  void LookForPeer(Clock::time_point now);

 private:
  void SendWire(std::string_view bytes);

  static constexpr size_t kMostUnread = 1 << 20;  // bytes for one that does not read; then its next questions wait

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
