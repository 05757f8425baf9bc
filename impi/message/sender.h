#ifndef IMPI_MESSAGE_SENDER_H_
#define IMPI_MESSAGE_SENDER_H_

#include <cstdint>
#include <deque>

#include "base/result.h"
#include "impi/message/handles.h"
#include "impi/message/types.h"

namespace weft::impi {

// A message that this process sends.
struct Outbound {
  enum class State : uint8_t {
    kQueued,      // no packet of it was taken
    kAwaiting,    // its first packet was DATASYNC; SYNCACK has not come
    kContinuing,  // a long message after its SYNCACK
    kDone,        // all its packets were taken, and SYNCACK came if one had to
    kCancelled,
  };
  enum class Cancel : uint8_t {
    kNone,
    kQueued,   // CANCEL waits to be taken
    kAsked,    // it was taken; the answer has not come
    kRefused,  // CANCELNO came
  };
  PeerId peer;
  Envelope envelope;
  bool synchronous = false;
  State state = State::kQueued;
  Cancel cancel = Cancel::kNone;
  bool released = false;      // the program has no request for it any more
  uint64_t sequence = 0;      // pk_seqnum
  uint64_t taken = 0;         // bytes, in packets that were taken
  uint64_t their_number = 0;  // of the receive, as SYNCACK had it

  bool asks() const { return cancel == Cancel::kQueued || cancel == Cancel::kAsked; }
};

enum class CancelOutcome : uint8_t {
  kCancelled,  // no packet of it was taken, and none will be
  kAsked,      // the peer decides: kCancelled or kNotCancelled comes
  kTooLate,    // it completes, or has completed, as if nobody had asked
};

// The messages of this process to one process of another client (IMPI 0.0, sections 3.7.1, 3.7.2 and 3.7.4): which packets they become, and in which order.
// First packets leave in the order of Send, because MPI's messages do not overtake. Further packets of long messages and first packets take turns, so that
// a short message does not wait for a long one; LAM was never seen to receive such a mixture, and gets each long message in one piece.
//
// pk_seqnum numbers the messages of a pair of processes from 1; all packets of a message have the same. (LAM numbers packets: departures.h.)
class Sender {
 public:
  // `sends` is the table of the process, shared by all of its pairs. `data_length`: bytes, IMPI_Pk_maxdatalen.
  Sender(PeerId peer, Peer kind, uint32_t data_length, Handles<Outbound>& sends) : peer_(peer), kind_(kind), data_length_(data_length), sends_(sends) {}

  SendId Send(const Envelope& envelope, bool synchronous);
  CancelOutcome Cancel(SendId id);
  void Release(SendId id);

  bool has_cancels() const { return !cancels_.empty(); }
  bool has_firsts() const { return !firsts_.empty(); }
  bool has_rests() const { return !rests_.empty(); }
  // The next packets, if there are some: without the names of the processes. `out` gets all but the header. `may_be_first`: there is room for the first packet
  // of a message (FlowOut::may_send_first).
  Packet TakeCancel(Outgoing& out);
  Packet TakeData(bool may_be_first, Outgoing& out);

  Result<Event, Complaint> OnSyncAck(const Packet& packet);
  // CANCELYES and CANCELNO.
  Result<Event, Complaint> OnCancelReply(const Packet& packet);

 private:
  bool NeedsSyncAck(const Outbound& send) const;
  const char* WhyNoSyncAck(const Outbound& send) const;
  Packet TakeFirst(Outgoing& out);
  Packet TakeRest(Outgoing& out);
  Packet DataOf(SendId id, Outbound& send, Outgoing& out) const;
  void RemoveIfOver(SendId id, const Outbound& send);

  const PeerId peer_;
  const Peer kind_;
  const uint32_t data_length_;
  Handles<Outbound>& sends_;
  std::deque<SendId> firsts_;   // kQueued
  std::deque<SendId> rests_;    // kContinuing
  std::deque<SendId> cancels_;  // Cancel::kQueued
  bool rest_is_next_ = false;
  uint64_t sequence_ = 0;
};

}  // namespace weft::impi

#endif  // IMPI_MESSAGE_SENDER_H_
