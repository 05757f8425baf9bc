#ifndef IMPI_AGENT_INLET_H_
#define IMPI_AGENT_INLET_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/byte_reader.h"
#include "base/result.h"
#include "impi/agent/packet_store.h"
#include "impi/message/departures.h"
#include "impi/wire/packet.h"

namespace weft::impi {

// A packet on its way through an agent: room for the header, which is written when it leaves, and the user's data behind it.
struct CarriedPacket {
  Packet packet;
  PacketStore::Buffer bytes;  // size() of them

  explicit CarriedPacket(const Packet& header, PacketStore* store = nullptr)
      : packet(header),
        bytes(store == nullptr ? PacketStore::FromHeap(Packet::kSize + header.data_length) : store->Take(Packet::kSize + header.data_length)) {}
  size_t size() const { return Packet::kSize + packet.data_length; }
  std::span<uint8_t> data() { return {bytes.get() + Packet::kSize, packet.data_length}; }
  // `number`: of the packet, for LAM.
  void WriteHeader(Peer peer = Peer::kStandard, uint64_t number = 0) { SerializeFor(peer, packet, number, std::span<uint8_t, Packet::kSize>(bytes.get(), Packet::kSize)); }
};

// Takes packets from a stream that may be cut anywhere. It keeps one packet that has not come whole: at most a header and IMPI_C_DATALEN bytes.
class Inlet {
 public:
  // `store`: for the packets, which it outlives; null: the heap.
  explicit Inlet(const PacketLimits& limits, PacketStore* store = nullptr) : limits_(limits), store_(store) {}

  // Takes from the front of `bytes`, and moves it behind what was taken. A packet if one is complete; then more of them may be in `bytes`. Nothing: all was
  // taken. Why not: the field, its value and the limit; then nothing that follows can be understood.
  Result<std::optional<CarriedPacket>, std::string> Take(ByteSpan& bytes);

 private:
  const PacketLimits limits_;
  PacketStore* store_;
  std::array<uint8_t, Packet::kSize> header_{};
  size_t came_ = 0;  // bytes, of the header and the data
  std::optional<CarriedPacket> packet_;
};

}  // namespace weft::impi

#endif  // IMPI_AGENT_INLET_H_
