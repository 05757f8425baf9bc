#ifndef MPI_HYBRID_P2P_IMPI_IMPI_LINK_H_
#define MPI_HYBRID_P2P_IMPI_IMPI_LINK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "impi/message/endpoint.h"
#include "mpi_hybrid/core/process_table.h"
#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/engine/id_table.h"
#include "mpi_hybrid/p2p/engine/link.h"

namespace weft::mpi {

// Communicators as IMPI numbers them (IMPI 0.0, chapter 4). The engine's contexts have 32 bits and are different in each process.
class ImpiContexts {
 public:
  virtual ~ImpiContexts() = default;
  // Of one that spans clients, else nullopt: of partitioned communication, for instance, which IMPI does not carry.
  virtual std::optional<uint64_t> OnWire(uint32_t context) const = 0;
  // The context in which this process receives; nullopt: it has no such communicator yet.
  virtual std::optional<uint32_t> Here(uint64_t context) const = 0;
  // Whether `process` has that rank in the communicator, which a peer only claims.
  virtual bool HasRank(uint32_t context, int32_t rank, ProcessId process) const = 0;
};

// A link of the engine to a process of another client of an IMPI job: frames of the engine become messages of IMPI's protocol, and these
// frames. No I/O. What the one protocol says in the other:
//
//   kEager                       a message, of which a copy is kept until its last packet is taken; it may be longer than a packet
//   kEager, kFlagSynchronous     the same, synchronous; kMatched is its SYNCACK
//   kRequest                     a synchronous message whose data stay where the program has them (Link::Offer); it is over with its
//                                last packet and its SYNCACK, which the engine hears as kClear of 0 bytes
//   kCancel, kCancelled          CANCEL, CANCELYES and CANCELNO
//   kRevoked                     a match that has room for no byte
//   kGoodbye                     leaving(), and OnFini
//
// From the peer, the first packet of a message comes as kEager if it holds the whole message, else as kRequest, and is stored. Either way the
// engine answers when a receive matches (kMatched, kClear): then Endpoint::Match, and the rest comes as kData. Credit of the engine is
// returned when packets leave, so that flow control is that of the protocol.
//
// Lost on the way: kExcuse and notes, since in an IMPI job no process survives the death of another.
class ImpiLink {
 public:
  // All must outlive it. Data that the engine sends on `link` is contiguous, as external32 is.
  ImpiLink(Link& link, impi::Endpoint& endpoint, impi::PeerId peer, const ImpiContexts& contexts);
  ImpiLink(const ImpiLink&) = delete;
  ImpiLink& operator=(const ImpiLink&) = delete;

  // --- out ---
  // Takes what the engine has for the peer. To be called when the engine has done something.
  void Collect();
  bool has_output() const { return endpoint_.HasOutput(peer_); }
  struct Packet {
    impi::Outgoing packet;
    std::span<const uint8_t> data;  // behind the header, until Sent
  };
  // The next packet; Sent must follow when all of it is written or copied, before the next call.
  std::optional<Packet> Next();
  void Sent(const impi::Outgoing& packet);

  // --- in ---
  // A whole packet of the peer. Returns what is wrong with it; then the connection is to be ended.
  std::optional<impi::PacketError> OnPacket(std::span<const uint8_t, impi::Packet::kSize> header, std::span<const uint8_t> data);
  // This process has a new communicator: messages may have waited for it.
  void OnNewContext();

  // --- the end ---
  // The engine has said goodbye, and all that it has sent before is out.
  bool leaving() const { return goodbye_ && endpoint_.IsQuiet(peer_); }
  // The peer's client has sent FINI: no message follows.
  void OnFini();

 private:
  struct Sending {
    uint32_t engine_id = 0;  // 0: the engine does not ask for it
    std::vector<uint8_t> copy;
    std::span<const uint8_t> bytes;
    int64_t credit = 0;  // of an eager message
    bool announced = false, synchronous = false;
    bool out = false, matched = false;
  };
  struct Arriving {
    uint32_t id = 0;  // for the engine
    impi::MessageId message;
    bool announced = false;
    std::vector<uint8_t> stored;  // the first packet, until the engine asks for it
    uint32_t receive_id = 0;      // of the engine
    uint64_t missing = 0;         // bytes that the engine waits for
    bool delivered = false;       // the engine knows of it
  };

  void OnFrame(const FrameHeader& header, std::vector<uint8_t> body, std::span<const uint8_t> offer);
  void Start(const FrameHeader& header, std::vector<uint8_t> body, std::span<const uint8_t> offer);
  void OnClear(const FrameHeader& header);
  void OnMatched(uint32_t id);
  void OnRevoked(uint32_t id);
  void OnCancel(uint32_t engine_id);
  // Tells the engine as soon as a message needs nothing more.
  void EndIfOver(impi::SendId id);

  std::optional<impi::PacketError> OnMessage(const impi::Event& event, std::span<const uint8_t> data);
  void Deliver(Arriving& arriving, uint32_t context);
  void OnPart(const impi::Event& event, std::span<const uint8_t> data);
  // Whether no receive and no matched probe of the engine has the message, which the engine then forgets.
  bool Withdraw(impi::MessageId message);
  void OnWithdrawn(impi::MessageId message);
  void Give(Arriving& arriving, std::span<const uint8_t> data);
  void Forget(impi::MessageId message);
  // Hands the engine a frame as if it had come on a wire.
  void Feed(const FrameHeader& header, std::span<const uint8_t> body = {});

  Link& link_;
  impi::Endpoint& endpoint_;
  const impi::PeerId peer_;
  const ImpiContexts& contexts_;
  std::map<impi::SendId, Sending> sends_;
  std::map<uint32_t, impi::SendId> by_engine_id_;
  std::map<impi::MessageId, std::unique_ptr<Arriving>> arriving_;
  IdTable<Arriving> ids_;
  std::deque<impi::MessageId> waiting_;  // for a communicator, in the order of arrival
  bool goodbye_ = false;
  bool refused_ = false;  // the engine's last answer to kCancel
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_IMPI_IMPI_LINK_H_
