#ifndef IMPI_MESSAGE_MATCHING_H_
#define IMPI_MESSAGE_MATCHING_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "base/strong_id.h"
#include "impi/message/types.h"

namespace weft::impi {

using ReceiveId = StrongId<struct ReceiveIdTag, uint64_t>;  // a number of the owner's

// What a receive, or a probe, takes. Empty: any (MPI_ANY_SOURCE, MPI_ANY_TAG). A source is a process and not pk_lsrank, which only the sender vouches for.
struct Wanted {
  uint64_t context = 0;
  std::optional<PeerId> source;
  std::optional<int32_t> tag;
};

// Matching of messages of other clients with receives (MPI 4.0, section 3.5): messages in the order of their arrival, receives in the order of posting. Its
// time grows with the number of waiting receives or messages. It is for owners without an engine that matches; an owner whose receives also take messages
// from processes of its own client has one. Probing is here and nowhere else (IMPI 0.0, section 3.7.3).
class Matching {
 public:
  // A message is available. The receive that matches it, and is done with; else it is held.
  std::optional<ReceiveId> Arrived(MessageId message, PeerId source, uint64_t context, int32_t tag);
  // The message that a new receive matches, which is no longer held; else the receive is posted.
  std::optional<MessageId> Post(ReceiveId receive, const Wanted& wanted);
  // MPI_Iprobe. The message stays.
  std::optional<MessageId> Probe(const Wanted& wanted) const;
  // MPI_Improbe, and kWithdrawn: no receive and no probe finds the message any more. False: it is not held.
  bool TakeOut(MessageId message);
  // False: it is not posted, since a message has matched it.
  bool CancelReceive(ReceiveId receive);
  // The peer is gone: the receives that only it can match are posted no more, its messages are held no more.
  std::vector<ReceiveId> Lose(PeerId peer);

  size_t held() const { return held_.size(); }
  size_t posted() const { return posted_.size(); }

 private:
  struct Held {
    MessageId message;
    PeerId source;
    uint64_t context;
    int32_t tag;
  };
  struct Posted {
    ReceiveId receive;
    Wanted wanted;
  };
  static bool Takes(const Wanted& wanted, const Held& held);

  std::list<Held> held_;
  std::list<Posted> posted_;
};

}  // namespace weft::impi

#endif  // IMPI_MESSAGE_MATCHING_H_
