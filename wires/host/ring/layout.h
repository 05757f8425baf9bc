#ifndef WIRES_HOST_RING_LAYOUT_H_
#define WIRES_HOST_RING_LAYOUT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

// How ULPDUs are stored in memory that two processes of one host share. Each ring has one producer and one consumer.
// Neither trusts the other: a reader copies what the other side wrote once, and checks the copy.
//
// A record begins on a line of kLine bytes, is contiguous, and is valid once its stamp is:
//
//       0                                8               12   13   14   15   16
//      +--------------------------------+----------------+----+----+----+----+
//      |             stamp              |     length     |kind| pcs| hdr| ack|
//      +--------------------------------+----------------+----+----+----+----+
// ack: so many more requests of the consumer were carried out (rdmap/delivery.h); 0 to 255, in kUlpdu and kReference.
//
//   kUlpdu      then `length` bytes: the ULPDU
//   kReference  then a claim (8), room for a header of `hdr` bytes (24), and `pcs` pieces of the producer's memory
//               (address 8, length 8): the ULPDU is the header, followed by the content of the pieces
//   kPlaced     then `hdr` bytes: the header of a ULPDU whose payload the producer has already placed
//   kSkip       there is nothing up to the end of the ring
//   kMoved      the producer's next ULPDU and all after it come over TCP
//   kMove       the producer asks the consumer to move its own sending to TCP, too
//
// The stamp is a secret of the ring, mixed with the number of the line since the beginning. So earlier content cannot
// pass for a record, not even if a program sends bytes that look like one.
namespace weft::host {

inline constexpr size_t kLine = 64;
inline constexpr uint32_t kRingLines = 1024;
inline constexpr size_t kRingBytes = kRingLines * kLine;

inline constexpr size_t kMostPieces = 32;
inline constexpr size_t kHeaderRoom = 24;        // a DDP header is 14 or 18 bytes
inline constexpr size_t kMostUlpdu = 64 * 1024 + kHeaderRoom;  // by reference: fits a 64 KiB message
// Longest ULPDU in bytes that is copied through the ring: a record takes at most half of the ring.
inline constexpr size_t kMostCopied = 16 * 1024;

enum class Kind : uint8_t { kUlpdu = 1, kReference = 2, kSkip = 3, kMoved = 4, kMove = 5, kPlaced = 6 };

struct RecordHead {
  std::atomic<uint64_t> stamp;  // stored last, with release: publishes the record. The consumer loads it with acquire
  uint32_t length;
  uint8_t kind, pieces, header, acknowledged;
};
static_assert(sizeof(RecordHead) == 16);

struct Piece {
  uint64_t address, length;
};

// Who holds a reference: the consumer while it reads, or the producer while it replaces memory that goes away. A
// consumer that can no longer read asks for a copy (kRefused), which the producer makes in shared memory (kCopied). The
// producer may revoke a payload for good (kRevoked), even while it is read: the consumer checks again after reading,
// and then treats the data as not received.
enum class Claim : uint32_t { kNobody = 0, kConsumer = 1, kProducer = 2, kRefused = 3, kCopied = 4, kRevoked = 5 };

struct Reference {
  // Passes the reference and the pieces from one side to the other: acquire and release at each change.
  std::atomic<uint32_t> claim;
  uint32_t reserved;
  uint8_t header[kHeaderRoom];
  Piece pieces[kMostPieces];
};
inline constexpr size_t kReferenceBytes = offsetof(Reference, pieces);

// The words of one ring, besides its bytes; each is on its own line. All but the first change seldom. There are two
// pairs of a flag and the value that its owner waits for: `wants_data` and the stamps (Consumer::Sleep,
// Producer::TakeBell), `wants_room` and `tail` (Producer::AskForRoom, Consumer::TakeBell). Each side stores its own
// value, has a full fence, and then loads the other's.
struct RingWords {
  // By the consumer: number of finished lines. Stored with release, loaded with acquire by the producer, which reuses
  // the lines.
  alignas(kLine) std::atomic<uint64_t> tail;
  // Set by the consumer: it sleeps and must be told about a record. Cleared by the producer.
  alignas(kLine) std::atomic<uint32_t> wants_data;
  // By the consumer: it can read the producer's memory. A hint: `claim` tells if it cannot.
  std::atomic<uint32_t> reads_memory;
  // Set by the producer: it must be told when `tail` moves. Cleared by the consumer.
  alignas(kLine) std::atomic<uint32_t> wants_room;
};

inline uint64_t StampOf(uint64_t secret, uint64_t line) { return secret ^ (line + 1) * 0x9e3779b97f4a7c15u; }
inline uint32_t LinesFor(size_t bytes) { return static_cast<uint32_t>((bytes + kLine - 1) / kLine); }

}  // namespace weft::host

#endif  // WIRES_HOST_RING_LAYOUT_H_
