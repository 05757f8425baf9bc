#ifndef MPI_HYBRID_DYNAMIC_PORT_NAME_H_
#define MPI_HYBRID_DYNAMIC_PORT_NAME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/job_secret.h"
#include "mpi_hybrid/core/process_table.h"

namespace weft::mpi {

// What MPI_Open_port gives: all that another process needs to reach this one and to prove that it has the name.
//
//   weft:JOB:RANK:NUMBER:SECRET:KEY=CARD
//
// JOB and SECRET are 32 hexadecimal digits, KEY and CARD what the process published of itself (Job::CardsOf). Who knows
// the name may connect, as the standard has it, and nobody else: it is to be handed on with care.
struct PortName {
  static constexpr size_t kLongest = 255;  // characters: MPI_MAX_PORT_NAME less the zero

  ProcessName owner;
  int32_t number = 0;  // of the port, among those of its owner
  JobSecret secret;
  std::string key, card;

  // The last of a card's addresses are left out where it would be too long.
  std::string ToString() const;
  // nullopt: it is none.
  static std::optional<PortName> Parse(std::string_view text);
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DYNAMIC_PORT_NAME_H_
