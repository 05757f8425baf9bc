#ifndef WIRES_MPA_HANDSHAKE_SESSION_H_
#define WIRES_MPA_HANDSHAKE_SESSION_H_

#include <memory>
#include <optional>
#include <vector>

#include "base/buffer_pool.h"
#include "base/settings.h"
#include "llp/handshake.h"
#include "wires/mpa/channel/channel.h"
#include "mpa/start_up.h"
#include "transport/network.h"
#include "wires/host/meeting/meeting_point.h"

namespace weft::mpa {

// Between Weft ends: the longest that RFC 5044 section 3 allows.
inline constexpr size_t kLargestUlpdu = 64768;

// The common parts of both sides of the MPA start-up: a watched byte stream, the peer's frame as it arrives, and the
// channel at the end.
class Session {
 public:
  Session(transport::Network& network, BufferPool& pool, const Settings& settings, host::MeetingPoint& meetings)
      : network_(network), pool_(pool), settings_(settings), meetings_(meetings) {}
  Session(const Session&) = delete;
  ~Session() {
    Unwatch();
    Withdraw();
  }

  void Open(std::unique_ptr<transport::ByteStream> stream, bool initiator);  // captured, if asked for
  bool is_open() const { return stream_ != nullptr; }
  transport::ByteStream& stream() { return *stream_; }
  const transport::ByteStream& stream() const { return *stream_; }
  void Watch(transport::Interest interest, std::shared_ptr<transport::ReadyHandler> handler);
  void SetInterest(transport::Interest interest) { network_.SetInterest(watch_, interest); }
  void Unwatch();
  void Abort();
  // Sends `last_words`, then the end of the stream, without further calls.
  void CloseWith(std::vector<uint8_t> last_words);

  void ExpectFrame(bool reply) { frame_.emplace(reply); }
  bool has_bytes() const { return has_bytes_; }  // part of the frame
  const StartFrame& frame() const { return frame_->frame(); }
  // Returns true if the frame is complete. Returns false if more must arrive, or if the attempt is over; see
  // `*failure`. `what`: "MPA reply".
  bool ReadFrame(const char* what, llp::Progress* failure);

  // The part of `ours` for a frame of this revision. `crc`: whether we have a reason of our own for CRCs.
  StartParams Params(const llp::Proposal& ours, uint8_t revision, bool crc) const;
  // Takes what the peer says about itself from its private data.
  void TakeTrailer(std::vector<uint8_t>& private_data);
  const std::optional<WeftTrailer>& trailer() const { return trailer_; }
  std::optional<llp::Claims> claims() const;
  // Returns false if there is no room.
  bool AddTrailer(const llp::Claims& claims, bool enhanced, std::vector<uint8_t>& private_data) const;
  // Whether the peer's address is one of this host's.
  static bool IsSameHost(const transport::SocketAddress& local, const transport::SocketAddress& remote) {
    return remote.is_loopback() || remote.SameHost(local);
  }
  bool WantsCrc(const llp::Proposal& ours, const transport::SocketAddress& peer, bool same_host) const;

  // Shared memory (wires/host), as far as this connection may use it. Initiator: before AddTrailer(), and with the
  // peer's trailer. Responder: with the initiator's trailer, before AddTrailer().
  void Invite(const llp::Proposal& ours);
  void Collect(const llp::Proposal& ours);
  void Visit(const llp::Proposal& ours);
  void Withdraw();

  static llp::Agreement Agreement(const StartOutcome& outcome);
  std::unique_ptr<llp::Channel> MakeChannel(const StartOutcome& outcome, const llp::Proposal& ours, bool initiator,
                                            std::vector<uint8_t> reply);

  transport::Network& network() { return network_; }
  BufferPool& pool() { return pool_; }
  const Settings& settings() const { return settings_; }

 private:
  size_t MaxUlpdu(const StartOutcome& outcome) const;
  bool MayShareMemory(const llp::Proposal& ours) const;
  std::unique_ptr<llp::Channel> ShareMemory(std::unique_ptr<llp::Channel> tcp, const llp::Proposal& ours, bool initiator);

  transport::Network& network_;
  BufferPool& pool_;
  const Settings& settings_;
  host::MeetingPoint& meetings_;
  std::unique_ptr<transport::ByteStream> stream_;
  transport::WatchId watch_ = 0;
  std::optional<StartFrameCollector> frame_;
  bool has_bytes_ = false;
  std::optional<WeftTrailer> trailer_;
  std::optional<llp::Invitation> invitation_;  // ours, not followed yet
  std::unique_ptr<host::Met> met_;
};

}  // namespace weft::mpa

#endif  // WIRES_MPA_HANDSHAKE_SESSION_H_
