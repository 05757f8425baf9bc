#include "base/job_secret.h"

#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <sys/random.h>

#include "base/check.h"

namespace weft {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

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
  if (digits.size() != 2 * kLength) return std::nullopt;
  JobSecret secret;
  for (size_t i = 0; i < kLength; ++i) {
    const int high = HexDigit(digits[2 * i]), low = HexDigit(digits[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    secret.bytes_[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return secret;
}

std::string JobSecret::ToHex() const {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string digits;
  for (const uint8_t byte : bytes_) {
    digits += kDigits[byte >> 4];
    digits += kDigits[byte & 15];
  }
  return digits;
}

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
