#ifndef PMI_LAUNCH_OPTIONS_H_
#define PMI_LAUNCH_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/job_secret.h"
#include "base/result.h"
#include "pmi/error.h"
#include "pmi/launch/placement.h"
#include "pmi/launch/port_range.h"
#include "pmi/launch/remote_shell.h"

namespace weft::pmi {

inline constexpr int kMostRanks = 65536;  // in one job

// Determines the environment of the ranks.
struct EnvironmentOptions {
  enum class Inherit { kAll, kNone, kListed };
  std::optional<Inherit> inherit;                        // of mpiexec's own environment
  std::vector<std::string> listed;                       // names, for kListed
  std::vector<std::pair<std::string, std::string>> set;  // -genv or -env
  bool operator==(const EnvironmentOptions&) const = default;
};

// One program and its ranks: the part of the command line between two colons.
struct ProgramOptions {
  std::optional<int> ranks;
  std::vector<std::string> arguments;  // the program comes first
  std::optional<std::string> directory;
  EnvironmentOptions environment;
  bool operator==(const ProgramOptions&) const = default;
};

// The command line of mpiexec.
struct Options {
  enum class Action { kRun, kHelp, kVersion, kNameServer, kKvsServer };

  Action action = Action::kRun;
  std::vector<ProgramOptions> programs;
  std::vector<HostSlots> hosts;       // empty: this host
  std::optional<int> ranks_per_host;  // -ppn
  bool skips_this_host = false;       // -skip-launch-node: no rank runs where mpiexec does
  bool label = false;                 // -l
  std::optional<std::string> label_pattern;  // -prepend-pattern (file_pattern.h)
  std::optional<int> output_from;     // -output-from: the only rank of each job whose output is shown
  bool shows_exit_statuses = false;   // -print-all-exitcodes
  bool goes_on = false;               // -disable-auto-cleanup: deaths do not end the job
  bool shows_messages = false;        // -profile: prints the messages between mpiexec and its proxies
  std::string output_pattern;         // -outfile-pattern (file_pattern.h); empty: mpiexec's own output
  std::string error_output_pattern;   // -errfile-pattern
  std::string bind_to;                // -bind-to, -map-by (binding_request.h); empty: no binding
  std::string map_by;
  std::optional<int> universe_size;
  bool universe_is_hosts = false;     // -usize SYSTEM: the number of ranks that the hosts have room for
  std::optional<RemoteShell> launcher;  // the value of -launcher or -launcher-exec
  std::vector<std::string> launcher_arguments;  // for any launcher (HYDRA_LAUNCHER_EXTRA_ARGS)
  // use the hosts of a batch system's allocation if no hosts are named; not with -launcher fork
  bool takes_allocation = true;
  uint32_t most_branches = 16;          // -branches: most proxies that one process connects with (proxy_tree.h)
  PortRange ports;                      // where mpiexec and proxies listen for proxies
  std::string interface;  // -iface: the proxies connect to its address; empty: all addresses are tried in turn
  int kvs_port = 0;       // -kvs-server; 0: one of `ports`
  std::string secret_file;  // -secret-file, WEFT_PMI_SECRET_FILE: for ranks that connect to a port
  bool secured = false;     // -socktype OpenSSL: uses TLS with them
  // -nameserver, -nameserver-run: the file of the name server; empty: mpiexec keeps the names itself
  std::string name_file;
  EnvironmentOptions environment;
  // set for the ranks of the command line, but not for those that they spawn
  std::vector<std::pair<std::string, std::string>> first_job;
  // the same, with a value for each host of the placement, in its order; an empty name: none
  std::pair<std::string, std::vector<std::string>> first_job_by_host;
  std::optional<JobSecret> secret;  // of the command line's job, for an owner that shares it with the ranks; else a random one
  std::optional<std::chrono::seconds> time_out;  // -timeout, MPIEXEC_TIMEOUT; 0 or not set: no limit
  // For an owner: is told which ranks of the command line's job have ended, or were lost with their host, before mpiexec ended the job.
  std::function<void(const std::vector<int>& ranks)> on_gone;
  bool ignores_terminal = false;   // signals from the terminal are for another job of this process group
  std::vector<std::string> notes;  // what was ignored, for stderr
};

// `words`: the command line without argv[0]. `get`: returns the value of an environment variable, or null. The
// variables of hydra and of mpiexec supply what the command line leaves open (docs/man/mpiexec.1 lists them). Reads the
// files that both name. An error names the option or the variable, its value and the allowed values. An invalid
// variable is no error if only help is requested.
using EnvironmentReader = std::function<const char*(const char* name)>;
Result<Options, PmiError> ParseOptions(const std::vector<std::string>& words, const EnvironmentReader& get = nullptr);

// The value of -timeout or MPIEXEC_TIMEOUT: seconds until the job is ended; 0: never.
Result<std::chrono::seconds, PmiError> ParseTimeOut(const std::string& text);
// "FIRST:LAST", TCP ports.
Result<PortRange, PmiError> ParsePortRange(const std::string& text);

// The text of -help.
std::string HelpText();

// A message with the number of ranks if there are too many for one job; else empty.
std::string TooManyRanks(const Options& options);

// The value of MPI_UNIVERSE_SIZE. -1: none, as with hydra; also without -usize. A value equal to the job's size would
// tell programs that nothing can be spawned.
int UniverseSize(const Options& options);

// `options.hosts` and -ppn as entries for Place(), and the number of ranks of each program.
std::vector<HostSlots> HostEntries(const Options& options);
std::vector<int> RanksOfPrograms(const Options& options);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_OPTIONS_H_
