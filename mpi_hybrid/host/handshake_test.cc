#include "mpi_hybrid/host/handshake.h"

#include <gtest/gtest.h>

namespace weft::mpi::host {
namespace {

class HandshakeTest : public ::testing::Test {
 protected:
  HandshakeTest() { GuestHello{.rank = 3, .pid = 77, .pid_namespace = 12345}.Write(secret, challenge, bytes); }

  const JobSecret secret = JobSecret::Random();
  const Nonce challenge = NewNonce();
  uint8_t bytes[GuestHello::kLength];
};

TEST_F(HandshakeTest, SaysWhoItIs) {
  const auto hello = GuestHello::Read(secret, challenge, bytes);
  ASSERT_TRUE(hello.has_value());
  EXPECT_EQ(hello->rank, 3);
  EXPECT_EQ(hello->pid, 77);
  EXPECT_EQ(hello->pid_namespace, 12345u);
}

TEST_F(HandshakeTest, ProvesNothingToAnotherChallengeOrSecretOrAfterAnyChange) {
  EXPECT_FALSE(GuestHello::Read(secret, NewNonce(), bytes));
  EXPECT_FALSE(GuestHello::Read(JobSecret::Random(), challenge, bytes));
  EXPECT_FALSE(GuestHello::Read(secret, challenge, std::span(bytes).first(GuestHello::kLength - 1)));
  for (uint8_t& byte : bytes) {
    byte ^= 1;
    EXPECT_FALSE(GuestHello::Read(secret, challenge, bytes));
    byte ^= 1;
  }
}

TEST_F(HandshakeTest, TheAnswerIsForThatGuestAlone) {
  const JobSecret::Proof proof = HostProof(secret, challenge, bytes);
  EXPECT_TRUE(IsHostProof(secret, challenge, bytes, proof));
  EXPECT_FALSE(IsHostProof(secret, challenge, bytes, std::span(proof).first(16)));
  EXPECT_FALSE(IsHostProof(secret, NewNonce(), bytes, proof));
  EXPECT_FALSE(IsHostProof(JobSecret::Random(), challenge, bytes, proof));
  bytes[17] ^= 1;
  EXPECT_FALSE(IsHostProof(secret, challenge, bytes, proof));
}

}  // namespace
}  // namespace weft::mpi::host
