#ifndef WIRES_HOST_MEETING_SHARED_MEMORY_H_
#define WIRES_HOST_MEETING_SHARED_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "wires/host/grants/layout.h"
#include "wires/host/ring/consumer.h"
#include "wires/host/ring/layout.h"
#include "wires/host/ring/producer.h"

namespace weft::host {

// A word of a process that the other one reads to find out whether it can read that process's memory at all, and whether it is still this process.
// The initiator's is published by `joined`, the responder's by its answer, which comes through the kernel.
struct Probe {
  std::atomic<uint64_t> address, value;
};

// The first page of what two processes share. The responder makes it.
struct ControlPage {
  std::atomic<uint32_t> joined;    // the initiator's: all that it sends comes through the rings. Release, and acquire at the responder
  std::atomic<uint32_t> declined;  // the responder's, before its answer: it cannot be woken, and the rings are not to be used
  Probe of_initiator, of_responder;
  uint64_t secret_to_responder, secret_to_initiator;  // of the rings' stamps
  RingWords to_responder, to_initiator;
  GrantWords by_responder, by_initiator;  // by whose grants the other one places
  alignas(kLine) std::atomic<uint32_t> initiator_polls_on;  // the processor, plus one; 0: it does not poll. Hints
  alignas(kLine) std::atomic<uint32_t> responder_polls_on;
  // Requests of the other one that each has carried out, modulo 2^32: an acknowledgement that was not sent before the process ended. Stored with
  // release when what they placed is there (rdmap/delivery.h).
  alignas(kLine) std::atomic<uint32_t> carried_out_by_initiator;
  alignas(kLine) std::atomic<uint32_t> carried_out_by_responder;
};
static_assert(sizeof(ControlPage) <= 4096);

// One mapping of it: 268 KiB of address space, of which a connection uses the pages that it has touched. Owns the mapping. The memory has no name,
// cannot be made shorter by anybody (memfd with seals), and is gone with its last user.
class SharedMemory {
  static constexpr size_t kControlBytes = 4096;
  static constexpr size_t kCopyBytes = 64 * 1024 + 4096;
  static_assert(kCopyBytes >= kMostUlpdu);

 public:
  static constexpr size_t kBytes = kControlBytes + 2 * kRingBytes + 2 * kCopyBytes;  // of the mapping

  // nullptr, and errno: there is no room, or it is forbidden. `*fd`: for the peer, to be closed by the caller.
  static std::unique_ptr<SharedMemory> Create(int* fd);
  // Of a descriptor that a peer sent; what is not sealed, or not of our size, is refused. The descriptor stays the caller's.
  static std::unique_ptr<SharedMemory> Adopt(int fd);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  ControlPage& control() { return *reinterpret_cast<ControlPage*>(base_); }
  Producer MakeProducer(bool initiator);
  Consumer MakeConsumer(bool initiator);
  // kMostUlpdu bytes: where the producer copies what the consumer refused to read where it lay.
  uint8_t* Copy(bool of_initiator) { return base_ + kControlBytes + 2 * kRingBytes + (of_initiator ? 0 : kCopyBytes); }

 private:
  explicit SharedMemory(uint8_t* base) : base_(base) {}
  static std::unique_ptr<SharedMemory> Map(int fd);

  uint8_t* const base_;
};

}  // namespace weft::host

#endif  // WIRES_HOST_MEETING_SHARED_MEMORY_H_
