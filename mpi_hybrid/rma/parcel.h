#ifndef MPI_HYBRID_RMA_PARCEL_H_
#define MPI_HYBRID_RMA_PARCEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/byte_reader.h"
#include "mpi_hybrid/shm/node_segment.h"

namespace weft::mpi::rma {

// Operations of an epoch on memory that only the kernel can copy to, in pieces so small that each would cost the kernel a look-up of its page: kept
// until the epoch ends, when the target carries them out itself. They are messages (wire.h), each behind its length. The origin collects them in
// memory of its own, and hands them over through a range of the host's segment, which the target reads with read calls: what it looks at is
// a copy that nobody else can write to. The origin's side, of one target in one window; with the library's lock.
class Parcel {
 public:
  explicit Parcel(shm::NodeSegment& node) : node_(node) {}
  ~Parcel();  // of the segment's memory it gives nothing back: GiveBack, while there is the segment
  Parcel(const Parcel&) = delete;
  Parcel& operator=(const Parcel&) = delete;

  bool empty() const { return bytes_ == 0; }
  // Where the next message goes, of up to kSlotBytes. Null: no room, all of it has to be carried out or handed over first.
  uint8_t* Begin();
  void End(size_t message_bytes);
  // Puts the rest to where the target reads it. False: it cannot be put there; all is still here.
  bool Seal();
  // Of what was sealed, in the segment.
  uint64_t offset() const { return *offset_; }
  uint64_t bytes() const { return bytes_; }
  // The messages, in the order in which they came. Stops when `visit` says false. False: it did, or they cannot be read.
  using Visit = std::function<bool(ByteSpan message)>;
  bool ForEach(const Visit& visit) const;
  // It is empty again. `handed_over`: until Returned() its memory counts as in use.
  void Clear(bool handed_over);
  void Returned();
  // No target reads any of it any more.
  void GiveBack();

  // Bytes of all parcels of this process that no target has read yet, at most.
  static constexpr size_t kMost = size_t{16} << 20;
  // Bytes that a target's share of the segment keeps for the next parcels, all origins together.
  static constexpr size_t kKept = size_t{1} << 20;

 private:
  bool Flush();

  static inline size_t in_use_ = 0;  // of kMost

  shm::NodeSegment& node_;
  std::optional<uint64_t> offset_;  // of kMost bytes of the segment
  std::vector<uint8_t> buffer_;     // behind what was flushed
  size_t filled_ = 0;               // of the buffer
  size_t bytes_ = 0;                // flushed or in the buffer
  size_t handed_over_ = 0;
};

// The target's side: the messages that begin at `offset` of the segment's memory file, `bytes` long altogether. As Parcel::ForEach; a claim that
// does not hold reads as nonsense or not at all.
bool ReadParcel(int memory, uint64_t offset, uint64_t bytes, const Parcel::Visit& visit);

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_PARCEL_H_
