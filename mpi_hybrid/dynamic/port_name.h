#ifndef MPI_HYBRID_DYNAMIC_PORT_NAME_H_
#define MPI_HYBRID_DYNAMIC_PORT_NAME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/job_secret.h"
#include "mpi_hybrid/core/process_table.h"

namespace weft::mpi {

// The result of MPI_Open_port: all that another process needs to reach this one and to prove that it knows the name.
//
//   weft:VERSION:JOB:RANK:NUMBER:SECRET:KEY=CARD
//
// VERSION is that of the owner's library: processes of two versions do not connect (core/job_version.h). Older names have
// JOB in its place. JOB and SECRET are 32 hexadecimal digits. KEY and CARD are what the process published about itself
// (Job::CardsOf). A process that knows the name may connect, as the standard says, and no other process can. Therefore the
// name should be passed on with care.
struct PortName {
  static constexpr size_t kLongest = 255;  // characters: MPI_MAX_PORT_NAME minus the terminating zero

  ProcessName owner;
  int32_t number = 0;  // of the port, among those of its owner
  JobSecret secret;
  std::string key, card;

  // Leaves out the last addresses of the card if the name would be too long.
  std::string ToString() const;
  // nullopt: `text` is not a port name, or one of another version.
  static std::optional<PortName> Parse(std::string_view text);
  // What is wrong with a text that Parse() refuses. Names of other versions are not repeated: they hold a secret.
  static std::string WhyRefused(std::string_view text);
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DYNAMIC_PORT_NAME_H_
