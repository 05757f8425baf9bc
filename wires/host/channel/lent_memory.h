#ifndef WIRES_HOST_CHANNEL_LENT_MEMORY_H_
#define WIRES_HOST_CHANNEL_LENT_MEMORY_H_

#include <cstddef>
#include <memory>
#include <optional>

#include "llp/channel.h"
#include "transport/network.h"
#include "wires/host/channel/references.h"
#include "wires/host/grants/granter.h"
#include "wires/host/meeting/meeting_point.h"
#include "wires/host/ring/producer.h"

namespace weft::host {

// All memory of this process that the peer of one connection may access itself: long payloads that it reads from our
// memory (references), and buffers that it writes and reads (grants). Every way to revoke access goes through here:
// memory that goes away, changed rights, and each kind of end. What is revoked is closed to the peer at once:
//
// - A payload that the peer has not begun to read is copied, or revoked: the peer finds that it does not get it.
// - If the peer is reading a payload, it is waited for, at most kReading. Then the payload is revoked all the same, and
//   the peer drops what it read.
// - A buffer is shut. If a call of the peer is writing into it, Settled() is false, and Await() waits, as long as the
//   peer's process lives.
//
// Owns the references and the shared words, and outlives the channel. Guarded by the channel's lock, except for
// Settled() and Await(), which are thread safe.
class LentMemory final : public llp::LentMemory, public std::enable_shared_from_this<LentMemory> {
 public:
  LentMemory(std::shared_ptr<Met> met, bool initiator);
  ~LentMemory() override;

  References& references() { return references_; }
  Granter& granter() { return granter_; }

  // The memory goes away. Returns 0 if referenced payload there will be sent as it was. Otherwise the stream is over:
  // EFAULT: the payload is no longer mapped (`copy` reported it); ETIMEDOUT: the peer does not finish reading. Sets
  // `*replaced` if the peer must be woken, since it may have found a record while this process held it.
  int TakeBack(Producer& producer, const void* begin, size_t length, llp::Channel::Copy copy, bool* replaced);
  // The connection is given up: the peer does not get what it has not read.
  void RevokeAll(Producer& producer);
  // The connection ends in order: copies of referenced payload stay available to the peer for a while, as far as this
  // process has room for them (kMostKept).
  void Keep(const Producer& producer, transport::Network& network, llp::Channel::Copy copy);

  // llp::LentMemory
  bool Settled(const void* begin, size_t length) override { return granter_.Settled(begin, length); }
  void Await(const void* begin, size_t length) override;

  // For tests: bytes kept by all closed connections.
  static size_t kept();
  static constexpr size_t kMostKept = size_t{64} << 20;

 private:
  bool AwaitReader(Producer& producer, uint64_t line) const;
  // Returns whether the whole payload was copied.
  static bool CopyPayload(References::One& one, llp::Channel::Copy copy);
  void Expire();
  bool PeerLeft() const;

  const std::shared_ptr<Met> met_;
  const bool initiator_;
  Granter granter_;
  References references_;
  std::optional<Producer> producer_;  // for what is kept
  size_t kept_ = 0;                   // bytes
};

}  // namespace weft::host

#endif  // WIRES_HOST_CHANNEL_LENT_MEMORY_H_
