#ifndef SIM_CONNECTION_LONE_ACKNOWLEDGEMENTS_H_
#define SIM_CONNECTION_LONE_ACKNOWLEDGEMENTS_H_

#include <cstdint>

namespace weft::sim {

// Predicts whether a program that spins on its completion queue sends something before it polls again. If so, the
// acknowledgement of what it has received can go with that message. If not, the acknowledgement goes at once, before
// the program sees its completion. The program may end right after that, by _exit(2); then nobody would acknowledge,
// and the peer would get IBV_WC_RETRY_EXC_ERR for a request that was carried out. An adapter acknowledges whatever its
// program does.
//
// At first, no message is expected. A wrong guess costs one packet. After kEnough acknowledgements that were sent
// alone, at a poll that found nothing, the next guess is in favour of the program. So at most one packet in kEnough is
// wasted, both in exchanges of questions and answers and in streams, where an acknowledgement waits for the next
// requests.
class LoneAcknowledgements {
 public:
  static constexpr uint8_t kEnough = 16;

  bool expected() const { return in_a_row_ == kEnough; }
  // An acknowledgement was sent before the program saw the completion. `posted`: number of requests that the program
  // has posted.
  void WentAhead(uint64_t posted) {
    ahead_ = true;
    posted_ = posted;
  }
  // An acknowledgement was sent at a poll that found nothing: it had waited in vain.
  void WentAlone() {
    if (in_a_row_ < kEnough) ++in_a_row_;
  }
  // The next poll, and whether it received anything.
  void OnPoll(bool received, uint64_t posted) {
    if (!ahead_) [[likely]] return;
    ahead_ = false;
    if (received || posted != posted_) in_a_row_ = 0;
  }

 private:
  uint8_t in_a_row_ = kEnough;
  bool ahead_ = false;  // the last one went ahead; the next poll tells whether that was right
  uint64_t posted_ = 0;
};

}  // namespace weft::sim

#endif  // SIM_CONNECTION_LONE_ACKNOWLEDGEMENTS_H_
