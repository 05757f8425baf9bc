#ifndef IMPI_MESSAGE_ENDPOINT_H_
#define IMPI_MESSAGE_ENDPOINT_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "impi/message/handles.h"
#include "impi/message/pair.h"
#include "impi/message/types.h"

namespace weft::impi {

// What is wrong with a packet.
struct PacketError {
  ProcessName process;  // that it says to be from
  std::string field;    // "pk_drqid"
  std::string text;     // "192.0.2.7/4711 sent DATA: pk_drqid is 5, which ..."
};

// The message protocol of one process of MPI towards the processes of other clients (IMPI 0.0, chapter 3): which packets a message becomes, what a packet
// means, flow control, cancelling. No I/O, no clock, no data: it gives and takes headers, and says which bytes of which message follow them. Its owner
// moves the bytes and matches messages with receives (matching.h, or an engine of its own).
//
// Who owns what:
//   - the bytes of a message to send (in external32) are the owner's. They stay unchanged from Send until the packet with Outgoing::last is written, or the
//     message is cancelled. A synchronous message is complete when kSynchronized came, too. The number is valid until Release, and longer where the peer
//     still has to answer.
//   - the bytes that arrive are the owner's to read, at the place that Event names, before it reads the next header of that channel. It shows a message to
//     receives and probes when its first packet is whole (3.7.3), in the order of kMessage. The number of a message is valid until Matched::whole, the last
//     kPart, kWithdrawn, Finish or Lose. What is stored for a peer is bounded: flow.h. Probes send nothing.
//
// An error of OnPacket changes nothing; the owner ends the channel and calls Lose.
class Endpoint {
 public:
  // `limits`: data_length at least 1.
  Endpoint(const ProcessName& self, const PacketLimits& limits);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // A process that was not added yet.
  PeerId AddPeer(const ProcessName& process, Peer kind, const FlowLimits& limits);
  std::optional<PeerId> FindPeer(const ProcessName& process) const;
  const ProcessName& NameOf(PeerId peer) const { return pairs_[peer.value].peer(); }
  size_t peers() const { return pairs_.size(); }

  // --- out ---
  // The tag is within the limits. Ready and buffered messages are like others.
  SendId Send(PeerId peer, const Envelope& envelope, bool synchronous);
  CancelOutcome Cancel(SendId send);
  // The program has no request for the message any more. It may be called at any time; the message is sent all the same. At most once.
  void Release(SendId send);
  bool HasOutput(PeerId peer) const { return pairs_[peer.value].has_output(); }
  // Packets leave in this order. Empty: there is none now.
  std::optional<Outgoing> Next(PeerId peer) { return pairs_[peer.value].Next(); }

  // --- in ---
  Result<Event, PacketError> OnHeader(std::span<const uint8_t, Packet::kSize> header);
  Result<Event, PacketError> OnPacket(const Packet& packet);
  const Inbound& MessageOf(MessageId message) { return messages_.Get(message.value); }
  // A receive with room for `room` bytes has matched a message that none has matched before.
  Matched Match(MessageId message, uint64_t room);
  // A matched probe (MPI_Mprobe) has taken the message. Match follows when it is received; until then it is stored, and it cannot be withdrawn.
  void Claim(MessageId message);
  // The message that a packet with this header would withdraw, if it is a CANCEL. For an owner whose matching may have claimed it meanwhile.
  std::optional<MessageId> WithdrawnBy(std::span<const uint8_t, Packet::kSize> header) const;

  // --- the end ---
  // This process receives nothing more; all others of the job are in MPI_Finalize, too. Messages that no receive has matched are destroyed, those that come
  // are dropped and acknowledged (3.8). The owner drops what it stored.
  void Finish();
  // Messages to the peer that wait for SYNCACK or for an answer to CANCEL. A correct program leaves none, but may have given up their requests, so that
  // MPI_Finalize waits for them.
  size_t Unanswered(PeerId peer);
  // This process has nothing to send to the peer now, but perhaps PROTOACK. With Unanswered() == 0, FINI may be sent as far as this process is concerned.
  bool IsQuiet(PeerId peer) const { return pairs_[peer.value].is_quiet(); }
  // FINI was sent on the peer's channel, or came from there. From then on there is nothing but acknowledgments in that direction.
  void OnFiniSent(PeerId peer);  // after Finish, if quiet
  void OnFini(PeerId peer) { pairs_[peer.value].OnFini(); }
  // The peer is gone: the numbers of these are void. Sends that are done and only wait for Release are among them.
  struct Lost {
    std::vector<SendId> sends;  // that the owner has not released
    std::vector<MessageId> messages;
  };
  Lost Lose(PeerId peer);

  const FlowIn& flow_in(PeerId peer) const { return pairs_[peer.value].flow_in(); }
  const FlowOut& flow_out(PeerId peer) const { return pairs_[peer.value].flow_out(); }
  size_t sends() const { return sends_.size(); }
  size_t messages() const { return messages_.size(); }

 private:
  const ProcessName self_;
  const PacketLimits limits_;
  Handles<Outbound> sends_;
  Handles<Inbound> messages_;
  std::deque<Pair> pairs_;  // by PeerId
  std::map<ProcessName, PeerId> peers_;
  bool finished_ = false;
};

}  // namespace weft::impi

#endif  // IMPI_MESSAGE_ENDPOINT_H_
