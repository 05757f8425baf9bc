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

// Between Weft ends: as long as an FPDU may be (RFC 5044 section 3).
inline constexpr size_t kLargestUlpdu = 64768;

// What both sides of MPA start-up have: a byte stream that is watched, the peer's frame as it comes, and the channel at
// the end.
class Session {
 public:
  Session(transport::Network& network, BufferPool& pool, const Settings& settings, host::MeetingPoint& meetings)
      : network_(network), pool_(pool), settings_(settings), meetings_(meetings) {}
  Session(const Session&) = delete;
  ~Session() {
    Unwatch();
    Withdraw();
  }

  void Open(std::unique_ptr<transport::ByteStream> stream, bool initiator);  // captured, if that is asked for
  bool is_open() const { return stream_ != nullptr; }
  transport::ByteStream& stream() { return *stream_; }
  const transport::ByteStream& stream() const { return *stream_; }
  void Watch(transport::Interest interest, std::shared_ptr<transport::ReadyHandler> handler);
  void SetInterest(transport::Interest interest) { network_.SetInterest(watch_, interest); }
  void Unwatch();
  void Abort();
  // Sends that, then the end, without more help.
  void CloseWith(std::vector<uint8_t> last_words);

  void ExpectFrame(bool reply) { frame_.emplace(reply); }
  bool has_bytes() const { return has_bytes_; }  // of the frame
  const StartFrame& frame() const { return frame_->frame(); }
  // True: it is complete. False: more is to come, or the attempt is over, which is in `*failure`. `what`: "MPA reply".
  bool ReadFrame(const char* what, llp::Progress* failure);

  // What of `ours` goes into a frame of this revision; `crc`: one of our own reasons for it.
  StartParams Params(const llp::Proposal& ours, uint8_t revision, bool crc) const;
  // What the peer says of itself, taken from its private data.
  void TakeTrailer(std::vector<uint8_t>& private_data);
  const std::optional<WeftTrailer>& trailer() const { return trailer_; }
  std::optional<llp::Claims> claims() const;
  // False: there is no room for it.
  bool AddTrailer(const llp::Claims& claims, bool enhanced, std::vector<uint8_t>& private_data) const;
  // The peer's address is one of this host's.
  static bool IsSameHost(const transport::SocketAddress& local, const transport::SocketAddress& remote) {
    return remote.is_loopback() || remote.SameHost(local);
  }
  bool WantsCrc(const llp::Proposal& ours, const transport::SocketAddress& peer, bool same_host) const;

  // Shared memory (wires/host), as far as this connection may have it. Initiator, before AddTrailer(), and with the peer's trailer; responder,
  // with the initiator's, before AddTrailer().
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
  std::optional<llp::Invitation> invitation_;  // ours, that was not followed yet
  std::unique_ptr<host::Met> met_;
};

}  // namespace weft::mpa

#endif  // WIRES_MPA_HANDSHAKE_SESSION_H_
