#ifndef MPI_HYBRID_P2P_GREETING_GREETING_H_
#define MPI_HYBRID_P2P_GREETING_GREETING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/job_secret.h"
#include "mpi_hybrid/core/process_table.h"

namespace weft::mpi {

// How two processes find out that they have a bond (process_table.h), before the first frame. Little-endian, no I/O.
//
//   listener   Challenge   magic : 8 | nonce : 16 | who : 20                                          at once
//   connector  Hello       magic : 8 | from : 20 | to : 20 | bond : 16 | window : 8 | nonce : 16 | proof : 32
//   listener   Answer      window : 8 | answer : 4 | 0 : 4 | proof : 32
//
// A process is its job (16) and its rank there (4). Each proof is of all that was said before it on the connection, by
// the bond's secret, which nobody shows. Until the Answer nobody but the listener knows whether the connection will be
// used. Who listens says so first, unproven, since the port of a process that died may be another's by now: whoever meant
// the dead one says nothing there.

struct Challenge {
  static constexpr size_t kLength = 44;
  using Bytes = std::span<uint8_t, kLength>;

  static void Write(const Nonce& nonce, const ProcessName& who, Bytes bytes);
  // Of its first bytes: whether they may become one of this version.
  static bool BeginsOne(std::span<const uint8_t> bytes);
  // Who says that he made it. nullopt: it is none.
  static std::optional<ProcessName> Read(std::span<const uint8_t, kLength> bytes);
};

struct Hello {
  static constexpr size_t kLength = 120;

  ProcessName from;     // the connector
  ProcessName to;       // whom it means
  JobId bond;           // by which it proves itself
  uint64_t window = 0;  // bytes of eager messages that the connector stores

  // With a nonce of its own and the proof.
  void Write(const JobSecret& secret, std::span<const uint8_t, Challenge::kLength> challenge,
             std::span<uint8_t, kLength> bytes) const;
  // What it claims; nothing is proven. nullopt: not a Hello of this version.
  static std::optional<Hello> Read(std::span<const uint8_t, kLength> bytes);
  // Whether somebody who knows the bond's secret made it for this challenge.
  static bool IsProven(const JobSecret& secret, std::span<const uint8_t, Challenge::kLength> challenge,
                       std::span<const uint8_t, kLength> bytes);
  // The connector's, in a Hello.
  static std::span<const uint8_t, sizeof(Nonce)> NonceIn(std::span<const uint8_t, kLength> bytes);
};

struct Answer {
  static constexpr size_t kLength = 48;
  enum class Kind : uint32_t {
    kWelcome = 1,  // frames may follow
    kBusy = 2,     // another connection between the two is or will be there: use that one
  };

  uint64_t window = 0;  // bytes of eager messages that the listener stores
  Kind kind = Kind::kWelcome;

  void Write(const JobSecret& secret, std::span<const uint8_t, Challenge::kLength> challenge,
             std::span<const uint8_t, Hello::kLength> hello, std::span<uint8_t, kLength> bytes) const;
  // nullopt: not from somebody with that bond who read that hello.
  static std::optional<Answer> Read(const JobSecret& secret, std::span<const uint8_t, Challenge::kLength> challenge,
                                    std::span<const uint8_t, Hello::kLength> hello,
                                    std::span<const uint8_t, kLength> bytes);
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_GREETING_GREETING_H_
