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

// How long the last words of a session nobody has any more may take to go out.
inline constexpr std::chrono::seconds kLingerLimit{2};
// How long a message may be missing that has others behind it. SCTP gives up on a peer sooner than that.
inline constexpr std::chrono::seconds kGapLimit{60};
// How long a peer that answers otherwise, and has room, may acknowledge nothing.
inline constexpr std::chrono::seconds kSilenceLimit{60};

// Bytes that messages held for a gap take, of all associations of this process.
size_t HeldInProcess();

// One session of an association, in the hands of its user. Destruction ends the session at once, and takes the
// association's lock; all the rest is used with the lock held.
class Seat {
 public:
  ~Seat();
  Seat(const Seat&) = delete;

  Association& association() const { return *association_; }
  ddp::sctp::Session& session() const { return *session_; }
  ddp::sctp::Association& core() const { return *core_; }
  // Called when there is news of the session, or room for what it has to send, without locks, on the network's thread.
  void SetWake(std::function<void()> wake) { wake_ = std::move(wake); }
  void WakeLater();
  // A thread that spins looks at the session over and over, and says so at each round: its wake need not be called. Needs no lock.
  void Lend();
  // What it has to send did not go out: it is to hear when that is gone.
  void SetWantsRoom(bool wants);
  // A message that is missing has been for kGapLimit: the session was aborted.
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
  transport::Time gap_since_{};  // zero: there was none
  transport::Time linger_until_{};
};

// One SCTP association and the DDP stream sessions on it: brings messages from one to the other, sends what sessions
// have to say, and tells their users. Lives as long as somebody holds it or a seat; then it is shut down in order.
class Association : public std::enable_shared_from_this<Association> {
 public:
  enum class State : uint8_t { kConnecting, kUp, kOver };

  // `network` and `pool` outlive it. `receive_buffer` of the SCTP association is to be 256 KiB or more, so that each
  // message comes whole.
  static std::shared_ptr<Association> Make(transport::Network& network, BufferPool& pool,
                                           std::unique_ptr<transport::sctp::Association> association, bool initiator);
  ~Association();
  Association(const Association&) = delete;

  // The lock, for a scope (see wires/sctp/README.md). At the end of it all that may be sent is sent, and whoever has
  // news is told, behind the lock: but for `own`, which looks for itself.
  class Lock {
   public:
    explicit Lock(Association& association, const Seat* own = nullptr);
    // Without a wait. Not owned where another thread has it, or waits for it: threads that poll would take it again and again before that one is awake.
    Lock(Association& association, const Seat* own, std::try_to_lock_t);
    ~Lock();
    bool owned() const { return owned_; }
    Lock(const Lock&) = delete;

   private:
    friend class Association;
    Lock(Association& association, const Seat* own, bool may_call);
    const std::shared_ptr<Association> association_;
    const Seat* const own_;
    const bool may_call_;  // the thread holds no lock at all
    const bool owned_;
  };

  // The lock without the rest: for what gives nobody news, and is not to send yet.
  std::unique_lock<std::mutex> Hold() {
    Await();
    return {mutex_, std::adopt_lock};
  }

  // --- all that follows with the lock held ---

  State state() const { return state_; }
  int error() const { return error_; }  // of kOver: an errno
  const std::string& why() const { return why_; }
  // `wake` is called once, as Seat::SetWake() says, when it is not kConnecting any more.
  void WaitUntilUp(std::function<void()> wake) { waiting_until_up_.push_back(std::move(wake)); }

  // Asks the peer for a session (ddp::sctp::Association::Open()). Null: there is no stream for it, or it is not kUp.
  std::unique_ptr<Seat> Open(ByteSpan private_data, bool enhanced);
  // Called, as Seat::SetWake() says, when TakeRequest() has something. Without it, requests of the peer are refused.
  void SetOnRequest(std::function<void()> on_request);
  // A session that the peer asks for, or null.
  std::unique_ptr<Seat> TakeRequest();
  // Its owner is done with it: what it has to say still goes out, if that takes no longer than kLingerLimit.
  void Linger(std::unique_ptr<Seat> seat);

  // Receives at most `most` messages, as far as there is room. False: there may be more.
  bool Read(unsigned most);
  // The same for a thread that spins, after a look at the network.
  void Poll(unsigned most);
  // For faults.
  bool DamageNextPacket() { return transport_->DamageNextPacket(); }
  transport::Network& network() const { return network_; }
  // Of the socket that packets come by.
  transport::WatchId packet_watch() const { return packet_watch_; }
  // Sends what a session has. False: not all of it may go now.
  bool SendOf(Seat& seat);

  const std::vector<transport::SocketAddress>& local_addresses() const { return local_; }
  const std::vector<transport::SocketAddress>& peer_addresses() const { return peer_; }
  size_t max_segment() const { return core_ == nullptr ? 0 : core_->options().max_segment; }
  // Each stream has a session.
  bool is_full() const { return core_ != nullptr && core_->sessions() >= core_->options().streams; }
  size_t sessions() const { return core_ == nullptr ? 0 : core_->sessions(); }

 private:
  friend class Seat;
  class Handler;
  using Wakes = std::vector<std::function<void()>>;
  // What is to be done when the lock was let go.
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
  const std::unique_ptr<transport::sctp::Association> transport_;  // used with the lock

  std::atomic<unsigned> waiters_{0};  // threads that wait for mutex_
  std::mutex mutex_;                  // guards what follows
  State state_ = State::kConnecting;
  int error_ = 0;
  std::string why_;
  bool reading_ = true;                                        // SetReading() said so
  bool ended_ = false;                                         // there is nothing more to receive
  bool skipping_ = false;                                      // the rest of a message that is too long
  bool blocked_ = false;                                       // SCTP took no more
  bool unflushed_ = false;                                     // what it took may wait for more
  std::unique_ptr<ddp::sctp::Association> core_;               // from kUp on
  std::vector<std::unique_ptr<ddp::sctp::Association>> lost_;  // before restarts of the peer, while sessions are held
  uint64_t acknowledged_ = 0;                                  // of core_->taken()
  transport::Time last_tick_{};
  transport::Time advanced_at_{};                              // the peer acknowledged something, or there was nothing
  std::vector<Seat*> seats_;
  std::vector<std::unique_ptr<Seat>> lingering_;
  std::deque<std::pair<ddp::sctp::Association*, ddp::sctp::Session*>> requests_;
  std::function<void()> on_request_;
  Wakes waiting_until_up_, wakes_;
  size_t wanting_room_ = 0;  // seats
  std::vector<transport::SocketAddress> local_, peer_;
  std::vector<transport::SocketAddress> failed_paths_;  // of peer_
  bool clock_runs_ = false;
  // Does not change from kUp on.
  transport::WatchId packet_watch_ = 0;
};

}  // namespace weft::sctp

#endif  // WIRES_SCTP_ASSOCIATION_ASSOCIATION_H_
