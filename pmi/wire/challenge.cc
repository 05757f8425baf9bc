#include "pmi/wire/challenge.h"

#include <nettle/memops.h>
#include <nettle/sha2.h>

#include <cstdint>
#include <cstring>

#include "base/hex.h"
#include "base/job_secret.h"

namespace weft::pmi {

std::string NewChallenge() {
  const Nonce nonce = NewNonce();
  uint64_t number = 0;
  std::memcpy(&number, nonce.data(), sizeof(number));
  return std::to_string(number);
}

std::string ProofFor(const std::string& secret, const std::string& challenge) {
  const std::string said = secret + challenge;
  sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, said.size(), reinterpret_cast<const uint8_t*>(said.data()));
  uint8_t digest[SHA256_DIGEST_SIZE];
  sha256_digest(&context, sizeof(digest), digest);
  return HexOf(digest);
}

bool ProvesSecret(const std::string& proof, const std::string& secret, const std::string& challenge) {
  const std::string expected = ProofFor(secret, challenge);
  return proof.size() == expected.size() && nettle_memeql_sec(proof.data(), expected.data(), expected.size()) != 0;
}

}  // namespace weft::pmi
