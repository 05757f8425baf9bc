#ifndef SIM_CM_ENDPOINT_H_
#define SIM_CM_ENDPOINT_H_

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "llp/handshake.h"
#include "sim/cm/api.h"
#include "sim/cm/surroundings.h"
#include "sim/queue_pair/queue_pair.h"
#include "transport/network.h"

namespace weft::sim {

class EndpointImpl;

// Learns the fate of a responder's endpoint. Called without locks.
class RequestSink {
 public:
  virtual ~RequestSink() = default;
  virtual void OnRequest(std::shared_ptr<EndpointImpl> endpoint) = 0;  // its request is complete
  // The program has fetched the request (Endpoint::SetObserver), and has not answered it.
  virtual void OnFetched(const std::shared_ptr<EndpointImpl>& endpoint) = 0;
  // The peer left, broke the rules or took too long before the program answered. The program may already know of the
  // request.
  virtual void OnLost(EndpointImpl& endpoint) = 0;
  virtual void OnDone(EndpointImpl& endpoint) = 0;  // answered or dropped. The last call for this endpoint
};

// One side of the establishment of a connection, over any wire (llp/handshake.h): asks or is asked, retries and gives
// up. It ends when a queue pair takes the channel over.
class EndpointImpl final : public Endpoint,
                           public ConnectionObserver,
                           public transport::ReadyHandler,
                           public std::enable_shared_from_this<EndpointImpl> {
 public:
  explicit EndpointImpl(const Surroundings& around) : around_(around) {}
  ~EndpointImpl() override;

  // A session that a listener accepted: waits for the request, then calls `sink`.
  void StartResponder(std::unique_ptr<llp::Responder> responder, std::shared_ptr<RequestSink> sink);
  // The kConnectRequest event, after OnRequest was called. From now on the request waits as long as the peer does.
  CmEvent DescribeRequest();
  // ... but at most for `limit`; then the request is lost.
  void LimitAnswer(std::chrono::seconds limit);
  // Like Close(), but the peer is not told the reason: a Weft end retries for a while.
  void TurnAway() { End(/*politely=*/false); }
  // The same for a request that the program knows of: the program sees it as if the peer had left. Returns false if
  // there is no such request any more.
  bool GiveWay();

  void SetObserver(std::shared_ptr<CmObserver> observer) override;
  int Connect(const transport::SocketAddress& local, const transport::SocketAddress& remote, ibv_qp* qp,
              const ConnectParameters& parameters) override;
  int Accept(ibv_qp* qp, const ConnectParameters& parameters) override;
  int Reject(const std::vector<uint8_t>& private_data, CmEvent::Reason reason) override;
  int Disconnect() override;
  void Close() override { End(/*politely=*/true); }
  transport::SocketAddress local_address() const override;
  transport::SocketAddress remote_address() const override;

  // Like Connect() and Accept(), for any queue pair that Establish() takes. Asks for `delivery` between Weft ends.
  // `shares_memory`: may use memory of the host if the peer is on it.
  int ConnectFor(std::shared_ptr<QueuePair> qp, const transport::SocketAddress& local, const transport::SocketAddress& remote,
                 const ConnectParameters& parameters, rdmap::Delivery delivery, bool dialled, bool shares_memory = true);
  int AcceptFor(std::shared_ptr<QueuePair> qp, const ConnectParameters& parameters, rdmap::Delivery delivery, bool dialled);

 private:
  enum class State : uint8_t {
    kIdle,
    kConnecting,     // initiator
    kRefused,        // refused, or there was no room; about to retry
    kAwaitingAnswer, // initiator: the peer is connected
    kAwaitingRequest,
    kRequested,      // responder: waits for the program's answer
    kConnected,      // the queue pair has the channel
    kClosed,
  };

  class RequestWatch;

  void OnReady(transport::Interest ready) override;
  void OnEstablished() override;
  void OnDisconnected(bool was_established) override;

  // These require mutex_. They put their events into pending_; the caller delivers these after it has released the
  // lock.
  int StartConnecting();
  void OnConnectFailed(int error);    // reports it, or retries
  bool TryAgainUnanswered(bool in_order);
  void TryAgainLater();
  void OnRetryTime(uint64_t attempt); // without mutex_
  bool OnProgress(llp::Progress progress);  // true: the peer's request has arrived
  void PrepareHandover(const llp::Agreement& agreement);
  // Without mutex_: gives the channel to the queue pair if it is time; returns an errno.
  int HandOver();
  void OnTimeout(uint64_t attempt);   // without mutex_
  void FailAttempt(CmEvent::Kind kind, int error, const std::string& why);
  void EndHandshake();
  void StopTimer();
  void ArmTimer(std::chrono::seconds limit);
  llp::Proposal Propose(const QueuePair& qp, const ConnectParameters& parameters, rdmap::Delivery delivery) const;
  static EstablishOptions OptionsFor(const ConnectParameters& parameters, rdmap::Delivery delivery, bool dialled, bool initiator);
  void Tell(CmEvent event);
  void Deliver();                     // without mutex_
  void End(bool politely);            // without mutex_
  void ReportLoss();                  // without mutex_
  void ReleaseSink();                 // without mutex_

  const Surroundings around_;
  mutable std::mutex mutex_;  // guards everything but delivery_mutex_
  State state_ = State::kIdle;
  // One of the two, until the channel is handed over or the attempt is over.
  std::unique_ptr<llp::Initiator> initiator_;
  std::unique_ptr<llp::Responder> responder_;
  std::shared_ptr<QueuePair> qp_;
  transport::SocketAddress local_, remote_;
  transport::TimerId timer_ = 0;
  uint64_t attempt_ = 0;
  transport::Time give_up_on_refusal_{};
  transport::Time give_up_on_reset_{};
  transport::Duration retry_after_{};
  bool fell_back_ = false;            // the wire uses an older form of the request
  uint16_t our_ord_ = 0;              // the program's value
  llp::Request request_;              // responder: the peer's request
  EstablishOptions options_;          // for the new connection: set by Connect() or Accept()
  std::shared_ptr<RequestSink> sink_;
  bool handover_ = false;             // agreed, but the queue pair does not have the channel yet
  bool established_told_ = false;
  CmEvent established_;               // the event to deliver when the connection is established

  std::shared_ptr<CmObserver> observer_;
  std::deque<CmEvent> pending_;
  std::recursive_mutex delivery_mutex_;  // held while the observer runs: events come one at a time, in order
};

}  // namespace weft::sim

#endif  // SIM_CM_ENDPOINT_H_
