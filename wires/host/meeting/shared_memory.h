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

// A word of a process that its peer reads to find out whether it can read that process's memory, and whether it is
// still the same process. The initiator's is published by `joined`, the responder's by its answer, which comes through
// the kernel.
struct Probe {
  std::atomic<uint64_t> address, value;
};

// The first page of the memory that two processes share. The responder makes it.
struct ControlPage {
  // By the initiator: it sends everything through the rings. Stored with release, loaded with acquire.
  std::atomic<uint32_t> joined;
  // By the responder, before its answer: it cannot be woken, and the rings must not be used.
  std::atomic<uint32_t> declined;
  Probe of_initiator, of_responder;
  uint64_t secret_to_responder, secret_to_initiator;  // for the rings' stamps
  RingWords to_responder, to_initiator;
  GrantWords by_responder, by_initiator;  // grants by each side, for accesses of the other
  alignas(kLine) std::atomic<uint32_t> initiator_polls_on;  // the processor, plus one; 0: does not poll. Hints
  alignas(kLine) std::atomic<uint32_t> responder_polls_on;
  // The number of the other side's requests that each side has carried out, modulo 2^32: an acknowledgement that counts
  // even if the process ends before it sends one. Stored with release after the data is placed (rdmap/delivery.h).
  alignas(kLine) std::atomic<uint32_t> carried_out_by_initiator;
  alignas(kLine) std::atomic<uint32_t> carried_out_by_responder;
};
static_assert(sizeof(ControlPage) <= 4096);

// A mapping of it: 268 KiB of address space; a connection uses only the pages that it has touched. Owns the mapping.
// The memory has no name, no process can shorten it (memfd with seals), and it is freed with its last user.
class SharedMemory {
  static constexpr size_t kControlBytes = 4096;
  static constexpr size_t kCopyBytes = 64 * 1024 + 4096;
  static_assert(kCopyBytes >= kMostUlpdu);

 public:
  static constexpr size_t kBytes = kControlBytes + 2 * kRingBytes + 2 * kCopyBytes;  // size of the mapping

  // nullptr and errno: there is no room, or it is forbidden. `*fd`: for the peer; the caller closes it.
  static std::unique_ptr<SharedMemory> Create(int* fd);
  // Maps a descriptor that a peer sent. Refuses one that is not sealed or does not have this size. The caller still
  // owns the descriptor.
  static std::unique_ptr<SharedMemory> Adopt(int fd);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  ControlPage& control() { return *reinterpret_cast<ControlPage*>(base_); }
  Producer MakeProducer(bool initiator);
  Consumer MakeConsumer(bool initiator);
  // kMostUlpdu bytes: the producer copies a payload here if the consumer cannot read it in the producer's memory.
  uint8_t* Copy(bool of_initiator) { return base_ + kControlBytes + 2 * kRingBytes + (of_initiator ? 0 : kCopyBytes); }

 private:
  explicit SharedMemory(uint8_t* base) : base_(base) {}
  static std::unique_ptr<SharedMemory> Map(int fd);

  uint8_t* const base_;
};

}  // namespace weft::host

#endif  // WIRES_HOST_MEETING_SHARED_MEMORY_H_
