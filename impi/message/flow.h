#ifndef IMPI_MESSAGE_FLOW_H_
#define IMPI_MESSAGE_FLOW_H_

#include <cstdint>

#include "impi/message/types.h"

// Flow control between two processes of different clients (IMPI 0.0, section 3.6), one direction each.
//
// Which packets count: Counts() of wire/packet.h. SYNCACK and the cancel packets count, as LAM has it, too.
//
// When a packet was received, so that PROTOACK may be sent for it: the specification says "received" of a message that a receive has matched (3.7.4), and
// here the first packet of a message counts from then on; every other packet when it is read. The purpose is a bound for what is stored. A short message
// takes less than a packet's share of it: the first packet of a message that no receive has matched is charged with its bytes and kHeldCost, at most
// data_length. PROTOACK for ack_mark packets is due when what is charged fits into the packets that then are still unacknowledged,
//
//   held <= (unacknowledged - ack_mark) * data_length + store,
//
// so that held never exceeds high_water * data_length + store. If each message were charged with a whole packet, and `store` were 0, this would be the
// literal rule, by which high_water unmatched messages of one byte stop a sender.
//
// Which packets may use which part of the window: a peer that waits for SYNCACK, or for the rest of a long message, must get it although it has not received
// the messages that were sent before. Otherwise two processes that send each other long messages, and then many short ones, and receive in that order, each
// keep the other's SYNCACK behind their own short messages for ever. So of high_water packets, first packets of messages, which alone can lie at the peer
// unmatched, get only
//
//   first_packets = max(high_water - ack_mark, ack_mark).
//
// The sender does not know which packets a PROTOACK is for, and takes first packets to be the last ones.
//
// No deadlock, if high_water >= 2 * ack_mark:
//   1. PROTOACK is never blocked and does not count, and each arriving packet is read, whatever this process itself can send.
//   2. All packets but first packets are received when they arrive. If a direction is full, at most high_water - ack_mark of its packets are held, so that at
//      least ack_mark are received and PROTOACK is due. So packets other than first packets never stand still, and a message that a receive has matched
//      comes to its end, at both ends, whatever else the program does or leaves undone.
//   3. First packets stand still only while messages are held. If all were matched, fewer than ack_mark <= first_packets would be unacknowledged. So they
//      go on when receives match what is held; they wait for no other direction and for no other pair.
// What can end in a deadlock is thus only a program that posts the receive for a held message after a later message of the same pair has come, directly or by
// way of other processes. It needs `store` for the messages that it leaves lying. MPI lets such a program block in a standard send, but its nonblocking sends
// have to come through (MPI 4.0, section 3.5, Progress), so the owner chooses how much it is ready to store.
//
// With high_water < 2 * ack_mark, which the specification allows, no sender can keep to 2 and 3 at once, because it cannot tell a packet that is held from
// one that is received and not acknowledged yet. 3 is kept, and 2 needs `store`, too. A client of ours should announce at least twice its ack_mark. Towards a
// sender that fills the window with first packets 2 does not hold for what it sends, either.
namespace weft::impi {

struct FlowLimits {
  uint32_t ack_mark = 1;    // IMPI_Pk_ackmark, 1 to high_water
  uint32_t high_water = 1;  // IMPI_Pk_hiwater
  uint64_t store = 0;       // bytes of unmatched messages from one process that are stored beyond high_water * data_length
};

// What this process may send to the other one.
class FlowOut {
 public:
  explicit FlowOut(const FlowLimits& limits) : limits_(limits) {}

  bool is_full() const { return sent() >= limits_.high_water; }
  bool may_send_first() const;  // the first packet of a message
  // A packet that counts was taken; not if it is full. `first`: of a message.
  void Count(bool first);
  // PROTOACK came. False, and nothing has happened: it acknowledges more than was sent.
  [[nodiscard]] bool OnAck();
  uint32_t sent() const { return firsts_ + others_; }  // packets without PROTOACK

 private:
  const FlowLimits limits_;
  uint32_t firsts_ = 0, others_ = 0;  // packets without PROTOACK
};

// What the other one may send to this process.
class FlowIn {
 public:
  static constexpr uint64_t kHeldCost = 256;  // bytes, of a message beside its data: what this process keeps about it

  // `data_length`: bytes, IMPI_Pk_maxdatalen.
  FlowIn(const FlowLimits& limits, uint32_t data_length) : limits_(limits), data_length_(data_length) {}

  // The other one may send no packet that counts.
  bool is_full() const { return received_ >= limits_.high_water; }
  // A packet that counts came; not if it is full.
  void Count();
  // What a message is charged with whose first packet has `bytes` bytes of data. It is held from its arrival until a receive matches it.
  uint64_t CostOf(uint32_t bytes) const;
  void Hold(uint64_t cost) { held_ += cost; }
  void Unhold(uint64_t cost);
  bool owes_ack() const;
  void TakeAck();  // PROTOACK is on its way
  uint64_t held() const { return held_; }  // bytes
  uint32_t unacknowledged() const { return received_; }

 private:
  const FlowLimits limits_;
  const uint32_t data_length_;
  uint32_t received_ = 0;  // packets without PROTOACK
  uint64_t held_ = 0;      // bytes
};

}  // namespace weft::impi

#endif  // IMPI_MESSAGE_FLOW_H_
