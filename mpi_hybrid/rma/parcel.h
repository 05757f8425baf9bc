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

// Operations of an epoch on memory that only the kernel can copy to, in pieces so small that each one would cost the
// kernel a page look-up. They are deferred until the epoch ends; then the target carries them out itself. They are
// messages (wire.h), each behind its length. The origin collects them in its own memory and hands them over through a
// range of the host's segment. The target reads that range with read calls, so that it works on a copy that no other
// process can change. This class is the origin's side, for one target in one window. Call with the library's lock held.
class Parcel {
 public:
  explicit Parcel(shm::NodeSegment& node) : node_(node) {}
  ~Parcel();  // does not free memory of the segment: call GiveBack while the segment exists
  Parcel(const Parcel&) = delete;
  Parcel& operator=(const Parcel&) = delete;

  bool empty() const { return bytes_ == 0; }
  // Space for the next message, of up to kSlotBytes bytes. Null: there is none; all messages must first be carried out
  // or handed over.
  uint8_t* Begin();
  void End(size_t message_bytes);
  // Moves the rest to where the target reads it. False: that is not possible, and all messages are still in this
  // process.
  bool Seal();
  // The place of the sealed messages in the segment.
  uint64_t offset() const { return *offset_; }
  uint64_t bytes() const { return bytes_; }
  // Visits the messages in the order in which they were added, until `visit` returns false. Returns false in that case,
  // or if they cannot be read.
  using Visit = std::function<bool(ByteSpan message)>;
  bool ForEach(const Visit& visit) const;
  // Empties the parcel. `handed_over`: its memory counts as in use until Returned().
  void Clear(bool handed_over);
  void Returned();
  // No target reads any of the memory any more.
  void GiveBack();

  // Limit, in bytes, for all parcels of this process that no target has read yet.
  static constexpr size_t kMost = size_t{16} << 20;
  // Bytes that a target's share of the segment keeps for later parcels, for all origins together.
  static constexpr size_t kKept = size_t{1} << 20;

 private:
  bool Flush();

  static inline size_t in_use_ = 0;  // counts against kMost

  shm::NodeSegment& node_;
  std::optional<uint64_t> offset_;  // of kMost bytes of the segment
  std::vector<uint8_t> buffer_;     // data behind the flushed part
  size_t filled_ = 0;               // bytes in the buffer
  size_t bytes_ = 0;                // bytes flushed or in the buffer
  size_t handed_over_ = 0;
};

// The target's side: visits the messages at `offset` of the segment's memory file, `bytes` bytes in total, like
// Parcel::ForEach. If the offset or the length is wrong, the messages are invalid or cannot be read.
bool ReadParcel(int memory, uint64_t offset, uint64_t bytes, const Parcel::Visit& visit);

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_PARCEL_H_
