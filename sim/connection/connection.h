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

// What both ends have agreed on before.
struct ConnectionTerms {
  llp::Outcome outcome;
  rdmap::Delivery delivery = rdmap::Delivery::kPlain;
  bool atomics = false;  // on a plain stream, too; all others have them
  bool initiator = false;
  bool to_itself = false;  // the stream is connected to this queue pair itself
};

// The parts of a queue pair that its connection uses. They outlive it.
struct ConnectionParts {
  uint32_t number;  // of the queue pair
  bool roce;        // the persona
  const QueuePairOptions& options;
  const ibv_qp_attr& attributes;  // access rights, and number and duration of retries
  QueuePairCounters& counters;
  Completer& completer;
  Requester& requester;
  Responder& responder;
};

// The engine of a connected queue pair. It moves ULPDUs between the channel and the protocol, and translates between
// the protocol and the queue pair's requests and receives. It acknowledges, waits for the peer's receives, and ends in
// order or with an error. Guarded by the queue pair's engine lock.
//
// When over() is true, it does nothing any more. This may be so after each call of ConnectionUser, and after each call
// here that moves bytes.
class Connection final : public std::enable_shared_from_this<Connection>, private rdmap::Host {
 public:
  Connection(const ConnectionParts& parts, ConnectionUser& user, std::unique_ptr<llp::Channel> channel, const ConnectionTerms& terms);
  ~Connection() override;

  // Called once, before anything else. `comment`: for captures.
  void Start(std::weak_ptr<llp::ChannelUser> wake, std::shared_ptr<transport::ReadyHandler> ready, const std::string& comment);
  transport::WatchId watch() const { return watch_; }

  // Receives, transmits, and checks the state of the stream. `eager`: received requests are acknowledged at once,
  // before the program sees their completions.
  void Step(bool eager) { Step(eager, Looks::kOnce); }
  // Like Step(), for a program that polls. `spinning`: it will poll again at once. Returns false if nothing arrived.
  bool StepForPoll(bool spinning, bool eager);
  // StepForPoll() of a spinning program would do nothing.
  bool idle() const { return channel_->idle() && !acknowledger_.wanted() && parts_.requester.all_started(); }
  // StepForPoll() is being called in a loop: no other thread needs to look for input. Returns true if nothing can
  // arrive before this thread yields.
  bool Lend() { return channel_->Lend(); }
  // The program no longer polls, and may sleep.
  void EndLend();
  // See llp::ChannelUser.
  void OnWake();
  // Sends posted requests.
  void Send();
  // See ConnectionUser::AddErrand. Returns false if nothing was owed.
  bool RunErrand();
  // Called before the end: accepts what is already in the socket. An adapter would already have received and
  // acknowledged it.
  void AcceptWhatCame();

  // Sends everything posted so far, then the end of the stream.
  void Disconnect();
  bool closing() const { return closing_.has_value(); }
  void OnExit();  // the process ends
  // Ends the connection. `orderly`: what is in progress is still sent.
  void Close(bool orderly);
  bool over() const { return channel_ == nullptr; }
  // The memory that the peer accesses directly, also when the connection is over; nullptr: none.
  const std::shared_ptr<llp::LentMemory>& lent() const { return lent_; }
  // See llp::Channel::wire().
  const char* wire() const { return over() ? "" : channel_->wire(); }

  // The region goes away. `request`: the request that revokes it, if one does; it is then done.
  void ForgetRegion(const RegionInfo& gone, std::optional<uint64_t> request);
  // The first half of ForgetRegion(): the peer can begin no new access to the region.
  void CloseToPeer(const RegionInfo& gone);
  void AttributesChanged();
  void ApplyFaults();

  const ConnectionTerms& terms() const { return terms_; }
  // As far as can be known, neither end has carried out, or begun to carry out, a request of the other one. So the next
  // packet numbers of both ends would still be those that the programs exchanged (sq_psn, rq_psn).
  bool unused() const;
  bool reliable() const { return terms_.delivery == rdmap::Delivery::kReliable; }  // requests are acknowledged
  // Increases when the peer takes bytes or answers.
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
  void Fetched(const rdmap::Request& request) override { parts_.counters.bytes_fetched.Add(request.length); }
  void ReceiverNotReady(rdmap::Request& request, uint8_t timer) override;
  void ReceiveIsGone() override;
  void SinkIsGone(rdmap::Request& request) override { sink_gone_ = parts_.requester.CountOf(request); }

  // A thread that looks again does not wait for another thread that works on shared parts of the connection.
  enum class Looks : uint8_t { kOnce, kAgain };

  // Immediate data and atomics are possible.
  bool extended() const { return terms_.delivery != rdmap::Delivery::kPlain; }
  void Step(bool eager, Looks looks);
  bool Receive(Looks looks = Looks::kOnce);  // false: nothing had arrived
  void MoveBytes(bool eager, Looks looks);
  bool HasToSend() const;
  void ReceiveRestOfMessage();
  void Transmit();
  void CheckStream();
  void CheckRequests();
  // The peer is gone. Requests that it is known to have carried out are done, although it has not acknowledged them.
  void Lose(bool orderly);
  void OnTerminated();
  void OnTerminating();
  // We end the stream. The program is told, once, even if the peer has yet to receive messages in front of the
  // Terminate.
  void TellOfTermination(const rdmap::TerminateMessage& why);
  // For a queue pair that is connected to itself: our own Terminate is also that of the peer.
  void FailByItself(const rdmap::TerminateMessage& why);
  // An error of our own. The peer of a plain stream must be told (RFC 5040 section 7.1).
  void TellPeerOfLocalError();
  void FinishDisconnect();
  void FinishTerminateLater(transport::Time until);
  void ForgetRefusals();
  // Runs `work` with the engine held, unless the connection is over by then.
  transport::TimerId RunAfter(transport::Duration delay, std::function<void()> work);

  // Disconnect() was called.
  struct Closing {
    uint64_t last_to_send = 0;  // requests posted before this count are still sent
    bool output_ended = false;
  };

  const ConnectionParts parts_;
  ConnectionUser& user_;
  const ConnectionTerms terms_;
  std::unique_ptr<llp::Channel> channel_;  // null: the connection is over
  const std::shared_ptr<llp::LentMemory> lent_;
  const transport::SocketAddress peer_;
  rdmap::Stream stream_;
  Acknowledger acknowledger_;
  Refusals refusals_;
  std::optional<Closing> closing_;
  transport::WatchId watch_ = 0;
  transport::TimerId close_timer_ = 0, refusal_timer_ = 0;
  uint64_t taken_ = 0;
  const uint64_t retired_before_;     // value for our requests when the connection began
  bool carried_out_unseen_ = false;   // the peer carried out requests that it could not acknowledge any more
  bool established_told_;             // false: the responder reports it when the RTR arrives
  bool communication_told_ = false;   // IBV_EVENT_COMM_EST
  bool termination_told_ = false;
  std::optional<uint64_t> without_memory_;  // count of a request whose memory went away: it caused the end
  std::optional<uint64_t> sink_gone_; // this request reads into memory that is no longer mapped
};

}  // namespace weft::sim

#endif  // SIM_CONNECTION_CONNECTION_H_
