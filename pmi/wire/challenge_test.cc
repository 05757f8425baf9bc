#include "pmi/wire/challenge.h"

#include <gtest/gtest.h>

namespace weft::pmi {
namespace {

TEST(PmiChallenge, ProofIsTheHashOfSecretAndNumber) {
  // printf secret42 | sha256sum
  EXPECT_EQ(ProofFor("secret", "42"), "5c788b952157fdaf39f511ef1bf19c7af3b078293052c0d5ab4b2d3af737b740");
}

TEST(PmiChallenge, OnlyTheSecretAnswersIt) {
  const std::string challenge = NewChallenge();
  EXPECT_TRUE(ProvesSecret(ProofFor("secret", challenge), "secret", challenge));
  EXPECT_FALSE(ProvesSecret(ProofFor("other", challenge), "secret", challenge));
  EXPECT_FALSE(ProvesSecret("", "secret", challenge));
  EXPECT_FALSE(ProvesSecret(ProofFor("secret", challenge) + "0", "secret", challenge));
  EXPECT_NE(NewChallenge(), challenge);
  EXPECT_EQ(challenge.find_first_not_of("0123456789"), std::string::npos);
}

}  // namespace
}  // namespace weft::pmi
