#include "base/job_secret.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weft {
namespace {

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

constexpr char kDigits[] = "00112233445566778899aabbccddeeff";

TEST(JobSecretTest, ProofIsTheHmacThatOtherLibrariesCompute) {
  // Python: hmac.new(key, bytes([19]) + b"weft-test connector" + b"what was said", hashlib.sha256)
  const std::string expected = "2f6da439732a60b981550df1aa8904adbc0878d13dd573df7326c8fb453cb6f1";
  const JobSecret::Proof proof = JobSecret::FromHex(kDigits)->Prove("weft-test connector", Bytes("what was said"));
  std::string digits;
  for (const uint8_t byte : proof) {
    char two[3];
    std::snprintf(two, sizeof(two), "%02x", byte);
    digits += two;
  }
  EXPECT_EQ(digits, expected);
}

TEST(JobSecretTest, HexadecimalDigitsGoBothWays) {
  EXPECT_EQ(JobSecret::FromHex(kDigits)->ToHex(), kDigits);
  EXPECT_EQ(JobSecret::FromHex("00112233445566778899AABBCCDDEEFF")->ToHex(), kDigits);
  EXPECT_NE(JobSecret::Random().ToHex(), JobSecret::Random().ToHex());
  for (const char* wrong : {"", "00", "00112233445566778899aabbccddeef", "00112233445566778899aabbccddeefff",
                            "0011223344556677 899aabbccddeef"}) {
    EXPECT_FALSE(JobSecret::FromHex(wrong)) << wrong;
  }
}

TEST(JobSecretTest, ProofHoldsForItsSecretItsPurposeAndItsWordsOnly) {
  const auto secret = *JobSecret::FromHex(kDigits);
  const auto other = *JobSecret::FromHex("00112233445566778899aabbccddeefe");
  const JobSecret::Proof proof = secret.Prove("connector", Bytes("said"));
  EXPECT_TRUE(secret.Verifies(proof, "connector", Bytes("said")));
  EXPECT_FALSE(other.Verifies(proof, "connector", Bytes("said")));
  EXPECT_FALSE(secret.Verifies(proof, "listener", Bytes("said")));
  EXPECT_FALSE(secret.Verifies(proof, "connector", Bytes("sai")));
  EXPECT_FALSE(secret.Verifies(proof, "connectors", Bytes("aid")));  // the same bytes in a row
  for (size_t i = 0; i < proof.size(); ++i) {
    JobSecret::Proof damaged = proof;
    damaged[i] ^= 1;
    EXPECT_FALSE(secret.Verifies(damaged, "connector", Bytes("said"))) << i;
  }
}

TEST(JobSecretTest, CutProofHoldsDownToSixteenBytes) {
  const auto secret = *JobSecret::FromHex(kDigits);
  const JobSecret::Proof proof = secret.Prove("connector", Bytes("said"));
  for (size_t length = 0; length <= proof.size(); ++length) {
    EXPECT_EQ(secret.Verifies(std::span(proof).first(length), "connector", Bytes("said")),
              length >= JobSecret::kShortestProof)
        << length;
  }
  std::vector<uint8_t> longer(proof.begin(), proof.end());
  longer.push_back(0);
  EXPECT_FALSE(secret.Verifies(longer, "connector", Bytes("said")));
}

TEST(JobSecretTest, WhatIsDerivedIsTheSameForAllWhoKnowTheSecretAndForNoOneElse) {
  const auto secret = *JobSecret::FromHex(kDigits);
  EXPECT_EQ(secret.Derive("group", Bytes("said")), JobSecret::FromHex(kDigits)->Derive("group", Bytes("said")));
  EXPECT_NE(secret.Derive("group", Bytes("said")), secret.Derive("group", Bytes("sand")));
  EXPECT_NE(secret.Derive("group", Bytes("said")), secret.Derive("other", Bytes("said")));
  EXPECT_NE(secret.Derive("group", Bytes("said")), JobSecret::Random().Derive("group", Bytes("said")));
}

TEST(JobSecretTest, WhatIsSealedIsReadByWhoKnowsTheSecretUndamaged) {
  const auto secret = *JobSecret::FromHex(kDigits), other = JobSecret::Random();
  JobSecret::Sealed sealed = secret.Seal(other);
  EXPECT_EQ(secret.Unseal(sealed), other);
  EXPECT_NE(secret.Seal(other), sealed) << "the same bytes would tell that the same was sealed";
  EXPECT_FALSE(other.Unseal(sealed));
  for (size_t i = 0; i < sealed.size(); ++i) {
    sealed[i] ^= 1;
    EXPECT_FALSE(secret.Unseal(sealed)) << i;
    sealed[i] ^= 1;
  }
}

TEST(JobSecretTest, NoncesDiffer) { EXPECT_NE(NewNonce(), NewNonce()); }

}  // namespace
}  // namespace weft
