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

// A secret of 16 bytes that only the processes of one job know. They prove to one another that they know it without
// showing it, by HMAC-SHA256 (RFC 2104) from libnettle. Each side sends a nonce. A proof covers everything that both
// sides have sent, and which side proves. So a proof that is overheard or sent back proves nothing.
class JobSecret {
 public:
  static constexpr size_t kLength = 16;
  using Proof = std::array<uint8_t, 32>;
  static constexpr size_t kShortestProof = 16;  // bytes of a truncated proof, where room is scarce (RFC 2104 section 5)

  static JobSecret Random();
  // From 32 hexadecimal digits; nullopt if `digits` has another form.
  static std::optional<JobSecret> FromHex(std::string_view digits);
  std::string ToHex() const;

  // `purpose` names the protocol and the side that proves, for example "weft-p2p connector". A proof for one purpose is
  // not valid for another.
  Proof Prove(std::string_view purpose, std::span<const uint8_t> said) const;
  // A public name of the secret and of the job. It reveals nothing about the secret, and no other secret has the same
  // one.
  using PublicId = std::array<uint8_t, 16>;
  PublicId Id() const;
  // Derives another secret. All processes that know this secret and use the same words derive the same one. It reveals
  // nothing about this secret.
  JobSecret Derive(std::string_view purpose, std::span<const uint8_t> said) const;

  // Encrypts `other` for processes that know this secret, so that it can be sent in public. The result is a nonce, the
  // bytes of `other` masked by a proof of the nonce, and a proof of both.
  static constexpr size_t kSealedLength = 48;
  using Sealed = std::array<uint8_t, kSealedLength>;
  Sealed Seal(const JobSecret& other) const;
  // nullopt: not sealed with this secret.
  std::optional<JobSecret> Unseal(std::span<const uint8_t, kSealedLength> sealed) const;

  // Whether `proof` was made by a process that knows this secret. A truncated proof of at least kShortestProof bytes is
  // accepted. Takes constant time.
  bool Verifies(std::span<const uint8_t> proof, std::string_view purpose, std::span<const uint8_t> said) const;

  bool operator==(const JobSecret&) const = default;

 private:
  JobSecret() = default;  // all zeros: not a valid secret

  std::array<uint8_t, kLength> bytes_{};
};

// 16 random bytes that cannot be guessed and were never used before.
using Nonce = std::array<uint8_t, 16>;
Nonce NewNonce();

}  // namespace weft

#endif  // BASE_JOB_SECRET_H_
