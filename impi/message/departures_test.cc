#include "impi/message/departures.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include "base/hex.h"

namespace weft::impi {
namespace {

std::string Written(Peer peer, const Packet& packet, uint64_t number) {
  std::array<uint8_t, Packet::kSize> header;
  SerializeFor(peer, packet, number, header);
  return HexOf(header);
}

// Byte by byte as a capture of two LAM/MPI clients has it.
TEST(ImpiDepartures, FiniForLamIsLams) {
  EXPECT_EQ(Written(Peer::kLam, FiniFor(Peer::kLam), 28),
            "00000007"
            "00000080"
            "00000000000000000000000000000000ffffffffffffffff"
            "00000000000000000000000000000000ffffffffffffffff"
            "0000000000000000"
            "0000000000000000"
            "0000000000000080"
            "ffffffff"
            "ffffffff"
            "0000000000000000"
            "000000000000001c"
            "ffffffffffffffff"
            "0000000000000000"
            "0000000000000000");
}

TEST(ImpiDepartures, FiniOfTheSpecificationHasOnlyAType) {
  EXPECT_EQ(Written(Peer::kStandard, FiniFor(Peer::kStandard), 28), "00000007" + std::string(248, '0'));
}

TEST(ImpiDepartures, DataDiffersInTheSequenceNumberOnly) {
  const Packet packet{.type = PacketType::kData, .data_length = 5, .message_length = 5, .source_rank = 1, .tag = 2, .sequence = 3, .count = 4};
  Packet numbered = packet;
  numbered.sequence = 9;
  EXPECT_EQ(Written(Peer::kStandard, packet, 9), Written(Peer::kStandard, packet, 3));
  EXPECT_EQ(Written(Peer::kLam, packet, 9), Written(Peer::kStandard, numbered, 0));
}

TEST(ImpiDepartures, BothFormsOfAPacketWithoutDataAreReadTheSame) {
  const Packet packet{.type = PacketType::kSyncAck, .source = {HostIdOfIpv4(inet_addr("192.0.2.1")), 5}, .source_request = 6, .destination_request = 7};
  std::array<uint8_t, Packet::kSize> header;
  for (const Peer peer : {Peer::kStandard, Peer::kLam}) {
    SerializeFor(peer, packet, 9, header);
    EXPECT_EQ(Packet::Parse(header, {.data_length = 10, .tag = 10}).value(), packet);
  }
}

}  // namespace
}  // namespace weft::impi
