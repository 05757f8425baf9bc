#ifndef MPI_HYBRID_COLL_SCHEDULE_H_
#define MPI_HYBRID_COLL_SCHEDULE_H_

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "mpi_hybrid/core/ref.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/datatype/op.h"

namespace weft::mpi {

// One step of a collective at one rank. The steps of a round start in order. Copies and reductions are carried out at
// once; messages complete in any order. A round ends when all its messages have completed.
struct Step {
  enum class Kind : uint8_t { kSend, kReceive, kCopy, kReduce, kEndOfRound };

  Kind kind = Kind::kEndOfRound;
  bool local = false;  // `peer` is a rank of the local communicator of an intercommunicator
  bool exact = false;  // receives: a message shorter than the buffer is an error too
  uint8_t tag = 0;     // messages: of a protocol (IMPI's are below 256); 0: the collective's own
  int peer = 0;
  const void* from = nullptr;  // sends, copies, reductions
  void* to = nullptr;          // receives, copies; reductions: to = from op to
  MPI_Aint count = 0;
  const Datatype* type = nullptr;
  MPI_Aint to_count = 0;  // copies
  const Datatype* to_type = nullptr;
  const Op* op = nullptr;
};

// What one rank does in a collective: its steps, and the temporary memory that they need. The algorithms
// (algorithms.h), which know nothing of communicators, build it. A ScheduleRequest carries it out; a test carries out
// the schedules of all ranks in one process.
class Schedule {
 public:
  void Send(const void* buffer, MPI_Aint count, const Datatype& type, int peer);
  // The message has exactly the length of the buffer.
  void Receive(void* buffer, MPI_Aint count, const Datatype& type, int peer);
  // The message may be shorter.
  void ReceiveAtMost(void* buffer, MPI_Aint count, const Datatype& type, int peer);
  void SendBytes(const void* buffer, MPI_Aint bytes, int peer) { Send(buffer, bytes, *bytes_, peer); }
  void ReceiveBytes(void* buffer, MPI_Aint bytes, int peer) { Receive(buffer, bytes, *bytes_, peer); }

  // Copies within this rank's memory, as a message would. No effect if both addresses are the same.
  void Copy(const void* from, MPI_Aint count, const Datatype& type, void* to, MPI_Aint to_count,
            const Datatype& to_type);
  void Copy(const void* from, void* to, MPI_Aint count, const Datatype& type) {
    Copy(from, count, type, to, count, type);
  }
  void Pack(const void* from, MPI_Aint count, const Datatype& type, void* to) {
    Copy(from, count, type, to, count * type.size, *bytes_);
  }
  void Unpack(const void* from, void* to, MPI_Aint count, const Datatype& type) {
    Copy(from, count * type.size, *bytes_, to, count, type);
  }
  // inout = in op inout
  void Reduce(const void* in, void* inout, MPI_Aint count, const Datatype& type, const Op& op);

  // The following steps wait for the messages so far.
  void EndRound();

  // Peers of the following steps are ranks of the local communicator of an intercommunicator.
  void OverLocal(bool local) { local_ = local; }

  // Peers of the following steps are indices into `ranks`, which must live until the next call. Empty: they are ranks.
  void Among(std::span<const int> ranks) { among_ = ranks; }

  // The following messages have this tag, which a protocol demands. 0: that of the collective.
  void Tagged(uint8_t tag) { tag_ = tag; }
  // All messages so far have the tag of the collective.
  void UseOwnTags();

  // Uninitialized memory, aligned to 64 bytes, that lives as long as the schedule.
  uint8_t* Temporary(MPI_Aint bytes);
  // Memory for `count` elements of `type`, aligned to 16 bytes. Returns the address of their origin.
  uint8_t* TemporaryFor(MPI_Aint count, const Datatype& type);

  // Keeps derived types and user-defined operations alive.
  void Keep(const Datatype* type);
  void Keep(const Op& op);

  const std::vector<Step>& steps() const { return steps_; }
  // Empties the schedule for reuse. It keeps its memory, that of temporaries up to a limit.
  void Clear();

  Schedule();

 private:
  struct Chunk {
    std::unique_ptr<uint8_t[]> memory;
    size_t size = 0;
  };

  std::vector<Step> steps_;
  bool open_ = false;  // messages were added since the last end of a round
  bool local_ = false;
  std::span<const int> among_;
  uint8_t tag_ = 0;
  const Datatype* bytes_;  // MPI_BYTE
  std::vector<Chunk> chunks_;
  size_t used_ = 0;  // of the last chunk
  std::vector<Ref<const Datatype>> types_;
  std::vector<Ref<const Op>> ops_;
};

// Element `index` of an array of `type`.
inline uint8_t* At(void* buffer, MPI_Aint index, const Datatype& type) {
  return static_cast<uint8_t*>(buffer) + index * type.extent;
}
inline const uint8_t* At(const void* buffer, MPI_Aint index, const Datatype& type) {
  return static_cast<const uint8_t*>(buffer) + index * type.extent;
}

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_SCHEDULE_H_
