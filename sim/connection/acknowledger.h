#ifndef SIM_CONNECTION_ACKNOWLEDGER_H_
#define SIM_CONNECTION_ACKNOWLEDGER_H_

#include <cstdint>
#include <functional>

#include "rdmap/stream.h"
#include "sim/connection/lone_acknowledgements.h"
#include "sim/connection/user.h"

namespace weft::sim {

// When a reliable stream acknowledges the peer's requests: at once where nothing else is expected to be sent, or with what is sent anyway, at a poll that
// finds nothing, or after a while. Guarded by the engine; `stream` and `user` outlive it. `later`, on a timer: sends what Acknowledge() left to be sent; not called once the owner is gone.
class Acknowledger {
 public:
  // Runs `work` with the engine held if the owner is there still.
  using Run = std::function<void(transport::Duration delay, transport::Duration otherwise, std::function<void()> work)>;
  Acknowledger(rdmap::Stream& stream, ConnectionUser& user, Run run, std::function<void()> send)
      : stream_(stream), user_(user), run_(std::move(run)), send_(std::move(send)) {}

  bool owes() const { return stream_.unacknowledged() != 0; }
  bool wanted() const { return stream_.acknowledgement_wanted(); }  // the peer's program waits for it
  void Now() { stream_.Acknowledge(); }
  // Whether to do it before a program that spins hears of what it got; then how that was, and the next poll.
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
  // What was carried out outlives the process (llp::Channel::CarriedOutHere): nothing need go ahead.
  void Survives() { survives_ = true; }
  // What is owed goes with the next thing that is sent, or soon.
  void Later();
  // A poll found nothing.
  void OnErrand();

 private:
  struct Timer {
    bool armed = false;
    uint32_t received = 0;  // the peer's last request when it was armed: what is owed of those is due when it fires
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
  Timer timers_[2];               // for what nobody waits for, and for what is wanted
};

}  // namespace weft::sim

#endif  // SIM_CONNECTION_ACKNOWLEDGER_H_
