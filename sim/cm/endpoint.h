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

// Whom a responder's endpoint tells what became of it. Called without locks held.
class RequestSink {
 public:
  virtual ~RequestSink() = default;
  virtual void OnRequest(std::shared_ptr<EndpointImpl> endpoint) = 0;  // its request is complete
  // The program has it (Endpoint::SetObserver), and has not answered.
  virtual void OnFetched(const std::shared_ptr<EndpointImpl>& endpoint) = 0;
  // Its peer left, broke the rules or took too long, before the program answered. It may be that the program was told of it already.
  virtual void OnLost(EndpointImpl& endpoint) = 0;
  virtual void OnDone(EndpointImpl& endpoint) = 0;  // answered, or let go. The last call for it
};

// One side of a connection's establishment, over any wire (llp/handshake.h): asks or is asked, tries again, gives up, until a queue pair takes
// the channel over.
class EndpointImpl final : public Endpoint,
                           public ConnectionObserver,
                           public transport::ReadyHandler,
                           public std::enable_shared_from_this<EndpointImpl> {
 public:
  explicit EndpointImpl(const Surroundings& around) : around_(around) {}
  ~EndpointImpl() override;

  // A session that a listener accepted: waits for the request, then tells `sink`.
  void StartResponder(std::unique_ptr<llp::Responder> responder, std::shared_ptr<RequestSink> sink);
  // The kConnectRequest event, once OnRequest was called. From now on the request waits as long as the peer does.
  CmEvent DescribeRequest();
  // ... but no longer than this: then it is lost.
  void LimitAnswer(std::chrono::seconds limit);
  // As Close(), but the peer learns nothing of why: a Weft end tries again for a while.
  void TurnAway() { End(/*politely=*/false); }
  // The same for a request that the program has: it learns of it as if the peer had left. False: there is no such request any more.
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

  // As Connect() and Accept(), for any queue pair that Establish() takes. Asks for `delivery` between Weft ends.
  int ConnectFor(std::shared_ptr<QueuePair> qp, const transport::SocketAddress& local, const transport::SocketAddress& remote,
                 const ConnectParameters& parameters, rdmap::Delivery delivery, bool dialled);
  int AcceptFor(std::shared_ptr<QueuePair> qp, const ConnectParameters& parameters, rdmap::Delivery delivery, bool dialled);

 private:
  enum class State : uint8_t {
    kIdle,
    kConnecting,     // initiator
    kRefused,        // nobody listened, or there was no room; about to try again
    kAwaitingAnswer, // initiator: the peer is there
    kAwaitingRequest,
    kRequested,      // responder: the program has to answer
    kConnected,      // the queue pair has the channel
    kClosed,
  };

  class RequestWatch;

  void OnReady(transport::Interest ready) override;
  void OnEstablished() override;
  void OnDisconnected(bool was_established) override;

  // With mutex_ held; what they have to tell goes to pending_ and is delivered by the caller after it let go.
  int StartConnecting();
  void OnConnectFailed(int error);    // reports it, or tries again
  bool TryAgainUnanswered(bool in_order);
  void TryAgainLater();
  void OnRetryTime(uint64_t attempt); // without
  bool OnProgress(llp::Progress progress);  // true: the peer's request is here
  void PrepareHandover(const llp::Agreement& agreement);
  int HandOver();                     // without: gives the channel to the queue pair, if it is time; an errno
  void OnTimeout(uint64_t attempt);   // without
  void FailAttempt(CmEvent::Kind kind, int error, const std::string& why);
  void EndHandshake();
  void StopTimer();
  void ArmTimer(std::chrono::seconds limit);
  llp::Proposal Propose(const QueuePair& qp, const ConnectParameters& parameters, rdmap::Delivery delivery) const;
  static EstablishOptions OptionsFor(const ConnectParameters& parameters, rdmap::Delivery delivery, bool dialled, bool initiator);
  void Tell(CmEvent event);
  void Deliver();                     // without
  void End(bool politely);            // without
  void ReportLoss();                  // without
  void ReleaseSink();                 // without

  const Surroundings around_;
  mutable std::mutex mutex_;  // guards everything but delivery_mutex_
  State state_ = State::kIdle;
  std::unique_ptr<llp::Initiator> initiator_;  // one of the two, until the channel is handed over or the attempt is over
  std::unique_ptr<llp::Responder> responder_;
  std::shared_ptr<QueuePair> qp_;
  transport::SocketAddress local_, remote_;
  transport::TimerId timer_ = 0;
  uint64_t attempt_ = 0;
  transport::Time give_up_on_refusal_{};
  transport::Time give_up_on_reset_{};
  transport::Duration retry_after_{};
  bool fell_back_ = false;            // the wire says less than it could
  uint16_t our_ord_ = 0;              // that the program asked for
  llp::Request request_;              // responder: what the peer asks for
  EstablishOptions options_;          // of the connection that is to be: from Connect() or Accept() on
  std::shared_ptr<RequestSink> sink_;
  bool handover_ = false;             // agreed, and the queue pair does not have it yet
  bool established_told_ = false;
  CmEvent established_;               // what to tell when the connection is established

  std::shared_ptr<CmObserver> observer_;
  std::deque<CmEvent> pending_;
  std::recursive_mutex delivery_mutex_;  // held while the observer runs: events come one at a time, in order
};

}  // namespace weft::sim

#endif  // SIM_CM_ENDPOINT_H_
