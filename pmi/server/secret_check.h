#ifndef PMI_SERVER_SECRET_CHECK_H_
#define PMI_SERVER_SECRET_CHECK_H_

#include <optional>
#include <string>

#include "pmi/wire/meaning.h"

namespace weft::pmi {

// Decides whether a PMI-2 rank is admitted: if there is a secret, only after a proof of it (wire/challenge.h).
class SecretCheck {
 public:
  explicit SecretCheck(std::string secret) : secret_(std::move(secret)) {}

  bool needed() const { return !secret_.empty(); }
  // The answer to fullinit: a refusal or a challenge. nullopt: the rank is admitted.
  std::optional<Answer> Ask(const ask::Introduce& introduce);
  bool awaits_proof() const { return challenge_.has_value(); }
  // Whether the proof matches the last challenge. A challenge is valid for one attempt.
  bool Accept(const ask::Prove& prove);

 private:
  const std::string secret_;  // empty: there is none
  std::optional<std::string> challenge_;
};

}  // namespace weft::pmi

#endif  // PMI_SERVER_SECRET_CHECK_H_
