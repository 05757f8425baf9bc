#ifndef MPI_HYBRID_RMA_FENCE_NOTICE_H_
#define MPI_HYBRID_RMA_FENCE_NOTICE_H_

#include <cstdint>
#include <optional>

#include "mpi_hybrid/rma/wire.h"

namespace weft::mpi::rma {

// How this rank and one other rank of a window, which is reached by messages, tell each other that they are in a fence: once for each fence and
// direction.
//
// Usually each rank sends a message over its own connection. A rank that gets data in epoch after epoch waits for a reply anyway. It promises in the
// message of one fence that it asks in its message of the next one (`promises`). If the other rank has no operations of its own then, it sends
// no message, and its reply to that message is its notice. Both notices and the data take one packet in each direction then, and no packet is a
// mere acknowledgement.
//
// No rank waits for the other one to begin: a promise binds the rank that made it, and without a promise a rank sends its notice at once. A rank
// whose fences fail, since a third rank died, may be several fences ahead: fences are known by their numbers, and each has its own notice.
//
// Guarded by the service's mutex.
class FenceNotice {
 public:
  // A message of the other rank that wants a reply.
  struct Asker {
    uint32_t connection = 0;  // the service's number of it
    uint16_t slot = 0;
    bool operator==(const Asker&) const = default;
  };
  struct Answer {
    Asker to;
    ReplyStatus status = ReplyStatus::kDone;
  };

  // What this rank does as it comes to the next fence.
  struct Entry {
    uint32_t number = 0;   // of the fence, from 1 on; modulo 2^32
    bool message = true;   // sends a message, which
    bool asks = false;     // ... wants the other rank's notice as its reply, and
    bool promises = false;  // ... says that the next one will
    std::optional<Answer> answer;  // goes out now
  };
  // `operations`: this rank worked on the other rank's memory since the last fence. `gets`: it got data by a message, and may promise.
  Entry Enter(bool operations, bool gets);

  // The other rank's message of its fence `number`. `asker`: if a reply is wanted. *answer: goes out now; an `asker` that has none is answered by a later
  // call. False: the other rank may not send this.
  bool OnMessage(uint32_t number, bool promises, const std::optional<Asker>& asker, std::optional<Answer>* answer);

  // The reply to this rank's message of fence `number`, which asked; true: it is the other rank's notice.
  bool OnReply(uint32_t number, ReplyStatus status);

 private:
  // So many epochs in a row with Gets come before a promise: where fences open and close each epoch, every other one has none.
  static constexpr uint32_t kGetsBeforePromise = 2;
  // So many fences pass before the next promise when the reply was no notice: it was a packet more.
  static constexpr uint32_t kReserve = 64;

  uint32_t number_ = 0;    // of this rank's last fence, which the other one was told of, or will be in the reply that is owed
  bool will_ask_ = false;  // promised by this rank
  uint32_t epochs_with_gets_ = 0;  // up to kGetsBeforePromise
  uint32_t reserve_ = 0;

  uint32_t message_ = 0;           // the other rank's fence of its last message, or one before that
  bool promised_ = false;          // by the other rank, in its last message
  uint32_t promised_number_ = 0;   // of the fence with which it asks; this rank may not have come to the one before yet
  bool owes_ = false;              // this rank, its notice of that fence, as the reply
  std::optional<Asker> asker_;     // its message came before this rank came to the fence
  uint32_t asker_number_ = 0;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_FENCE_NOTICE_H_
