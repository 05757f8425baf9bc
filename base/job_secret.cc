#include "base/job_secret.h"

#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <sys/random.h>

#include <algorithm>

#include "base/check.h"
#include "base/hex.h"

namespace weft {
namespace {

constexpr std::string_view kMask = "weft-seal mask", kSeal = "weft-seal", kId = "weft bond";

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

JobSecret::PublicId JobSecret::Id() const {
  const Proof proof = Prove(kId, {});
  PublicId id;
  std::copy_n(proof.begin(), id.size(), id.begin());
  return id;
}

JobSecret JobSecret::Derive(std::string_view purpose, std::span<const uint8_t> said) const {
  const Proof proof = Prove(purpose, said);
  JobSecret derived;
  std::copy_n(proof.begin(), kLength, derived.bytes_.begin());
  return derived;
}

JobSecret::Sealed JobSecret::Seal(const JobSecret& other) const {
  Sealed sealed;
  const Nonce nonce = NewNonce();
  const Proof mask = Prove(kMask, nonce);
  std::copy(nonce.begin(), nonce.end(), sealed.begin());
  for (size_t i = 0; i < kLength; ++i) sealed[kLength + i] = other.bytes_[i] ^ mask[i];
  const Proof proof = Prove(kSeal, std::span(sealed).first<2 * kLength>());
  std::copy_n(proof.begin(), kLength, sealed.begin() + 2 * kLength);
  return sealed;
}

std::optional<JobSecret> JobSecret::Unseal(std::span<const uint8_t, kSealedLength> sealed) const {
  if (!Verifies(sealed.last<kLength>(), kSeal, sealed.first<2 * kLength>())) return std::nullopt;
  const Proof mask = Prove(kMask, sealed.first<kLength>());
  JobSecret other;
  for (size_t i = 0; i < kLength; ++i) other.bytes_[i] = sealed[kLength + i] ^ mask[i];
  return other;
}

Nonce NewNonce() {
  Nonce nonce;
  FillRandom(nonce);
  return nonce;
}

}  // namespace weft
