#ifndef LLP_CHANNEL_H_
#define LLP_CHANNEL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "llp/stream.h"
#include "llp/ulpdu.h"
#include "transport/network.h"

namespace weft::llp {

// The object that a channel calls. Calls come from the network's timers; no lock is held.
class ChannelUser {
 public:
  virtual ~ChannelUser() = default;
  // There may be something to receive, to send or to ask for (ProbeIsDue) that no watched descriptor reports.
  virtual void OnWake() = 0;
};

// Result of Receive().
struct Received {
  enum class Kind : uint8_t {
    kNothing,  // nothing had arrived
    kSome,     // `bytes` went to the sink, or into memory that it named
    kStopped,  // the sink accepts no more, or the stream is broken: see `broken`
    kEnded,    // the peer ended its direction in order
    kFailed,   // the stream is dead; `error` is an errno
  };
  Kind kind = Kind::kNothing;
  size_t bytes = 0;  // received by this call, for every kind
  Error broken = Error::kNone;
  int error = 0;
};

// Result of Flush().
struct Flushed {
  enum class Kind : uint8_t {
    kEmpty,    // nothing was waiting
    kAll,      // everything that waited is sent: more can be appended
    kBlocked,  // some waits for room; the channel watches for it
    kFailed,   // nothing can be sent any more. What the peer sent before may still be received.
  };
  Kind kind = Kind::kEmpty;
  size_t bytes = 0;  // sent by this call
};

// Memory of this process that the peer of a channel may access without our help. Outlives the channel. Thread safe.
class LentMemory {
 public:
  virtual ~LentMemory() = default;
  // For memory that was taken back from the peer (Channel::TakeOver, Shut, Close, Abort): true when the peer no longer
  // writes any of these bytes.
  virtual bool Settled(const void* begin, size_t length) = 0;
  // Waits until Settled() is true or the peer's process has ended. Must not be called with a lock held, or on a thread
  // that others wait for.
  virtual void Await(const void* begin, size_t length) = 0;
};

// One connected stream of ULPDUs, as a wire offers it to the connection of a queue pair (RFC 5041 section 5). It
// delivers without loss, or ends. The start-up, in which the two ends agreed on the stream, is already complete. Not
// thread safe: its owner serialises the calls. No call blocks.
class Channel {
 public:
  virtual ~Channel() = default;

  // Called once, before anything else. `sink` gets the ULPDUs that arrive from now on, from within Receive(). Both
  // objects outlive the last call of the channel.
  virtual void Start(UlpduSink& sink, std::weak_ptr<ChannelUser> user) = 0;

  // --- to the peer ---

  // Sends what must precede the first ULPDU. Returns false if no ULPDU may be appended: the preceding bytes are not
  // sent yet, the peer has to send first, or the output has ended and an attempt would break the connection.
  virtual bool ReadyToSend() = 0;
  // Like ReadyToSend(), but does not consider the preceding bytes.
  virtual bool may_send() const = 0;
  virtual UlpduWriter& writer() = 0;
  // Hands appended ULPDUs to the network, as many as one call takes.
  virtual Flushed Flush() = 0;
  // Position (see UlpduWriter::appended()) up to which the channel has handed everything on.
  virtual uint64_t consumed() const = 0;
  virtual bool empty() const = 0;   // everything that is to be sent so far is sent
  virtual bool failed() const = 0;  // Flush() would return kFailed

  // Copies `count` bytes that may no longer be mapped. Returns false if some are not.
  using Copy = bool (*)(uint8_t* to, const uint8_t* from, size_t count);
  // The `length` bytes at `begin` are going away. Payload there that was appended but not sent is copied, and sent as
  // it was; if it is no longer mapped, the stream fails. The peer may begin no further write to these bytes; lent()
  // tells when it has finished those that it began.
  virtual void TakeOver(const void* begin, size_t length, Copy copy) = 0;
  // The stream failed because appended payload is no longer mapped: the program has unmapped it.
  virtual bool payload_gone() const { return false; }
  // The memory that the peer accesses directly, on wires that can do this; the same object for the life of the channel.
  // nullptr: none.
  virtual std::shared_ptr<LentMemory> lent() { return nullptr; }

  // --- from the peer ---

  // Receives what has arrived, at most `most` times what the wire does in one call.
  virtual Received Receive(unsigned most) = 0;
  // Like Receive(), for a thread that polls repeatedly. If another thread is at work on something that several channels
  // share, it receives nothing and does not wait. OnWake() or the watch reports what arrived meanwhile.
  virtual Received TryReceive(unsigned most) { return Receive(most); }
  // A part of a ULPDU has arrived, but not all of it.
  virtual bool in_ulpdu() const = 0;
  // The peer's access rights have changed: earlier answers of the sink about open buffers (UlpduSink::OpenBuffer) are
  // no longer valid.
  virtual void Shut() {}
  // Memory that the sink named may be going away. The rest of a ULPDU that is being placed is dropped; the sink still
  // gets End().
  virtual void DivertPlacement() = 0;
  // Whether the peer may be waiting for a sign of life, so that a message that places nothing must be sent. Returns
  // true at most once each time that one is due.
  virtual bool ProbeIsDue() { return false; }

  // --- readiness ---

  // Watches the channel; `handler` is called until the channel ends. Returns 0 if there is nothing to watch and
  // OnWake() reports everything.
  virtual transport::WatchId Watch(std::shared_ptr<transport::ReadyHandler> handler) = 0;
  // The events that the channel waits for may have changed.
  virtual void UpdateInterest() = 0;
  // Called in each round by a thread that spins on Receive(): no other thread needs to look for input (see
  // Network::Lend()). Returns true if the peer polls on the same processor, or may; then nothing arrives until one of
  // them yields.
  virtual bool Lend() { return false; }
  // The thread that called Lend() is about to sleep; it calls Receive() at once.
  virtual void EndLend() {}
  // No output is blocked, and no watch reports an end of blocking. So a look that found nothing to receive has nothing
  // else to do.
  virtual bool quiet() const = 0;
  // Whether a step of a spinning thread would find nothing to do, as far as a quick check can tell. The channel is
  // lent.
  virtual bool idle() const { return false; }

  // --- the end ---

  // We send nothing after what was flushed; the peer may still send.
  virtual void EndOutput() = 0;
  // Ends in order: sends all that was appended, then what `last` appends, then the end of the stream. Then it waits for
  // the peer's end, without further calls. After Close() the channel may not be used, nor after Abort(), which ends at
  // once and tells the peer so.
  virtual void Close(const std::function<void(UlpduWriter&)>& last) = 0;
  virtual void Abort() = 0;
  // A word that the peer can still read if this process ends without a message to the peer. It holds the number of the
  // peer's requests that were carried out on this stream (rdmap/delivery.h). nullptr: the wire has none.
  virtual std::atomic<uint32_t>* CarriedOutHere() { return nullptr; }
  // The peer's word; like an acknowledgement, it is only a claim of the peer. nullopt: there is none.
  virtual std::optional<uint32_t> CarriedOutByPeer() { return std::nullopt; }
  // The process is ending. For a wire without sockets, this does what the kernel does when it closes a socket: the peer
  // finds the end of the stream behind the data that was sent.
  virtual void OnExit() {}

  // --- state ---

  virtual transport::SocketAddress PeerAddress() const = 0;
  // Adds a comment on this channel to the capture file.
  virtual void Annotate(const std::string& comment) = 0;
  // A description for a trace.
  virtual std::string Describe() const = 0;
  // What carries the channel now: "tcp", "sctp" or "host".
  virtual const char* wire() const = 0;
  // The fault plan (faults/) has changed.
  virtual void ApplyFaults() {}
};

}  // namespace weft::llp

#endif  // LLP_CHANNEL_H_
