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

// All memory of this process that the peer of one connection may reach by itself: long payloads that it reads where they lie (references), and buffers
// that it places in and reads (grants). Every way out goes through here: memory that goes away, rights that change, and each kind of end. What is taken
// back is closed to the peer at once:
//
// - a payload that the peer has not begun to read is copied, or revoked: the peer finds that it does not get it;
// - one that it is reading is waited for, kReading at most; then it is revoked all the same, and the peer throws away what it read;
// - a buffer is shut. If the peer is writing into it by a call that has begun, Settled() says so, and Await() waits: as long as the peer's process lives.
//
// Owns the references and the words that both see, and outlives the channel. Under the channel's lock, but for Settled() and Await(), which are thread safe.
class LentMemory final : public llp::LentMemory, public std::enable_shared_from_this<LentMemory> {
 public:
  LentMemory(std::shared_ptr<Met> met, bool initiator);
  ~LentMemory() override;

  References& references() { return references_; }
  Granter& granter() { return granter_; }

  // The memory goes away, and what is referenced there goes out as it was: 0. Else it does not, and the stream is over: EFAULT: it is not there any more
  // (`copy` says so); ETIMEDOUT: the peer does not come to an end with it. `*replaced`: the peer is to be rung for, since it may have found a record in our
  // hands.
  int TakeBack(Producer& producer, const void* begin, size_t length, llp::Channel::Copy copy, bool* replaced);
  // The connection is given up: what the peer has not read it does not get.
  void RevokeAll(Producer& producer);
  // The connection ends in order: copies of what is referenced stay for the peer for a while, as far as there is room for them in this process (kMostKept).
  void Keep(const Producer& producer, transport::Network& network, llp::Channel::Copy copy);

  // llp::LentMemory
  bool Settled(const void* begin, size_t length) override { return granter_.Settled(begin, length); }
  void Await(const void* begin, size_t length) override;

  // For tests: bytes that all closed connections keep.
  static size_t kept();
  static constexpr size_t kMostKept = size_t{64} << 20;

 private:
  bool AwaitReader(Producer& producer, uint64_t line) const;
  // True: all of its payload was copied.
  static bool CopyPayload(References::One& one, llp::Channel::Copy copy);
  void Expire();
  bool PeerLeft() const;

  const std::shared_ptr<Met> met_;
  const bool initiator_;
  Granter granter_;
  References references_;
  std::optional<Producer> producer_;  // of what is kept
  size_t kept_ = 0;                   // bytes
};

}  // namespace weft::host

#endif  // WIRES_HOST_CHANNEL_LENT_MEMORY_H_
