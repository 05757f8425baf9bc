#ifndef MPI_HYBRID_RMA_FENCE_NOTICE_H_
#define MPI_HYBRID_RMA_FENCE_NOTICE_H_

#include <cstdint>
#include <optional>

#include "mpi_hybrid/rma/wire.h"

namespace weft::mpi::rma {

// The protocol by which this rank and one other rank of a window, which is reached by messages, tell each other that
// they are in a fence: one notice per fence and direction.
//
// Usually each rank sends a message over its own connection. A rank that gets data in epoch after epoch waits for a
// reply anyway. In the message of one fence it promises that its message of the next fence will ask for a reply
// (`promises`). If the other rank then has no operations of its own, it sends no message; its reply to that message is
// its notice. The two notices and the data then take one packet in each direction, and no packet carries only an
// acknowledgement.
//
// Neither rank waits for the other one to begin: a promise binds the rank that made it, and without a promise a rank
// sends its notice at once. If a rank's fences fail because a third rank died, it may be several fences ahead.
// Therefore fences have numbers, and each fence has its own notice.
//
// Guarded by the service's mutex.
class FenceNotice {
 public:
  // A message of the other rank that asks for a reply.
  struct Asker {
    uint32_t connection = 0;  // the service's number of it
    uint16_t slot = 0;
    bool operator==(const Asker&) const = default;
  };
  struct Answer {
    Asker to;
    ReplyStatus status = ReplyStatus::kDone;
  };

  // What this rank does when it comes to the next fence.
  struct Entry {
    uint32_t number = 0;   // of the fence, counted from 1, modulo 2^32
    bool message = true;   // whether to send a message, which
    bool asks = false;     // ... asks for the other rank's notice as its reply, and
    bool promises = false;  // ... promises that the message of the next fence will ask
    std::optional<Answer> answer;  // reply to send now
  };
  // `operations`: this rank has accessed the other rank's memory since the last fence. `gets`: it got data by a
  // message, and may make a promise.
  Entry Enter(bool operations, bool gets);

  // The other rank's message of its fence `number`. `asker`: set if it asks for a reply. `*answer`: the reply to send
  // now; if it is not set, a later call answers the asker. False: the other rank must not send this message.
  bool OnMessage(uint32_t number, bool promises, const std::optional<Asker>& asker, std::optional<Answer>* answer);

  // The reply to this rank's message of fence `number`, which asked for one. True: it is the other rank's notice.
  bool OnReply(uint32_t number, ReplyStatus status);

 private:
  // Number of consecutive epochs with Gets before a promise. (If fences open and close each epoch, every other epoch
  // has none.)
  static constexpr uint32_t kGetsBeforePromise = 2;
  // Number of fences until the next promise if the reply was not a notice, because the promise then cost an extra
  // packet.
  static constexpr uint32_t kReserve = 64;

  // of this rank's last fence; the other rank was told of it, or will be by the reply that is owed
  uint32_t number_ = 0;
  bool will_ask_ = false;  // promised by this rank
  uint32_t epochs_with_gets_ = 0;  // up to kGetsBeforePromise
  uint32_t reserve_ = 0;

  uint32_t message_ = 0;           // the other rank's fence of its last message, or an earlier one
  bool promised_ = false;          // by the other rank in its last message
  // of the fence at which the other rank asks; this rank may not have reached the one before it
  uint32_t promised_number_ = 0;
  bool owes_ = false;              // this rank owes its notice of that fence as the reply
  std::optional<Asker> asker_;     // the other rank's message came before this rank reached the fence
  uint32_t asker_number_ = 0;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_FENCE_NOTICE_H_
