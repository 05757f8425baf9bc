#include "mpi_hybrid/host/handshake.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace weft::mpi::host {
namespace {

constexpr char kGuest[] = "weft-node guest", kHost[] = "weft-node host";

//  0               16      20      24              32                              64
//  +---------------+-------+-------+---------------+-------------------------------+
//  | nonce         | rank  | pid   | pid namespace | proof of what is before it    |
//  +---------------+-------+-------+---------------+-------------------------------+
constexpr size_t kRankAt = 16, kPidAt = 20, kNamespaceAt = 24, kProofAt = 32;
static_assert(kProofAt + sizeof(JobSecret::Proof) == GuestHello::kLength);

std::vector<uint8_t> Said(const Nonce& challenge, std::span<const uint8_t> bytes) {
  std::vector<uint8_t> said(challenge.begin(), challenge.end());
  said.insert(said.end(), bytes.begin(), bytes.end());
  return said;
}

}  // namespace

void GuestHello::Write(const JobSecret& secret, const Nonce& challenge, std::span<uint8_t, kLength> bytes) const {
  const Nonce nonce = NewNonce();
  std::copy(nonce.begin(), nonce.end(), bytes.begin());
  std::memcpy(&bytes[kRankAt], &rank, sizeof(rank));
  std::memcpy(&bytes[kPidAt], &pid, sizeof(pid));
  std::memcpy(&bytes[kNamespaceAt], &pid_namespace, sizeof(pid_namespace));
  const JobSecret::Proof proof = secret.Prove(kGuest, Said(challenge, bytes.first(kProofAt)));
  std::copy(proof.begin(), proof.end(), bytes.begin() + kProofAt);
}

std::optional<GuestHello> GuestHello::Read(const JobSecret& secret, const Nonce& challenge,
                                           std::span<const uint8_t> bytes) {
  if (bytes.size() != kLength) return std::nullopt;
  if (!secret.Verifies(bytes.subspan(kProofAt), kGuest, Said(challenge, bytes.first(kProofAt)))) return std::nullopt;
  GuestHello hello;
  std::memcpy(&hello.rank, &bytes[kRankAt], sizeof(hello.rank));
  std::memcpy(&hello.pid, &bytes[kPidAt], sizeof(hello.pid));
  std::memcpy(&hello.pid_namespace, &bytes[kNamespaceAt], sizeof(hello.pid_namespace));
  return hello;
}

JobSecret::Proof HostProof(const JobSecret& secret, const Nonce& challenge,
                           std::span<const uint8_t, GuestHello::kLength> hello) {
  return secret.Prove(kHost, Said(challenge, hello));
}

bool IsHostProof(const JobSecret& secret, const Nonce& challenge, std::span<const uint8_t, GuestHello::kLength> hello,
                 std::span<const uint8_t> proof) {
  return proof.size() == sizeof(JobSecret::Proof) && secret.Verifies(proof, kHost, Said(challenge, hello));
}

}  // namespace weft::mpi::host
