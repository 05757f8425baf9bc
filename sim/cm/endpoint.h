#ifndef SIM_CM_ENDPOINT_H_
#define SIM_CM_ENDPOINT_H_

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "mpa/channel/channel.h"
#include "mpa/start_up.h"
#include "sim/cm/api.h"
#include "sim/cm/engine.h"
#include "sim/queue_pair/queue_pair.h"
#include "sim/queues/adapter.h"
#include "transport/network.h"

namespace weft::sim {

// Between Weft ends: as long as an FPDU may be (RFC 5044 section 3).
inline constexpr size_t kLargestUlpdu = 64768;

class EndpointImpl;

// Whom a responder's endpoint tells what became of it. Called without locks held.
class RequestSink {
 public:
  virtual ~RequestSink() = default;
  virtual void OnRequest(std::shared_ptr<EndpointImpl> endpoint) = 0;  // its request is complete
  // Its peer left, broke the rules or took too long, before the program answered. It may be that the program was told of it already.
  virtual void OnLost(EndpointImpl& endpoint) = 0;
  virtual void OnDone(EndpointImpl& endpoint) = 0;  // answered, or let go. The last call for it
};

// One side of MPA start-up (RFC 5044 section 7, RFC 6581) over a byte stream, from the first SYN until a queue pair takes the
// socket over. Owns the socket until then.
class EndpointImpl final : public Endpoint,
                           public ConnectionObserver,
                           public transport::ReadyHandler,
                           public std::enable_shared_from_this<EndpointImpl> {
 public:
  // `queue_pair_of` may be null where only ConnectFor() and AcceptFor() are used.
  explicit EndpointImpl(Adapter& adapter, QueuePairResolver queue_pair_of = nullptr) : adapter_(adapter), queue_pair_of_(queue_pair_of) {}
  ~EndpointImpl() override;

  // A socket that a listener accepted: waits for the MPA Request, then tells `sink`.
  void StartResponder(std::unique_ptr<transport::ByteStream> socket, std::shared_ptr<RequestSink> sink);
  // The kConnectRequest event, once OnRequest was called. From now on the request waits as long as the peer does.
  CmEvent DescribeRequest();
  // ... but no longer than this: then it is lost.
  void LimitAnswer(std::chrono::seconds limit);
  // As Close(), but the peer learns nothing of why: a Weft end tries again for a while.
  void TurnAway() { End(/*politely=*/false); }

  void SetObserver(std::shared_ptr<CmObserver> observer) override;
  int Connect(const transport::SocketAddress& local, const transport::SocketAddress& remote, ibv_qp* qp,
              const ConnectParameters& parameters) override;
  int Accept(ibv_qp* qp, const ConnectParameters& parameters) override;
  int Reject(const std::vector<uint8_t>& private_data) override;
  int Disconnect() override;
  void Close() override { End(/*politely=*/true); }
  transport::SocketAddress local_address() const override;
  transport::SocketAddress remote_address() const override;

  // As Connect() and Accept(), for any queue pair that Establish() takes. Asks for `delivery` between Weft ends.
  int ConnectFor(std::shared_ptr<QueuePair> qp, const transport::SocketAddress& local, const transport::SocketAddress& remote,
                 const ConnectParameters& parameters, rdmap::Delivery delivery, bool dialled);
  int AcceptFor(std::shared_ptr<QueuePair> qp, const ConnectParameters& parameters, rdmap::Delivery delivery, bool dialled);

 private:
  enum class State : uint8_t {
    kIdle,
    kConnecting,     // initiator: TCP
    kRefused,        // nobody listened, or there was no room; about to try again
    kSendingRequest, // initiator: MPA
    kAwaitingReply,
    kAwaitingRequest,
    kRequested,      // responder: the program has to answer
    kConnected,      // the queue pair has the socket
    kClosed,
  };

  class RequestWatch;

  void OnReady(transport::Interest ready) override;
  void OnEstablished() override;
  void OnDisconnected(bool was_established) override;

  // With mutex_ held; what they have to tell goes to pending_ and is delivered by the caller after it let go.
  int StartConnecting();
  void OnConnectFailed(int error);    // reports it, or tries again
  bool TryAgainAfterReset();
  void TryAgainLater();
  void OnRetryTime(uint64_t attempt); // without
  void OnConnectReady();
  void SendRequest();
  void ContinueRequest();
  void OnReplyBytes();
  void OnReply();
  int HandOver();                     // without: gives the socket to the queue pair, if it is time; an errno
  bool OnRequestBytes();              // true: the request is complete
  void OnUnansweredReady();           // bytes or an end where nothing may come
  void RefuseReply(mpa::StartError error, const mpa::StartOutcome& outcome);
  bool ReadFrame(const char* what);   // true: complete; false: more to come, or the attempt has failed
  void OnTimeout(uint64_t attempt);   // without
  void FailAttempt(CmEvent::Kind kind, int error, const std::string& why);
  void StopWatching();
  void ArmTimer(std::chrono::seconds limit);
  bool IsSameHost() const;            // the peer's address is one of this host's
  mpa::StartParams OurParams(const ConnectParameters& parameters) const;
  std::optional<mpa::WeftTrailer> TakeTrailer(std::vector<uint8_t>& private_data) const;
  // With what is said of the two of us; `reply` is the responder's.
  void PrepareHandover(const mpa::StartOutcome& outcome, const ConnectParameters& parameters, rdmap::Delivery agreed, bool initiator,
                       std::vector<uint8_t> reply);
  size_t MaxUlpdu(const mpa::StartOutcome& outcome, const std::optional<mpa::WeftTrailer>& trailer) const;
  // Our trailer's flags, and what both ends agree on.
  uint8_t Flags() const;
  rdmap::Delivery Agreed() const;
  void Tell(CmEvent event);
  void Deliver();                     // without
  void End(bool politely);            // without
  void ReportLoss();                  // without
  void ReleaseSink();                 // without

  Adapter& adapter_;
  const QueuePairResolver queue_pair_of_;
  mutable std::mutex mutex_;  // guards everything but delivery_mutex_
  State state_ = State::kIdle;
  std::unique_ptr<transport::ByteStream> socket_;
  std::shared_ptr<QueuePair> qp_;
  ConnectParameters parameters_;
  rdmap::Delivery delivery_ = rdmap::Delivery::kPlain;  // wanted
  bool dialled_ = false;
  transport::SocketAddress bind_to_, local_, remote_;
  transport::WatchId watch_ = 0;
  transport::TimerId timer_ = 0;
  uint64_t attempt_ = 0;
  transport::Time give_up_on_refusal_{};
  transport::Time give_up_on_reset_{};
  transport::Duration retry_after_{};
  uint8_t revision_ = 2;
  mpa::StartParams ours_;
  std::vector<uint8_t> unsent_;       // of our MPA Request
  std::optional<mpa::StartFrameCollector> frame_;
  bool got_bytes_ = false;
  bool closed_in_order_ = false;      // by the peer, during set-up
  mpa::StartOutcome request_;         // responder: what the peer asks for
  std::optional<mpa::WeftTrailer> trailer_;  // the peer's
  std::shared_ptr<RequestSink> sink_;
  struct Handover {
    EstablishOptions options;
    mpa::ChannelOptions framing;
  };
  std::optional<Handover> handover_;
  bool established_told_ = false;
  CmEvent established_;               // what to tell when the connection is established

  std::shared_ptr<CmObserver> observer_;
  std::deque<CmEvent> pending_;
  std::recursive_mutex delivery_mutex_;  // held while the observer runs: events come one at a time, in order
};

}  // namespace weft::sim

#endif  // SIM_CM_ENDPOINT_H_
