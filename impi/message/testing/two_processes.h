#ifndef IMPI_MESSAGE_TESTING_TWO_PROCESSES_H_
#define IMPI_MESSAGE_TESTING_TWO_PROCESSES_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "impi/message/testing/process.h"

namespace weft::impi {

inline constexpr uint32_t kDataLength = 100;  // bytes
inline constexpr PacketLimits kLimits{.data_length = kDataLength, .tag = 32767};
inline constexpr size_t kMuch = 1 << 20;  // bytes, of a receive

inline const ProcessName kHereName{HostIdOfIpv4(inet_addr("192.0.2.1")), 11}, kThereName{HostIdOfIpv4(inet_addr("192.0.2.2")), 22};

inline Bytes Pattern(size_t length, uint8_t seed = 1) {
  Bytes bytes(length);
  for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<uint8_t>(seed + i * 7);
  return bytes;
}

inline Packet HeaderOf(const Bytes& frame) { return Packet::Parse(std::span<const uint8_t, Packet::kSize>(frame.data(), Packet::kSize), kLimits).value(); }

// Two processes of different clients, here and there; each is the other's only peer.
class TwoProcesses : public testing::Test {
 protected:
  void Begin(const FlowLimits& flow = {.ack_mark = 10, .high_water = 20}) {
    here.emplace(kHereName, kLimits);
    there.emplace(kThereName, kLimits);
    to_there = here->endpoint.AddPeer(kThereName, Peer::kStandard, flow);
    to_here = there->endpoint.AddPeer(kHereName, Peer::kStandard, flow);
  }
  void SetUp() override { Begin(); }
  SendId Send(size_t length, bool synchronous = false, int32_t tag = 7) {
    return here->Send(to_there, {.context = 4, .rank = 1, .tag = tag}, Pattern(length), synchronous);
  }
  ReceiveId Post(int32_t tag = 7, size_t room = kMuch) { return there->Post({.context = 4, .source = to_here, .tag = tag}, room); }
  // Carries what `from` has for `to`, and returns the types: "DATA DATA".
  static std::string Carry(TestProcess& from, PeerId peer, TestProcess& to, size_t most = 1000) {
    std::string types;
    for (; most != 0; --most) {
      const Bytes frame = from.Take(peer);
      if (frame.empty()) break;
      types += (types.empty() ? "" : " ") + std::string(NameOf(HeaderOf(frame).type));
      EXPECT_EQ(to.On(frame), "");
    }
    return types;
  }
  std::string There(size_t most = 1000) { return Carry(*here, to_there, *there, most); }
  std::string Back(size_t most = 1000) { return Carry(*there, to_here, *here, most); }
  // A packet of there, arriving here.
  std::string WhyNot(const Packet& packet) {
    Bytes frame(Packet::kSize + packet.data_length);
    packet.Serialize(std::span<uint8_t, Packet::kSize>(frame.data(), Packet::kSize));
    return here->On(frame);
  }
  static Packet FromThere(PacketType type) { return {.type = type, .source = kThereName, .destination = kHereName}; }

  std::optional<TestProcess> here, there;
  PeerId to_there, to_here;
};

}  // namespace weft::impi

#endif  // IMPI_MESSAGE_TESTING_TWO_PROCESSES_H_
