#ifndef SIM_CONNECTION_CONNECTION_H_
#define SIM_CONNECTION_CONNECTION_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "llp/channel.h"
#include "rdmap/stream.h"
#include "sim/connection/acknowledger.h"
#include "sim/connection/completer.h"
#include "sim/connection/refusals.h"
#include "sim/connection/requester.h"
#include "sim/connection/responder.h"
#include "sim/connection/user.h"
#include "sim/queues/statistics.h"

namespace weft::sim {

// What both ends agreed on before.
struct ConnectionTerms {
  llp::Outcome outcome;
  rdmap::Delivery delivery = rdmap::Delivery::kPlain;
  bool initiator = false;
  bool to_itself = false;  // the stream's peer is this queue pair
};

// The parts of a queue pair that its connection works with, and that outlive it.
struct ConnectionParts {
  uint32_t number;  // of the queue pair
  bool roce;        // the persona
  const QueuePairOptions& options;
  const ibv_qp_attr& attributes;  // rights, and how often and how long to try
  QueuePairCounters& counters;
  Completer& completer;
  Requester& requester;
  Responder& responder;
};

// The engine of a connected queue pair: moves ULPDUs between its channel and the protocol, and what the protocol says between the peer and the
// requests and receives; acknowledges, waits for the peer's receives, and ends in order or not. Guarded by the queue pair's engine lock.
//
// When it is over() it does nothing any more; that may be after each call of ConnectionUser and each call here that moves bytes.
class Connection final : public std::enable_shared_from_this<Connection>, private rdmap::Host {
 public:
  Connection(const ConnectionParts& parts, ConnectionUser& user, std::unique_ptr<llp::Channel> channel, const ConnectionTerms& terms);
  ~Connection() override;

  // Once, first. `comment`: for captures.
  void Start(std::weak_ptr<llp::ChannelUser> wake, std::shared_ptr<transport::ReadyHandler> ready, const std::string& comment);
  transport::WatchId watch() const { return watch_; }

  // Receives, transmits, looks at what became of the stream. `eager`: what came is acknowledged at once, and the program hears of it then.
  void Step(bool eager) { Step(eager, Looks::kOnce); }
  // The same for a program that polls. `spinning`: it will be back at once. False: nothing came.
  bool StepForPoll(bool spinning, bool eager);
  // StepForPoll() of a program that spins would do nothing.
  bool idle() const { return channel_->idle() && !acknowledger_.wanted() && parts_.requester.all_started(); }
  // StepForPoll() is called over and over: nobody else need look.
  // True: nothing comes before this thread has yielded.
  bool Lend() { return channel_->Lend(); }
  // The program polls no more, and may sleep.
  void EndLend();
  // llp::ChannelUser's.
  void OnWake();
  // Sends what was posted.
  void Send();
  // See ConnectionUser::AddErrand. False: nothing was owed.
  bool RunErrand();
  // Before the end: what lies in the socket had reached the adapter already, which would have acknowledged it.
  void AcceptWhatCame();

  // What is posted so far goes out, then the end of the stream.
  void Disconnect();
  bool closing() const { return closing_.has_value(); }
  void OnExit();  // of the process
  // Ends it. `orderly`: what is under way goes out, by and by.
  void Close(bool orderly);
  bool over() const { return channel_ == nullptr; }
  // What the peer reaches by itself, also when it is over; null: nothing.
  const std::shared_ptr<llp::LentMemory>& lent() const { return lent_; }
  // What carries it, as llp::Channel::wire().
  const char* wire() const { return over() ? "" : channel_->wire(); }

  // The region goes away. `request`: which takes it away, and is then done.
  void ForgetRegion(const RegionInfo& gone, std::optional<uint64_t> request);
  // The first half of that: the peer begins nothing there any more.
  void CloseToPeer(const RegionInfo& gone);
  void AttributesChanged();
  void ApplyFaults();

  const ConnectionTerms& terms() const { return terms_; }
  // Neither end has carried out, or begun to, what the other one asked for, as far as can be known: to both the numbers of the next packets would
  // still be those that their programs exchanged (sq_psn, rq_psn).
  bool unused() const;
  bool reliable() const { return terms_.delivery == rdmap::Delivery::kReliable; }  // requests are acknowledged
  // Grows when the peer takes bytes, or answers.
  uint64_t progress() const { return taken_ + stream_.answers(); }

 private:
  // rdmap::Host
  Result<uint8_t*, rdmap::AccessError> Resolve(ddp::STag stag, ddp::TaggedOffset offset, uint32_t length, rdmap::Access access) override;
  std::optional<llp::TaggedBuffer> OpenBuffer(ddp::STag stag) override;
  Result<uint64_t, rdmap::AccessError> Atomic(ddp::STag stag, ddp::TaggedOffset offset, const rdmap::AtomicOperation& operation) override;
  std::optional<rdmap::ReceiveTarget> TakeReceive(uint64_t needed) override;
  uint64_t ExtendReceive(uint64_t needed) override { return parts_.responder.ExtendReceive(needed); }
  void Received(const rdmap::ReceivedSend& message) override { parts_.responder.Received(message); }
  void WriteRefused() override { parts_.responder.FailNext(IBV_WC_LOC_ACCESS_ERR); }
  bool ReceivesExhausted() const override { return parts_.responder.exhausted(); }
  std::optional<rdmap::AccessError> Invalidate(ddp::STag stag) override;
  bool SelectTarget(uint32_t number) override;
  rdmap::Request* NextRequest() override;
  void Started(rdmap::Request& request) override { parts_.requester.Started(); }
  void Sent(rdmap::Request& request) override;
  void ReadDone(rdmap::Request& request) override { Sent(request); }
  void ReceiverNotReady(rdmap::Request& request, uint8_t timer) override;
  void ReceiveIsGone() override;
  void SinkIsGone(rdmap::Request& request) override { sink_gone_ = parts_.requester.CountOf(request); }

  // A thread that looks again does not wait for another that is at work on what its connection shares with others.
  enum class Looks : uint8_t { kOnce, kAgain };

  bool extended() const { return terms_.delivery != rdmap::Delivery::kPlain; }  // immediate data and atomics can be sent
  void Step(bool eager, Looks looks);
  bool Receive(Looks looks = Looks::kOnce);  // false: there was nothing
  void MoveBytes(bool eager, Looks looks);
  bool HasToSend() const;
  void ReceiveRestOfMessage();
  void Transmit();
  void CheckStream();
  void CheckRequests();
  // The peer is gone. What it is known to have carried out is done, although it did not say so any more.
  void Lose(bool orderly);
  void OnTerminated();
  void OnTerminating();
  // We end the stream: the program hears of it, once, whatever the peer still has to take in front of the Terminate.
  void TellOfTermination(const rdmap::TerminateMessage& why);
  // Connected to itself: the stream ends by our own Terminate, which is the peer's as well.
  void FailByItself(const rdmap::TerminateMessage& why);
  // An error of our own; the peer of a plain stream is to hear of it (RFC 5040 section 7.1).
  void TellPeerOfLocalError();
  void FinishDisconnect();
  void FinishTerminateLater(transport::Time until);
  void ForgetRefusals();
  // `work` runs with the engine held, unless the connection is over by then.
  transport::TimerId RunAfter(transport::Duration delay, std::function<void()> work);

  // Disconnect() was called.
  struct Closing {
    uint64_t last_to_send = 0;  // requests posted before this count still go out
    bool output_ended = false;
  };

  const ConnectionParts parts_;
  ConnectionUser& user_;
  const ConnectionTerms terms_;
  std::unique_ptr<llp::Channel> channel_;  // null: it is over
  const std::shared_ptr<llp::LentMemory> lent_;
  const transport::SocketAddress peer_;
  rdmap::Stream stream_;
  Acknowledger acknowledger_;
  Refusals refusals_;
  std::optional<Closing> closing_;
  transport::WatchId watch_ = 0;
  transport::TimerId close_timer_ = 0, refusal_timer_ = 0;
  uint64_t taken_ = 0;
  const uint64_t retired_before_;     // of our requests, when it began
  bool carried_out_unseen_ = false;   // the peer carried requests out, and could not say so any more
  bool established_told_;             // false: the responder waits for the RTR before it says so
  bool communication_told_ = false;   // IBV_EVENT_COMM_EST
  bool termination_told_ = false;
  std::optional<uint64_t> without_memory_;  // the count of a request whose memory went away: it is to blame for the end
  std::optional<uint64_t> sink_gone_; // this request reads into memory that is not mapped any more
};

}  // namespace weft::sim

#endif  // SIM_CONNECTION_CONNECTION_H_
