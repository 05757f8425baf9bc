#ifndef SIM_CONNECTION_LONE_ACKNOWLEDGEMENTS_H_
#define SIM_CONNECTION_LONE_ACKNOWLEDGEMENTS_H_

#include <cstdint>

namespace weft::sim {

// Whether a program that spins on its completion queue is expected to send something before it looks again, with which the acknowledgement of what it
// has got would go. Where it is not, the acknowledgement goes at once, before the program hears of what it got: it may end with that, by _exit(2), after which
// nobody acknowledges, and its peer would get IBV_WC_RETRY_EXC_ERR of a request that was carried out. An adapter acknowledges by itself, whatever its program does.
//
// At first it is not expected. A wrong guess costs a packet; the next one in favour of the program is made after kEnough acknowledgements that went
// alone, at a poll that found nothing: one packet in so many at most is wasted, in exchanges of questions and answers as in streams, where an acknowledgement
// waits for the requests that come next.
class LoneAcknowledgements {
 public:
  static constexpr uint8_t kEnough = 16;

  bool expected() const { return in_a_row_ == kEnough; }
  // One went before the program heard of what it acknowledges. `posted`: requests of the program so far.
  void WentAhead(uint64_t posted) {
    ahead_ = true;
    posted_ = posted;
  }
  // One went at a poll that found nothing: it had waited in vain.
  void WentAlone() {
    if (in_a_row_ < kEnough) ++in_a_row_;
  }
  // The next poll, and whether more has come with it.
  void OnPoll(bool received, uint64_t posted) {
    if (!ahead_) [[likely]] return;
    ahead_ = false;
    if (received || posted != posted_) in_a_row_ = 0;
  }

 private:
  uint8_t in_a_row_ = kEnough;
  bool ahead_ = false;  // the last one did; the next poll tells whether that was right
  uint64_t posted_ = 0;
};

}  // namespace weft::sim

#endif  // SIM_CONNECTION_LONE_ACKNOWLEDGEMENTS_H_
