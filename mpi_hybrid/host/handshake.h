#ifndef MPI_HYBRID_HOST_HANDSHAKE_H_
#define MPI_HYBRID_HOST_HANDSHAKE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/job_secret.h"

namespace weft::mpi::host {

// In front of the name of a host's socket, and of the key under which its rank publishes it.
inline constexpr char kSegmentPrefix[] = "weft-segment-";

// The messages of a process that joins the memory of its host (gathering.h). Both ends are on one host, so numbers are
// in native byte order. No I/O.
struct GuestHello {
  static constexpr size_t kLength = 64;

  int32_t rank = 0;            // in MPI_COMM_WORLD
  int32_t pid = 0;             // as the guest itself sees it
  uint64_t pid_namespace = 0;  // 0: unknown

  void Write(const JobSecret& secret, const Nonce& challenge, std::span<uint8_t, kLength> bytes) const;
  // nullopt: the message does not prove knowledge of the secret for this challenge.
  static std::optional<GuestHello> Read(const JobSecret& secret, const Nonce& challenge,
                                        std::span<const uint8_t> bytes);
};

// The host's answer.
JobSecret::Proof HostProof(const JobSecret& secret, const Nonce& challenge,
                           std::span<const uint8_t, GuestHello::kLength> hello);
bool IsHostProof(const JobSecret& secret, const Nonce& challenge, std::span<const uint8_t, GuestHello::kLength> hello,
                 std::span<const uint8_t> proof);

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_HOST_HANDSHAKE_H_
