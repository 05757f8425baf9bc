#ifndef IMPI_RUN_CLIENT_OPTIONS_H_
#define IMPI_RUN_CLIENT_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "impi/job/announcement.h"
#include "impi/run/authentication.h"

namespace weft::impi {

// `impirun -client K HOST:PORT [OPTIONS] [mpiexec's options] PROGRAM ARGUMENTS` (IMPI 0.0, section 2.2.2).
struct ClientOptions {
  int32_t client = 0;  // 0 to 31
  std::string host;    // of the server; a name or an address
  uint16_t port = 0;
  Authentication authentication;
  // that the hosts of this client announce, in the order of mpiexec's; empty: each the one from which it reaches the server
  std::vector<std::string> addresses;
  bool lam_peers = false;  // all other clients are LAM/MPI
  // What this client says; the hosts agree on the least values, and the clients must agree on the last two (section 2.3.5).
  uint32_t data_length = 65536;  // bytes
  uint32_t ack_mark = 10;        // packets
  uint32_t high_water = 40;      // packets: at most 2.5 MiB of a pair of processes that do not receive
  int32_t crossover_size = Announcement::kDefault;
  int32_t max_linear = Announcement::kDefault;
  std::vector<std::string> mpiexec;   // its command line, without its name
  std::vector<std::string> warnings;  // for stderr

  bool operator==(const ClientOptions&) const = default;
};

// `words`: the command line without the name of the program; the first one is -client. Options of this program stand before those of mpiexec; the first word
// that is none of them begins mpiexec's. Why not: a sentence that names the word and what is allowed.
Result<ClientOptions, std::string> ParseClientOptions(const std::vector<std::string>& words, const EnvironmentReader& get);

// The text of `impirun -help`, for both forms.
std::string HelpOfImpirun();

}  // namespace weft::impi

#endif  // IMPI_RUN_CLIENT_OPTIONS_H_
