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

// Whom a channel calls. From the network's timers, without locks.
class ChannelUser {
 public:
  virtual ~ChannelUser() = default;
  // There may be something to receive, to send or to ask for (ProbeIsDue), although nothing that is watched says so.
  virtual void OnWake() = 0;
};

// What became of Receive().
struct Received {
  enum class Kind : uint8_t {
    kNothing,  // nothing had come
    kSome,     // `bytes` went to the sink, or into memory that it named
    kStopped,  // the sink takes no more, or the stream is broken: `broken`
    kEnded,    // the peer ended its direction in order
    kFailed,   // the stream is dead; `error` is an errno
  };
  Kind kind = Kind::kNothing;
  size_t bytes = 0;  // that came by this call, whatever the kind
  Error broken = Error::kNone;
  int error = 0;
};

// What became of Flush().
struct Flushed {
  enum class Kind : uint8_t {
    kEmpty,    // nothing waited
    kAll,      // all that waited went out: more can be appended
    kBlocked,  // some waits for room; the channel watches for it
    kFailed,   // the stream takes nothing any more. What the peer sent before may still be received.
  };
  Kind kind = Kind::kEmpty;
  size_t bytes = 0;  // that went out by this call
};

// Memory of ours that the peer of a channel may reach without our help. Outlives the channel. Thread safe.
class LentMemory {
 public:
  virtual ~LentMemory() = default;
  // Of memory that was taken away from the peer (Channel::TakeOver, Shut, Close, Abort): it does not write any of these bytes any more.
  virtual bool Settled(const void* begin, size_t length) = 0;
  // Waits for that, as long as the peer's process lives. Not on a thread that others wait for, and without locks.
  virtual void Await(const void* begin, size_t length) = 0;
};

// One connected stream of ULPDUs, as a wire offers it to the connection of a queue pair (RFC 5041 section 5): delivery without loss, or
// an end. What the two ends said to one another before (the start-up) is over. Not thread safe: its owner serialises. Nothing blocks.
class Channel {
 public:
  virtual ~Channel() = default;

  // First, once. Both outlive the channel's last call; `sink` gets the ULPDUs that come from now on, from within Receive().
  virtual void Start(UlpduSink& sink, std::weak_ptr<ChannelUser> user) = 0;

  // --- to the peer ---

  // Sends what has to be in front of the first ULPDU. False: none may be appended yet: that is still on its way, or the peer is the one
  // that sends first.
  virtual bool ReadyToSend() = 0;
  // The same, as far as the peer is concerned.
  virtual bool may_send() const = 0;
  virtual UlpduWriter& writer() = 0;
  // Hands what was appended to the network, as much as goes in one call.
  virtual Flushed Flush() = 0;
  // Position, as UlpduWriter::appended() counts, up to which all is out of the channel's hands.
  virtual uint64_t consumed() const = 0;
  virtual bool empty() const = 0;   // all that is to be sent so far is out
  virtual bool failed() const = 0;  // Flush() would say so

  // Copies `count` bytes that may not be there any more. False: not all of them are.
  using Copy = bool (*)(uint8_t* to, const uint8_t* from, size_t count);
  // The `length` bytes at `begin` are going away: payload there that was appended and is not out is copied, and goes out as it was; if it is not there
  // any more, the stream fails. The peer begins to place nothing there any more; lent() says when it is through.
  virtual void TakeOver(const void* begin, size_t length, Copy copy) = 0;
  // It failed because payload that was appended is not there any more: the program has unmapped it.
  virtual bool payload_gone() const { return false; }
  // What the peer reaches by itself, on wires on which it can; the same from the beginning to the end. Null: nothing.
  virtual std::shared_ptr<LentMemory> lent() { return nullptr; }

  // --- from the peer ---

  // Receives what is there, at most for a while (`most` of what the wire does in one call).
  virtual Received Receive(unsigned most) = 0;
  // The same for a thread that polls and comes again: where another thread is at work on what several channels share, it receives nothing and does not wait.
  // OnWake() or the watch tells of what came meanwhile.
  virtual Received TryReceive(unsigned most) { return Receive(most); }
  // Some of a ULPDU came, the rest did not.
  virtual bool in_ulpdu() const = 0;
  // The rights of the peer changed: what the sink said of open buffers (UlpduSink::OpenBuffer) does not hold any more.
  virtual void Shut() {}
  // Memory that the sink named may be going away: the rest of a ULPDU that is being placed is thrown away, and the sink gets End() all the
  // same.
  virtual void DivertPlacement() = 0;
  // The peer may wait for a sign that we are there: a message that places nothing is to be sent. True at most once for each time that is due.
  virtual bool ProbeIsDue() { return false; }

  // --- readiness ---

  // `handler` hears of it until the channel ends. 0: nothing is to be watched, and OnWake() says all.
  virtual transport::WatchId Watch(std::shared_ptr<transport::ReadyHandler> handler) = 0;
  // What it waits for may have changed.
  virtual void UpdateInterest() = 0;
  // A thread that spins calls Receive() over and over, and says so at each round: nobody else need look at what comes, as Network::Lend() says.
  // True: the peer polls on the same processor, or may; until one of them yields nothing comes.
  virtual bool Lend() { return false; }
  // The thread that said so will sleep; Receive() follows at once.
  virtual void EndLend() {}
  // Neither is output blocked nor does a watch say that it is not any more: a look that found nothing to receive is over.
  virtual bool quiet() const = 0;
  // Whether a step of a thread that spins would find nothing to do, as far as that is told by a glance; the channel is lent.
  virtual bool idle() const { return false; }

  // --- the end ---

  // We send nothing after what was flushed; the peer may still.
  virtual void EndOutput() = 0;
  // Ends in order: all that was appended goes out, then what `last` appends, then the end, which waits for the peer's without anybody's
  // help. The channel is of no use after it, nor after Abort(), which ends at once and tells the peer so.
  virtual void Close(const std::function<void(UlpduWriter&)>& last) = 0;
  virtual void Abort() = 0;
  // A word that the peer can read when this process has ended, without having had the time to say anything: the stream's count of the peer's
  // requests that were carried out belongs there (rdmap/delivery.h). Null: there is none.
  virtual std::atomic<uint32_t>* CarriedOutHere() { return nullptr; }
  // The peer's, a claim of its as an acknowledgement is. nullopt: there is none.
  virtual std::optional<uint32_t> CarriedOutByPeer() { return std::nullopt; }
  // The process ends: what a kernel sees to when it closes a socket, for a wire that is not in one. The peer is to find the end behind
  // what was sent.
  virtual void OnExit() {}

  // --- what it is ---

  virtual transport::SocketAddress PeerAddress() const = 0;
  // What a reader of a capture is to know of it.
  virtual void Annotate(const std::string& comment) = 0;
  // In words, for a trace.
  virtual std::string Describe() const = 0;
  // What carries it, now: "tcp", "sctp", "host".
  virtual const char* wire() const = 0;
  // The plan of faults (faults/) changed.
  virtual void ApplyFaults() {}
};

}  // namespace weft::llp

#endif  // LLP_CHANNEL_H_
