#ifndef PMI_SERVER_SECRET_CHECK_H_
#define PMI_SERVER_SECRET_CHECK_H_

#include <optional>
#include <string>

#include "pmi/wire/meaning.h"

namespace weft::pmi {

// Whether one who speaks PMI-2 may come in: where there is a secret, after a proof of it (wire/challenge.h).
class SecretCheck {
 public:
  explicit SecretCheck(std::string secret) : secret_(std::move(secret)) {}

  bool needed() const { return !secret_.empty(); }
  // What fullinit is answered with, a refusal or a challenge; nothing: come in.
  std::optional<Answer> Ask(const ask::Introduce& introduce);
  bool awaits_proof() const { return challenge_.has_value(); }
  // Whether it proves what was asked for last. A challenge is for one attempt.
  bool Accept(const ask::Prove& prove);

 private:
  const std::string secret_;  // empty: there is none
  std::optional<std::string> challenge_;
};

}  // namespace weft::pmi

#endif  // PMI_SERVER_SECRET_CHECK_H_
