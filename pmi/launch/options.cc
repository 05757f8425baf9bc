#include "pmi/launch/options.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/nearest.h"
#include "pmi/launch/config_file.h"
#include "pmi/launch/options_parser.h"
#include "pmi/wire/message.h"

namespace weft::pmi {

using Parser = OptionParser;
using Values = Parser::Values;

const Parser::Option Parser::kOptions[] = {
    {"n,np", "COUNT", "number of ranks of the program (default: as many as -hosts or -f have room for, else 1)", &Parser::Ranks},
    {"ppn,perhost", "COUNT", "number of consecutive ranks on each host", &Parser::RanksPerHost},
    {"hosts,host,hostlist,machines,machine,machinelist", "HOST[:COUNT],...", "hosts to run on, with the number of consecutive ranks on each (default: 1)", &Parser::Hosts},
    {"f,hostfile,machinefile", "FILE", "read the hosts from a file, with one HOST or HOST:COUNT per line", &Parser::HostFile},
    {"l,prepend-rank", "", "print the rank in front of every line of output", &Parser::Label},
    {"prepend-pattern", "PATTERN", "print this text in front of every line: %r rank, %g job, %p proxy, %h host, %t time", &Parser::LabelPattern},
    {"output-from", "RANK", "show only the output of this rank", &Parser::OutputFrom},
    {"outfile-pattern,outfile", "PATTERN", "write each rank's standard output to a file of this name: %r rank, %g job, %p proxy, %h host", &Parser::OutputFiles},
    {"errfile-pattern,errfile", "PATTERN", "the same for the standard error", &Parser::ErrorFiles},
    {"bind-to,binding", "WHAT", "CPUs of each rank: none, core, socket, numa, hwthread, machine, l3cache; several core:2; a list user:0+1,2+3", &Parser::BindTo},
    {"map-by", "WHAT", "place successive ranks on successive elements of this kind, such as socket (default: as -bind-to)", &Parser::MapBy},
    {"wdir,wd", "DIRECTORY", "working directory of the program (default: that of mpiexec)", &Parser::Directory},
    {"genv", "NAME VALUE", "set an environment variable for all programs", &Parser::GlobalVariable},
    {"genvlist", "NAME,NAME,...", "pass only these variables of mpiexec's environment", &Parser::GlobalList},
    {"genvall", "", "pass mpiexec's environment (default)", &Parser::GlobalAll},
    {"genvnone", "", "pass nothing of mpiexec's environment", &Parser::GlobalNone},
    {"env", "NAME VALUE", "set an environment variable for this program", &Parser::LocalVariable},
    {"envlist", "NAME,NAME,...", "pass only these variables to this program", &Parser::LocalList},
    {"envall", "", "pass mpiexec's environment to this program", &Parser::LocalAll},
    {"envnone", "", "pass nothing of mpiexec's environment to this program", &Parser::LocalNone},
    {"usize", "COUNT|SYSTEM|INFINITE", "set MPI_UNIVERSE_SIZE (SYSTEM: the number of ranks that the hosts have room for; default: not set)", &Parser::Universe},
    {"timeout", "SECONDS", "end the job after this time (0: never; default: MPIEXEC_TIMEOUT)", &Parser::TimeOut},
    {"iface", "NAME", "network interface by which other hosts reach this one", &Parser::Interface},
    {"branches", "COUNT", "most proxies that mpiexec, and each proxy, starts itself on other hosts (default: 16)", &Parser::Branches},
    {"skip-launch-node", "", "run no rank on this host", &Parser::SkipThisHost},
    {"rmk", "user|slurm", "source of the hosts if none are named: user: none but this host; slurm: Slurm's allocation (default)", &Parser::ResourceManager},
    {"launcher,bootstrap", "ssh|rsh|slurm|fork", "how to start programs on other hosts (default: slurm in a Slurm allocation, else ssh)", &Parser::Launcher},
    {"launcher-exec,bootstrap-exec", "PROGRAM", "program to call instead of ssh, as PROGRAM HOST COMMAND", &Parser::RemoteProgram},
    {"nameserver", "FILE", "share published names with other jobs, by the name server that wrote this file", &Parser::NameServer},
    {"nameserver-run", "FILE", "run a name server until a signal arrives, and write its address to this file", &Parser::RunNameServer},
    {"kvs-server", "[PORT]", "serve PMI to -n COUNT ranks that another program starts, and print the environment that they need", &Parser::KvsServer},
    {"secret-file", "FILE", "those ranks must prove that they know the first line of this file (default: they must run on this host)", &Parser::SecretFile},
    {"socktype", "POSIX|OpenSSL", "OpenSSL: use TLS with those ranks (default: POSIX)", &Parser::SocketType},
    {"configfile", "FILE", "read the programs from this file; each line has one program with its options and arguments", &Parser::ConfigFile},
    {"disable-auto-cleanup", "", "do not end the other ranks if a rank or a host dies", &Parser::GoOn},
    {"enable-auto-cleanup", "", "end the job if a rank or a host dies (default)", &Parser::CleanUp},
    {"print-all-exitcodes", "", "print the exit status of every rank at the end", &Parser::ExitStatuses},
    {"profile", "", "print how many messages mpiexec and its proxies exchanged", &Parser::Profile},
    {"version,V,info", "", "print the version", &Parser::Version},
    {"help,h,?", "", "print this help", &Parser::Help},
    // Hydra's, without a meaning here.
    {"membind", "WHAT", "", &Parser::Ignore},
    {"topolib", "WHAT", "", &Parser::Ignore},
    {"demux", "WHAT", "", &Parser::Ignore},
    {"localhost", "HOST", "", &Parser::Ignore},
    {"order-nodes", "WHAT", "", &Parser::Ignore},
    {"enable-x", "", "", &Parser::Ignore},
    {"disable-x", "", "", &Parser::Ignore},
    {"pmi-port", "", "", &Parser::Ignore},
    {"verbose,v", "", "", &Parser::Ignore},
    {"disable-hostname-propagation", "", "", &Parser::Ignore},
    {"enable-hostname-propagation", "", "", &Parser::Ignore},
    {"gpus-per-proc", "COUNT", "", &Parser::Ignore},
};

// Variables of the environment, and the option that each stands for. One that is set to nothing is not there. Of two for one option the later
// counts.
const Parser::Variable Parser::kVariables[] = {
    {"HYDRA_HOST_FILE", &Parser::DefaultHostFile},
    {"HYDRA_BOOTSTRAP", &Parser::Launcher},
    {"HYDRA_LAUNCHER", &Parser::Launcher},
    {"HYDRA_BOOTSTRAP_EXEC", &Parser::RemoteProgram},
    {"HYDRA_LAUNCHER_EXEC", &Parser::RemoteProgram},
    {"HYDRA_LAUNCHER_EXTRA_ARGS", &Parser::MoreArguments},
    {"HYDRA_RMK", &Parser::ResourceManager},
    {"HYDRA_IFACE", &Parser::Interface},
    {"HYDRA_BINDING", &Parser::BindTo},
    {"HYDRA_MAPPING", &Parser::MapBy},
    {"MPIEXEC_PORTRANGE", &Parser::Ports},
    {"MPIEXEC_PORT_RANGE", &Parser::Ports},
    {"MPIEXEC_TIMEOUT", &Parser::TimeOut},
    {"MPIEXEC_UNIVERSE_SIZE", &Parser::Universe},
    {"MPIEXEC_PREFIX_DEFAULT", &Parser::Label},
    {"WEFT_PMI_NAMESERVER", &Parser::NameServer},
    {"WEFT_PMI_SECRET_FILE", &Parser::SecretFile},
};

namespace {

const Parser::Option* FindOption(const std::string& name) {
  for (const Parser::Option& option : Parser::kOptions) {
    const auto names = Split(option.names, ',');
    if (std::find(names.begin(), names.end(), name) != names.end()) return &option;
  }
  return nullptr;
}

// The option that `name`, which is none, was meant to be.
std::optional<std::string> NearestOption(const std::string& name) {
  std::vector<std::string> names;
  for (const Parser::Option& option : Parser::kOptions) {
    for (const std::string& known : Split(option.names, ',')) names.push_back(known);
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  const auto nearest = NearestName(name, views);
  return nearest ? std::optional<std::string>(*nearest) : std::nullopt;
}

}  // namespace

std::string Parser::TakeOption(const std::vector<std::string>& words, size_t* at) {
  const std::string& word = words[*at];
  std::string name = word.substr(word.starts_with("--") ? 2 : 1);
  Values values;
  if (const size_t equals = name.find('='); equals != std::string::npos) {
    values.push_back(name.substr(equals + 1));
    name.resize(equals);
  }
  const Option* option = FindOption(name);
  if (option == nullptr) {
    const auto meant = NearestOption(name);
    return "unknown option " + Printable(word) + (meant ? "; did you mean -" + *meant + "?" : "; mpiexec -help lists the options");
  }
  const size_t available = words.size() - *at - 1;
  const bool optional = option->values[0] == '[' && values.empty();
  const size_t wanted = optional ? (available > 0 && ParseInt(words[*at + 1]) ? 1 : 0) : Split(option->values, ' ').size();
  if (values.size() > wanted) return "-" + name + " takes no value, but is " + Printable(word);
  if (wanted - values.size() > available) return "-" + name + " needs " + option->values;
  while (values.size() < wanted) values.push_back(words[++*at]);
  ++*at;
  if (option->set == &Parser::Ignore) options_.notes.push_back(Printable(word) + " has no effect here");
  const std::string problem = (this->*option->set)(values);
  return problem.empty() ? problem : "-" + name + ": " + problem;
}

// The program and its arguments, to the colon or the end.
std::string Parser::TakeProgram(const std::vector<std::string>& words, size_t* at) {
  const auto end = std::find(words.begin() + static_cast<std::ptrdiff_t>(*at), words.end(), ":");
  program().arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(*at), end);
  *at = static_cast<size_t>(end - words.begin());
  if (!program().arguments.empty() && !program().arguments[0].empty()) return {};
  return words.empty() ? "no program given; usage: mpiexec -n COUNT PROGRAM [ARGUMENTS...], and mpiexec -help for more"
                       : "no program after '" + Printable(words[*at == 0 ? 0 : *at - 1]) + "'";
}

std::string Parser::TakePrograms(const std::vector<std::string>& words) {
  size_t at = 0;
  do {
    options_.programs.emplace_back();
    while (at < words.size() && words[at].size() > 1 && words[at][0] == '-' && words[at] != "--") {
      const bool in_config_file = !config_.empty();
      if (std::string problem = TakeOption(words, &at); !problem.empty()) return problem;
      if (options_.action != Options::Action::kRun && options_.action != Options::Action::kKvsServer) return {};
      if (!in_config_file && !config_.empty()) return TakeConfigFile({words.begin() + static_cast<std::ptrdiff_t>(at), words.end()});
    }
    if (options_.action == Options::Action::kKvsServer) return CheckKvsServer({words.begin() + static_cast<std::ptrdiff_t>(at), words.end()});
    if (at < words.size() && words[at] == "--") ++at;
    if (std::string problem = TakeProgram(words, &at); !problem.empty()) return problem;
  } while (at++ < words.size() && words[at - 1] == ":");
  return {};
}

std::string Parser::CheckKvsServer(const std::vector<std::string>& rest) {
  if (!rest.empty()) return "'" + Printable(rest[0]) + "' after -kvs-server: it starts no program";
  return program().ranks ? "" : "-kvs-server needs -n COUNT, the number of ranks that will connect";
}

std::string Parser::TakeConfigFile(const std::vector<std::string>& rest) {
  if (!rest.empty()) return "'" + Printable(rest[0]) + "' after -configfile " + config_name_ + ": the file names all programs";
  if (options_.programs.size() > 1) return "a program before -configfile " + config_name_ + ": the file names all programs";
  if (program() != ProgramOptions{}) return "options of one program before -configfile " + config_name_ + ": put them into the file, with their program";
  options_.programs.clear();
  for (const ConfigLine& line : config_) {
    if (const std::string problem = TakePrograms(line.words); !problem.empty()) {
      return config_name_ + ", line " + std::to_string(line.number) + ": " + problem;
    }
    if (options_.action != Options::Action::kRun) break;
  }
  return {};
}

std::string Parser::TakeVariables(const EnvironmentReader& get) {
  if (get == nullptr) return {};
  std::string first;
  for (const auto& [name, set] : kVariables) {
    const char* value = get(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string problem = (this->*set)({value});
    if (!problem.empty() && first.empty()) first = std::string(name) + ": " + problem;
  }
  return first;
}

Result<Options, PmiError> Parser::Parse(const std::vector<std::string>& words, const EnvironmentReader& get) {
  const std::string variables_problem = TakeVariables(get);
  if (const std::string problem = TakePrograms(words); !problem.empty()) return PmiError{problem};
  if (options_.action != Options::Action::kRun && options_.action != Options::Action::kKvsServer) return options_;
  if (!variables_problem.empty()) return PmiError{variables_problem};
  if (options_.action == Options::Action::kKvsServer) return options_;
  if (options_.hosts.empty() && !default_host_file_.empty()) {
    if (const std::string problem = HostFile({default_host_file_}); !problem.empty()) return PmiError{"HYDRA_HOST_FILE: " + problem};
  }
  options_.takes_allocation = !forks_ && !names_hosts_;
  if (!options_.map_by.empty() && (options_.bind_to.empty() || options_.bind_to.starts_with("user:"))) {
    options_.notes.push_back("-map-by " + Printable(options_.map_by) + " has no effect " +
                             (options_.bind_to.empty() ? "without -bind-to" : "where -bind-to lists CPUs"));
  }
  if (std::string problem = TooManyRanks(options_); !problem.empty()) return PmiError{problem};
  return options_;
}

Result<Options, PmiError> ParseOptions(const std::vector<std::string>& words, const EnvironmentReader& get) { return Parser().Parse(words, get); }

std::string HelpText() {
  std::string text =
      "usage: mpiexec [OPTIONS] PROGRAM [ARGUMENTS...] [: [OPTIONS] PROGRAM [ARGUMENTS...]]...\n\n"
      "Starts the ranks of an MPI job, forwards their input and output, and ends the job if one of them fails.\n\n";
  for (const Parser::Option& option : Parser::kOptions) {
    if (*option.help == '\0') continue;
    std::string names;
    for (const std::string& name : Split(option.names, ',')) names += (names.empty() ? "-" : ", -") + name;
    text += "  " + names + (*option.values == '\0' ? "" : " ") + option.values + "\n        " + option.help + "\n";
  }
  return text +
         "\nExit status: that of the first rank that failed, 128 + N if signal N killed it; 127 if the program is not found, "
         "126 "
         "if it\ncannot be executed, 1 if the job could not be started or mpiexec's output could not be written, 2 for a "
         "wrong "
         "command line;\n255 if the time limit of -timeout or of the environment variable MPIEXEC_TIMEOUT has passed.\n";
}

}  // namespace weft::pmi
