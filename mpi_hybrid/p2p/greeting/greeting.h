#ifndef MPI_HYBRID_P2P_GREETING_GREETING_H_
#define MPI_HYBRID_P2P_GREETING_GREETING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/job_secret.h"
#include "mpi_hybrid/core/process_table.h"

namespace weft::mpi {

// The protocol by which two processes find out that they share a bond (process_table.h), before the first frame.
// Little-endian, no I/O.
//
//   listener   Challenge   magic : 8 | nonce : 16 | who : 20                                          at once
//   connector  Hello       magic : 8 | from : 20 | to : 20 | bond : 16 | window : 8 | nonce : 16 | proof : 32
//   listener   Answer      window : 8 | answer : 4 | 0 : 4 | proof : 32
//
// A process is identified by its job (16) and its rank there (4). Each proof covers all that was said before it on the
// connection and uses the bond's secret, which is never sent. Before the Answer, only the listener knows whether the
// connection will be used. The listener first says who it is, without proof: the port of a process that died may belong
// to another process by now. A connector that meant the dead process then sends nothing.

struct Challenge {
  static constexpr size_t kLength = 44;
  using Bytes = std::span<uint8_t, kLength>;

  static void Write(const Nonce& nonce, const ProcessName& who, Bytes bytes);
  // Whether these first bytes may belong to a Challenge of this version.
  static bool BeginsOne(std::span<const uint8_t> bytes);
  // The process that claims to have sent it. nullopt: not a Challenge.
  static std::optional<ProcessName> Read(std::span<const uint8_t, kLength> bytes);
};

struct Hello {
  static constexpr size_t kLength = 120;

  ProcessName from;     // the connector
  ProcessName to;       // the process that the connector wants to reach
  JobId bond;           // the bond that the proof uses
  uint64_t window = 0;  // bytes of eager messages that the connector stores

  // Adds a nonce of its own and the proof.
  void Write(const JobSecret& secret, std::span<const uint8_t, Challenge::kLength> challenge,
             std::span<uint8_t, kLength> bytes) const;
  // The claims, without a check of the proof. nullopt: not a Hello of this version.
  static std::optional<Hello> Read(std::span<const uint8_t, kLength> bytes);
  // Whether its sender knows the bond's secret and made it for this challenge.
  static bool IsProven(const JobSecret& secret, std::span<const uint8_t, Challenge::kLength> challenge,
                       std::span<const uint8_t, kLength> bytes);
  // The nonce of the connector in a Hello.
  static std::span<const uint8_t, sizeof(Nonce)> NonceIn(std::span<const uint8_t, kLength> bytes);
};

struct Answer {
  static constexpr size_t kLength = 48;
  enum class Kind : uint32_t {
    kWelcome = 1,  // frames may follow
    kBusy = 2,     // another connection between the two exists or will exist: use that one
  };

  uint64_t window = 0;  // bytes of eager messages that the listener stores
  Kind kind = Kind::kWelcome;

  void Write(const JobSecret& secret, std::span<const uint8_t, Challenge::kLength> challenge,
             std::span<const uint8_t, Hello::kLength> hello, std::span<uint8_t, kLength> bytes) const;
  // nullopt: the sender does not have that bond or has not read that Hello.
  static std::optional<Answer> Read(const JobSecret& secret, std::span<const uint8_t, Challenge::kLength> challenge,
                                    std::span<const uint8_t, Hello::kLength> hello,
                                    std::span<const uint8_t, kLength> bytes);
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_GREETING_GREETING_H_
