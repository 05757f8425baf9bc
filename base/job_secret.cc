#include "base/job_secret.h"

#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <sys/random.h>

#include "base/check.h"
#include "base/hex.h"

namespace weft {
namespace {

// Up to 256 bytes are never cut short by a signal (getrandom(2)).
void FillRandom(std::span<uint8_t> bytes) {
  WEFT_CHECK(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
}

}  // namespace

JobSecret JobSecret::Random() {
  JobSecret secret;
  FillRandom(secret.bytes_);
  return secret;
}

std::optional<JobSecret> JobSecret::FromHex(std::string_view digits) {
  JobSecret secret;
  if (!ParseHex(digits, secret.bytes_)) return std::nullopt;
  return secret;
}

std::string JobSecret::ToHex() const { return HexOf(bytes_); }

JobSecret::Proof JobSecret::Prove(std::string_view purpose, std::span<const uint8_t> said) const {
  hmac_sha256_ctx context;
  hmac_sha256_set_key(&context, bytes_.size(), bytes_.data());
  // Its length goes first: no other purpose and words give the same bytes.
  const auto length = static_cast<uint8_t>(purpose.size());
  WEFT_CHECK(length == purpose.size());
  hmac_sha256_update(&context, 1, &length);
  hmac_sha256_update(&context, purpose.size(), reinterpret_cast<const uint8_t*>(purpose.data()));
  hmac_sha256_update(&context, said.size(), said.data());
  Proof proof;
  hmac_sha256_digest(&context, proof.size(), proof.data());
  return proof;
}

bool JobSecret::Verifies(std::span<const uint8_t> proof, std::string_view purpose,
                         std::span<const uint8_t> said) const {
  const Proof right = Prove(purpose, said);
  return proof.size() >= kShortestProof && proof.size() <= right.size() &&
         memeql_sec(proof.data(), right.data(), proof.size());
}

Nonce NewNonce() {
  Nonce nonce;
  FillRandom(nonce);
  return nonce;
}

}  // namespace weft
