#include "pmi/server/secret_check.h"

#include <utility>

#include "pmi/wire/challenge.h"
#include "pmi/wire/message.h"

namespace weft::pmi {
namespace {

constexpr int kInvalidArgument = 3;  // of MPICH's PMI-2

Answer Refusal(std::string why) { return {.code = kInvalidArgument, .why = std::move(why)}; }

}  // namespace

std::optional<Answer> SecretCheck::Ask(const ask::Introduce& introduce) {
  if (!introduce.authentication.empty() && introduce.authentication != kChallengeMethod) {
    return Refusal("authtype " + Printable(introduce.authentication) + " is not known, " + kChallengeMethod + " is");
  }
  if (needed() && introduce.authentication.empty()) return Refusal("authtype=" + std::string(kChallengeMethod) + " is needed here");
  if (!needed() && !introduce.authentication.empty()) return Refusal("there is no secret to prove here");
  if (!needed()) return std::nullopt;
  challenge_ = NewChallenge();
  return Answer{.challenge = challenge_};
}

bool SecretCheck::Accept(const ask::Prove& prove) {
  const auto challenge = std::exchange(challenge_, std::nullopt);
  return challenge && ProvesSecret(prove.proof, secret_, *challenge);
}

}  // namespace weft::pmi
