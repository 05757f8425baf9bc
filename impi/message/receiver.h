#ifndef IMPI_MESSAGE_RECEIVER_H_
#define IMPI_MESSAGE_RECEIVER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/result.h"
#include "impi/message/flow.h"
#include "impi/message/handles.h"
#include "impi/message/types.h"

namespace weft::impi {

// A message that comes to this process.
struct Inbound {
  PeerId peer;
  Envelope envelope;
  uint64_t their_number = 0;  // of the sender's request (pk_srqid), perhaps not unique
  bool synchronous = false;   // SYNCACK is to be sent
  bool matched = false;
  uint64_t arrived = 0;  // bytes
  uint64_t cost = 0;     // bytes, FlowIn::CostOf
  uint64_t room = 0;     // bytes, of the receive
};

// The answer to a packet.
struct Answer {
  PacketType type = PacketType::kSyncAck;
  uint64_t source_request = 0, destination_request = 0;
};

// What Match tells.
struct Matched {
  bool whole = false;      // all bytes have come; the number of the message is void
  bool truncated = false;  // the receive has no room for the whole message
};

// The messages of one process of another client to this one (IMPI 0.0, sections 3.7.1, 3.7.2 and 3.7.4). It keeps headers and no data.
class Receiver {
 public:
  // `messages` is the table of the process, shared by all of its pairs.
  Receiver(PeerId peer, FlowIn& flow, Handles<Inbound>& messages) : peer_(peer), flow_(flow), messages_(messages) {}

  // DATA and DATASYNC. kMessage, kPart, or kDropped.
  Result<Event, Complaint> OnData(const Packet& packet);
  // A receive with room for `room` bytes has matched. The answer, if there has to be one, is in `answer`.
  Matched Match(MessageId id, uint64_t room, std::optional<Answer>& answer);
  // A matched probe has taken the message: it cannot be cancelled any more. It stays charged and unanswered until Match.
  void Claim(MessageId id);
  // The message that CANCEL with this number of the sender's would withdraw.
  std::optional<MessageId> WithdrawnBy(uint64_t number) const;
  // CANCEL. There is always an answer. kWithdrawn, or kNone.
  Event OnCancel(const Packet& packet, Answer& answer);
  // Nobody will match the messages that are held, nor those that still come (section 3.8). Their numbers are void.
  void Discard();

 private:
  Event OnFirst(const Packet& packet);
  Result<Event, Complaint> OnRest(const Packet& packet);
  void ForgetNumber(MessageId id, const Inbound& message);

  const PeerId peer_;
  FlowIn& flow_;
  Handles<Inbound>& messages_;
  // The messages that are not matched or claimed, and of them by the sender's number the one that came last: only that one can be cancelled. If the last
  // message with a number was matched, an earlier one that is held belongs to a request that is over, and must not be taken for it.
  std::map<uint64_t, MessageId> last_by_number_;
  bool discards_ = false;
};

}  // namespace weft::impi

#endif  // IMPI_MESSAGE_RECEIVER_H_
