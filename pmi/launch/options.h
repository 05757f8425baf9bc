#ifndef PMI_LAUNCH_OPTIONS_H_
#define PMI_LAUNCH_OPTIONS_H_

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "pmi/error.h"
#include "pmi/launch/placement.h"
#include "pmi/launch/remote_shell.h"

namespace weft::pmi {

// What the ranks' environment is made of.
struct EnvironmentOptions {
  enum class Inherit { kAll, kNone, kListed };
  std::optional<Inherit> inherit;                        // of mpiexec's own environment
  std::vector<std::string> listed;                       // names, for kListed
  std::vector<std::pair<std::string, std::string>> set;  // -genv or -env
  bool operator==(const EnvironmentOptions&) const = default;
};

// One program and its ranks: what stands between two colons.
struct ProgramOptions {
  std::optional<int> ranks;
  std::vector<std::string> arguments;  // the program first
  std::optional<std::string> directory;
  EnvironmentOptions environment;
  bool operator==(const ProgramOptions&) const = default;
};

// The command line of mpiexec.
struct Options {
  enum class Action { kRun, kHelp, kVersion, kNameServer };

  Action action = Action::kRun;
  std::vector<ProgramOptions> programs;
  std::vector<HostSlots> hosts;       // empty: this one
  std::optional<int> ranks_per_host;  // -ppn
  bool label = false;                 // -l
  std::string output_pattern;         // -outfile-pattern (file_pattern.h); empty: ours
  std::string error_output_pattern;   // -errfile-pattern
  std::string bind_to;                // -bind-to, -map-by (binding_request.h); empty: no binding
  std::string map_by;
  std::optional<int> universe_size;
  std::optional<RemoteShell> launcher;  // what -launcher or -launcher-exec says
  bool takes_allocation = true;         // hosts that a batch system gave this process, where none are named; not with -launcher fork
  std::string interface;  // -iface: whose address the proxies connect to; empty: tried in turn
  std::string name_file;  // -nameserver, -nameserver-run: the name server's; empty: names are mpiexec's own
  EnvironmentOptions environment;
  std::optional<std::chrono::seconds> time_out;  // -timeout, MPIEXEC_TIMEOUT; 0: without limit, as when nothing is said
  std::vector<std::string> notes;  // what was ignored, for stderr
};

// `words`: the command line without argv[0]. Reads the files that they name. An error names the option, its value and what it may be.
Result<Options, PmiError> ParseOptions(const std::vector<std::string>& words);

// The value of -timeout or MPIEXEC_TIMEOUT: seconds until the job is ended, 0 for never.
Result<std::chrono::seconds, PmiError> ParseTimeOut(const std::string& text);

// The text of -help.
std::string HelpText();

// That there are too many ranks for one job, with their number; empty: there are not.
std::string TooManyRanks(const Options& options);

// `options.hosts` and -ppn as entries for Place(), and the number of ranks of each program.
std::vector<HostSlots> HostEntries(const Options& options);
std::vector<int> RanksOfPrograms(const Options& options);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_OPTIONS_H_
