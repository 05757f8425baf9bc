#ifndef MPI_HYBRID_RMA_PARCEL_H_
#define MPI_HYBRID_RMA_PARCEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/byte_reader.h"
#include "mpi_hybrid/host/segment.h"

namespace weft::mpi::rma {

// Operations of an epoch on memory that only the kernel can copy to, in pieces so small that each one would cost the
// kernel a page look-up. They are deferred until the epoch ends; then the target carries them out itself. They are
// messages (wire.h), each behind its length. The origin collects them in its own memory and hands them over through a
// range of the host's segment. The target works on a copy that no other process can change. Both use calls of the
// kernel, because a store into a page that does not exist yet would be a signal if there is no memory. Once a call has
// made the first pages, short parcels are copied by the processes. This class is the origin's side, for one target in
// one window. Call with the library's lock held.
class Parcel {
 public:
  // `origins`: ranks of the window.
  Parcel(host::Segment& segment, int origins) : segment_(segment), kept_(KeptBytes(origins)) {}
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
  // Bytes of the range that stay in the segment for later parcels. The target frees the range of a longer parcel after
  // it has read it.
  static size_t KeptBytes(int origins) { return kKept / static_cast<size_t>(origins); }
  // Length of a parcel that the processes copy without calls.
  static constexpr size_t kShort = 72 * 1024;

 private:
  // Bytes that a target keeps for all origins together.
  static constexpr size_t kKept = size_t{1} << 20;

  bool Flush();

  static inline size_t in_use_ = 0;  // counts against kMost

  host::Segment& segment_;
  const size_t kept_;
  std::optional<uint64_t> offset_;  // of kMost bytes of the segment
  host::Mapping start_;              // the first kShort bytes of them
  size_t made_ = 0;                 // so many bytes of start_ are in pages that exist
  std::vector<uint8_t> buffer_;     // data behind the flushed part
  size_t filled_ = 0;               // bytes in the buffer
  size_t bytes_ = 0;                // bytes flushed or in the buffer
  size_t handed_over_ = 0;
};

// The target's side, for one origin.
class ParcelReader {
 public:
  // Visits the messages at `offset` of the segment, `bytes` bytes in total, like Parcel::ForEach. If the offset or the
  // length is wrong, the messages are invalid or cannot be read.
  bool Read(const host::Segment& segment, uint64_t offset, uint64_t bytes, const Parcel::Visit& visit);

 private:
  uint64_t offset_ = 0;
  host::Mapping start_;  // Parcel::kShort bytes at offset_
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_PARCEL_H_
