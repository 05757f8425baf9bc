#ifndef WIRES_SCTP_ASSOCIATION_ASSOCIATION_H_
#define WIRES_SCTP_ASSOCIATION_ASSOCIATION_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/buffer_pool.h"
#include "base/byte_reader.h"
#include "ddp/sctp/association.h"
#include "transport/network.h"
#include "transport/sctp/sctp.h"

namespace weft::sctp {

class Association;

// How long a session without a user may take to send its last messages.
inline constexpr std::chrono::seconds kLingerLimit{2};
// How long a message may be missing while later ones have arrived. SCTP gives up on a peer sooner than that.
inline constexpr std::chrono::seconds kGapLimit{60};
// How long a peer may acknowledge nothing although it answers otherwise and has room.
inline constexpr std::chrono::seconds kSilenceLimit{60};

// Bytes of messages that are held because an earlier one is missing, for all associations of this process.
size_t HeldInProcess();

// One session of an association, as its user holds it. Destruction ends the session at once, and takes the
// association's lock. All other calls require the lock.
class Seat {
 public:
  ~Seat();
  Seat(const Seat&) = delete;

  Association& association() const { return *association_; }
  ddp::sctp::Session& session() const { return *session_; }
  ddp::sctp::Association& core() const { return *core_; }
  // `wake` is called if the session has news, or has room for what it has to send. It is called without locks on the
  // network's thread.
  void SetWake(std::function<void()> wake) { wake_ = std::move(wake); }
  void WakeLater();
  // Called in each round by a thread that examines the session in a loop: `wake` need not be called. Needs no lock.
  void Lend();
  // Some of its data was not sent: the session is told when it is.
  void SetWantsRoom(bool wants);
  // A message was missing for kGapLimit: the session was aborted.
  bool gap_stayed() const { return gap_stayed_; }

 private:
  friend class Association;
  Seat(std::shared_ptr<Association> association, ddp::sctp::Association& core, ddp::sctp::Session& session);

  std::shared_ptr<Association> association_;
  ddp::sctp::Association* core_;
  ddp::sctp::Session* session_;
  std::function<void()> wake_;
  bool wants_room_ = false, gap_stayed_ = false;
  uint64_t gap_position_ = 0;
  transport::Time gap_since_{};  // zero: there is no gap
  transport::Time linger_until_{};
};

// One SCTP association and the DDP stream sessions on it. Moves messages between them, sends what sessions have, and
// wakes their users. Lives as long as it or one of its seats is held; then it is shut down in order.
class Association : public std::enable_shared_from_this<Association> {
 public:
  enum class State : uint8_t { kConnecting, kUp, kOver };

  // `network` and `pool` outlive it. The SCTP association needs a `receive_buffer` of at least 256 KiB, so that each
  // message arrives whole.
  static std::shared_ptr<Association> Make(transport::Network& network, BufferPool& pool,
                                           std::unique_ptr<transport::sctp::Association> association, bool initiator);
  ~Association();
  Association(const Association&) = delete;

  // The lock, for a scope (see wires/sctp/README.md). At its end, everything that may be sent is sent. After the lock
  // is released, users with news are woken, except the user of `own`, which looks itself.
  class Lock {
   public:
    explicit Lock(Association& association, const Seat* own = nullptr);
    // Does not wait. Not owned if another thread has the lock or waits for it: otherwise polling threads would take it
    // again and again before the waiting thread is awake.
    Lock(Association& association, const Seat* own, std::try_to_lock_t);
    ~Lock();
    bool owned() const { return owned_; }
    Lock(const Lock&) = delete;

   private:
    friend class Association;
    Lock(Association& association, const Seat* own, bool may_call);
    const std::shared_ptr<Association> association_;
    const Seat* const own_;
    const bool may_call_;  // the thread holds no other lock
    const bool owned_;
  };

  // The lock alone: for actions that give no user news, and that should not send yet.
  std::unique_lock<std::mutex> Hold() {
    Await();
    return {mutex_, std::adopt_lock};
  }

  // --- all that follows requires the lock ---

  State state() const { return state_; }
  int error() const { return error_; }  // for kOver: an errno
  const std::string& why() const { return why_; }
  // `wake` is called once, like that of Seat::SetWake(), when the state is no longer kConnecting.
  void WaitUntilUp(std::function<void()> wake) { waiting_until_up_.push_back(std::move(wake)); }

  // Asks the peer for a session (ddp::sctp::Association::Open()). null: no stream is free, or the association is not
  // kUp.
  std::unique_ptr<Seat> Open(ByteSpan private_data, bool enhanced);
  // `on_request` is called, like the `wake` of Seat::SetWake(), when TakeRequest() has something. Without it, requests
  // of the peer are refused.
  void SetOnRequest(std::function<void()> on_request);
  // A session that the peer requests, or null.
  std::unique_ptr<Seat> TakeRequest();
  // The owner no longer needs the session: its last messages are still sent, if that takes no longer than kLingerLimit.
  void Linger(std::unique_ptr<Seat> seat);

  // Receives at most `most` messages, as far as there is room. Returns false if there may be more.
  bool Read(unsigned most);
  // The same for a spinning thread, after it has polled the network.
  void Poll(unsigned most);
  // For faults.
  bool DamageNextPacket() { return transport_->DamageNextPacket(); }
  transport::Network& network() const { return network_; }
  // The watch of the socket for packets.
  transport::WatchId packet_watch() const { return packet_watch_; }
  // Sends the messages of a session. Returns false if not all may be sent now.
  bool SendOf(Seat& seat);

  const std::vector<transport::SocketAddress>& local_addresses() const { return local_; }
  const std::vector<transport::SocketAddress>& peer_addresses() const { return peer_; }
  size_t max_segment() const { return core_ == nullptr ? 0 : core_->options().max_segment; }
  // Every stream has a session.
  bool is_full() const { return core_ != nullptr && core_->sessions() >= core_->options().streams; }
  size_t sessions() const { return core_ == nullptr ? 0 : core_->sessions(); }

 private:
  friend class Seat;
  class Handler;
  using Wakes = std::vector<std::function<void()>>;
  // Work to do after the lock is released.
  struct Aftermath {
    Wakes wakes;
    std::vector<std::unique_ptr<Seat>> gone;
  };

  Association(transport::Network& network, BufferPool& pool, std::unique_ptr<transport::sctp::Association> association,
              bool initiator);

  void Await();  // locks mutex_
  void OnReady(transport::Interest ready);
  void OnEvent(const transport::sctp::Event& event);
  void OnPath(const transport::sctp::Event& event);
  void Begin(const transport::sctp::Event& event);
  void Over(int error, std::string why);
  bool Send(const ddp::sctp::Outgoing& outgoing, bool more);
  void SendAll();
  void Flush();
  void CollectNews(ddp::sctp::Association& core, const Seat* own, Wakes& wakes);
  Aftermath Finish(const Seat* own);
  void Tick();
  void CheckAcknowledged();
  void CheckAdvance();
  void CheckGaps();
  void ReleaseLingering(std::vector<std::unique_ptr<Seat>>& gone);
  bool needs_clock() const;

  transport::Network& network_;
  BufferPool& pool_;
  const bool initiator_;
  const std::unique_ptr<transport::sctp::Association> transport_;  // requires the lock

  std::atomic<unsigned> waiters_{0};  // threads that wait for mutex_
  std::mutex mutex_;                  // guards the members below
  State state_ = State::kConnecting;
  int error_ = 0;
  std::string why_;
  bool reading_ = true;                                        // the last SetReading()
  bool ended_ = false;                                         // there is nothing more to receive
  bool skipping_ = false;                                      // skips the rest of a message that is too long
  bool blocked_ = false;                                       // SCTP accepted no more
  bool unflushed_ = false;                                     // SCTP may hold accepted data until more follows
  std::unique_ptr<ddp::sctp::Association> core_;               // from kUp on
  // from before restarts of the peer, while their sessions are held
  std::vector<std::unique_ptr<ddp::sctp::Association>> lost_;
  uint64_t acknowledged_ = 0;                                  // of core_->taken()
  transport::Time last_tick_{};
  // When the peer last acknowledged something, or nothing was outstanding.
  transport::Time advanced_at_{};
  std::vector<Seat*> seats_;
  std::vector<std::unique_ptr<Seat>> lingering_;
  std::deque<std::pair<ddp::sctp::Association*, ddp::sctp::Session*>> requests_;
  std::function<void()> on_request_;
  Wakes waiting_until_up_, wakes_;
  size_t wanting_room_ = 0;  // number of seats
  std::vector<transport::SocketAddress> local_, peer_;
  std::vector<transport::SocketAddress> failed_paths_;  // of peer_
  bool clock_runs_ = false;
  // Constant from kUp on.
  transport::WatchId packet_watch_ = 0;
};

}  // namespace weft::sctp

#endif  // WIRES_SCTP_ASSOCIATION_ASSOCIATION_H_
