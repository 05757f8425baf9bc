#include "transport/sctp/environment.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::transport::sctp {
namespace {

using std::chrono_literals::operator""ms;

SocketAddress At(const char* host, uint16_t port = 0) { return *SocketAddress::Parse(host, port); }

TEST(SctpEnvironmentTest, WhatTheUserDidNotSayIsLeft) {
  const Settings before{.adaptation = 1, .multipath = Multipath::kConcurrent};
  const Settings after = WithUserSettings(before, {});
  EXPECT_EQ(after.adaptation, 1u);
  EXPECT_EQ(after.multipath, Multipath::kConcurrent);
  EXPECT_EQ(after.heartbeat_interval, before.heartbeat_interval);
  EXPECT_EQ(after.rto_initial, before.rto_initial);
  EXPECT_EQ(after.rto_min, before.rto_min);
  EXPECT_EQ(after.rto_max, before.rto_max);
  EXPECT_EQ(after.streams_out, before.streams_out);
  EXPECT_EQ(after.send_buffer, before.send_buffer);
}

TEST(SctpEnvironmentTest, WhatTheUserSaidHolds) {
  const Settings after = WithUserSettings({}, {.cmt = SctpSettings::Cmt::kPotentiallyFailed, .heartbeat = 0, .rto_initial = 200,
                                               .rto_min = 20, .rto_max = 900, .path_retries = 1, .association_retries = 4, .streams = 8,
                                               .send_buffer = 1 << 22, .receive_buffer = 1 << 23, .pmtu = 1400});
  EXPECT_EQ(after.multipath, Multipath::kConcurrentPotentiallyFailed);
  EXPECT_EQ(after.heartbeat_interval, 0ms);
  EXPECT_EQ(after.rto_initial, 200ms);
  EXPECT_EQ(after.rto_min, 20ms);
  EXPECT_EQ(after.rto_max, 900ms);
  EXPECT_EQ(after.path_max_retransmissions, 1);
  EXPECT_EQ(after.association_max_retransmissions, 4);
  EXPECT_EQ(after.streams_in, 8);
  EXPECT_EQ(after.streams_out, 8);
  EXPECT_EQ(after.send_buffer, 1u << 22);
  EXPECT_EQ(after.receive_buffer, 1u << 23);
  EXPECT_EQ(after.path_mtu, 1400u);
}

TEST(SctpEnvironmentTest, TimeOutsFitTogetherWhateverTheUserLeftOut) {
  for (const uint32_t said : {10u, 100u, 1000u, 60000u}) {
    for (int which = 0; which < 3; ++which) {
      SctpSettings user;
      (which == 0 ? user.rto_min : which == 1 ? user.rto_initial : user.rto_max) = said;
      const Settings after = WithUserSettings({}, user);
      EXPECT_LE(after.rto_min, after.rto_initial);
      EXPECT_LE(after.rto_initial, after.rto_max);
    }
  }
  EXPECT_EQ(WithUserSettings({}, {.rto_initial = 5000}).rto_initial, 5000ms);
  EXPECT_EQ(WithUserSettings({}, {.rto_min = 5000}).rto_min, 5000ms);
}

TEST(SctpEnvironmentTest, AddressThatIsAskedForComesFirst) {
  const SctpSettings user{.addresses = {"10.0.0.1", "10.0.1.1", "fd00::1"}};
  EXPECT_EQ(UserAddresses(user, At("0.0.0.0", 5)), (std::vector{At("10.0.0.1"), At("10.0.1.1")}));
  EXPECT_EQ(UserAddresses(user, At("::", 5)), (std::vector{At("10.0.0.1"), At("10.0.1.1"), At("fd00::1")}));
  EXPECT_EQ(UserAddresses(user, At("10.0.1.1", 5)), (std::vector{At("10.0.1.1"), At("10.0.0.1"), At("fd00::1")}));
  EXPECT_EQ(UserAddresses(user, At("127.0.0.1", 5)), (std::vector{At("127.0.0.1")}));
  EXPECT_TRUE(UserAddresses({}, At("0.0.0.0", 5)).empty());
  EXPECT_EQ(UserAddresses({}, At("10.0.1.1", 5)), (std::vector{At("10.0.1.1")}));
}

}  // namespace
}  // namespace weft::transport::sctp
