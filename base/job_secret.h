#ifndef BASE_JOB_SECRET_H_
#define BASE_JOB_SECRET_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weft {

// 16 bytes that only the processes of one job know, and how they prove to one another that they do without showing
// them: HMAC-SHA256 (RFC 2104) by libnettle. Each side sends a nonce of its own; a proof is of what both have said, and
// of the side that says it, so that a proof that was overheard, or is sent back, proves nothing.
class JobSecret {
 public:
  static constexpr size_t kLength = 16;
  using Proof = std::array<uint8_t, 32>;
  static constexpr size_t kShortestProof =
      16;  // bytes that may stand for a proof where room is scarce (RFC 2104 section 5)

  static JobSecret Random();
  // From 32 hexadecimal digits; nullopt: something else.
  static std::optional<JobSecret> FromHex(std::string_view digits);
  std::string ToHex() const;

  // `purpose` names the protocol and the side that proves, "weft-p2p connector": what is proven for one is no proof for
  // another.
  Proof Prove(std::string_view purpose, std::span<const uint8_t> said) const;
  // What to call it, and the job, where anyone may listen: it tells nothing of the secret, and no other secret has it.
  using PublicId = std::array<uint8_t, 16>;
  PublicId Id() const;
  // Another secret, the same for all who know this one and derive it from the same words. It tells nothing of this one.
  JobSecret Derive(std::string_view purpose, std::span<const uint8_t> said) const;

  // `other`, for those who know this secret, to be sent where anyone may listen: a nonce, the bytes hidden by a proof of
  // it, and a proof of both.
  static constexpr size_t kSealedLength = 48;
  using Sealed = std::array<uint8_t, kSealedLength>;
  Sealed Seal(const JobSecret& other) const;
  // nullopt: nobody who knows this secret sealed that.
  std::optional<JobSecret> Unseal(std::span<const uint8_t, kSealedLength> sealed) const;

  // Whether `proof` is the one of such a party, or the first bytes of it, at least kShortestProof. In constant time.
  bool Verifies(std::span<const uint8_t> proof, std::string_view purpose, std::span<const uint8_t> said) const;

  bool operator==(const JobSecret&) const = default;

 private:
  JobSecret() = default;  // a secret of zeros is none

  std::array<uint8_t, kLength> bytes_{};
};

// Bytes that were never used before and that nobody can guess.
using Nonce = std::array<uint8_t, 16>;
Nonce NewNonce();

}  // namespace weft

#endif  // BASE_JOB_SECRET_H_
