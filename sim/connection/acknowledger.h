#ifndef SIM_CONNECTION_ACKNOWLEDGER_H_
#define SIM_CONNECTION_ACKNOWLEDGER_H_

#include <cstdint>
#include <functional>

#include "rdmap/stream.h"
#include "sim/connection/lone_acknowledgements.h"
#include "sim/connection/user.h"

namespace weft::sim {

// Decides when a reliable stream acknowledges the peer's requests: at once if the program is not expected to send
// anything; otherwise with the next message, at a poll that finds nothing, or after a while. Guarded by the engine.
// `stream` and `user` outlive it. `later` runs on a timer and sends what Acknowledge() has left; it is not called after
// the owner is gone.
class Acknowledger {
 public:
  // Runs `work` with the engine held, if the owner still exists.
  using Run = std::function<void(transport::Duration delay, transport::Duration otherwise, std::function<void()> work)>;
  Acknowledger(rdmap::Stream& stream, ConnectionUser& user, Run run, std::function<void()> send)
      : stream_(stream), user_(user), run_(std::move(run)), send_(std::move(send)) {}

  bool owes() const { return stream_.unacknowledged() != 0; }
  bool wanted() const { return stream_.acknowledgement_wanted(); }  // the peer's program waits for it
  void Now() { stream_.Acknowledge(); }
  // Whether to acknowledge before a spinning program sees its completion. The next functions record how that went, and
  // the next poll.
  bool goes_ahead() const { return !survives_ && lone_.expected(); }
  void NowAhead(uint64_t posted) {
    lone_.WentAhead(posted);
    Now();
  }
  void NowAlone() {
    lone_.WentAlone();
    Now();
  }
  void OnPoll(bool received, uint64_t posted) { lone_.OnPoll(received, posted); }
  // The number of carried out requests survives the process (llp::Channel::CarriedOutHere): nothing has to be
  // acknowledged ahead.
  void Survives() { survives_ = true; }
  // Sends the owed acknowledgement with the next message, or soon.
  void Later();
  // A poll found nothing.
  void OnErrand();

 private:
  struct Timer {
    bool armed = false;
    // The peer's last request when the timer was armed: acknowledgements owed up to it are due when the timer fires.
    uint32_t received = 0;
    transport::Duration after{};
  };
  void Arm(bool wanted);
  void OnTimer(bool wanted);

  rdmap::Stream& stream_;
  ConnectionUser& user_;
  const Run run_;
  const std::function<void()> send_;
  LoneAcknowledgements lone_;
  bool survives_ = false;
  uint32_t errand_received_ = 0;  // the peer's last request when an acknowledgement was left to the next poll
  Timer timers_[2];               // for acknowledgements that nobody waits for, and for wanted ones
};

}  // namespace weft::sim

#endif  // SIM_CONNECTION_ACKNOWLEDGER_H_
