#include "pmi/launch/options.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/nearest.h"
#include "pmi/launch/binding_request.h"
#include "pmi/launch/config_file.h"
#include "pmi/launch/file_pattern.h"
#include "pmi/wire/message.h"

namespace weft::pmi {
namespace {

using Values = std::vector<std::string>;  // what follows an option

// CLI11 has no options of one dash and several letters, and none of two values: a table of our own.
class Parser {
 public:
  Result<Options, PmiError> Parse(const std::vector<std::string>& words, const EnvironmentReader& get);

  struct Option {
    const char* names;                                 // "n,np": the first is shown
    const char* values;                                // "NAME VALUE"; "[PORT]": a number that need not be there
    const char* help;                                  // empty: accepted without being shown
    std::string (Parser::*set)(const Values& values);  // why the values are wrong, or empty
  };
  static const Option kOptions[];

  struct Variable {
    const char* name;
    std::string (Parser::*set)(const Values& values);
  };
  static const Variable kVariables[];

 private:
  std::string Ranks(const Values& values) { return Positive(values[0], "a number of ranks", &program().ranks); }
  std::string RanksPerHost(const Values& values) { return Positive(values[0], "a number of ranks", &options_.ranks_per_host); }
  std::string Hosts(const Values& values) { return AddHosts(ParseHosts(values[0])); }
  std::string HostFile(const Values& values);
  std::string GlobalVariable(const Values& values) { return SetVariable(values, &options_.environment); }
  std::string GlobalList(const Values& values) { return List(values[0], &options_.environment); }
  std::string GlobalAll(const Values&) { return Inherit(EnvironmentOptions::Inherit::kAll, &options_.environment); }
  std::string GlobalNone(const Values&) { return Inherit(EnvironmentOptions::Inherit::kNone, &options_.environment); }
  std::string LocalVariable(const Values& values) { return SetVariable(values, &program().environment); }
  std::string LocalList(const Values& values) { return List(values[0], &program().environment); }
  std::string LocalAll(const Values&) { return Inherit(EnvironmentOptions::Inherit::kAll, &program().environment); }
  std::string LocalNone(const Values&) { return Inherit(EnvironmentOptions::Inherit::kNone, &program().environment); }
  std::string Directory(const Values& values);
  std::string Label(const Values&) { return Set(&options_.label); }
  std::string LabelPattern(const Values& values);
  std::string OutputFrom(const Values& values);
  std::string ExitStatuses(const Values&) { return Set(&options_.shows_exit_statuses); }
  std::string Profile(const Values&) { return Set(&options_.shows_messages); }
  std::string SkipThisHost(const Values&) { return Set(&options_.skips_this_host); }
  std::string OutputFiles(const Values& values) { return Pattern(values[0], &options_.output_pattern); }
  std::string ErrorFiles(const Values& values) { return Pattern(values[0], &options_.error_output_pattern); }
  std::string Universe(const Values& values);
  std::string BindTo(const Values& values);
  std::string MapBy(const Values& values);
  std::string TimeOut(const Values& values);
  std::string Launcher(const Values& values);
  std::string RemoteProgram(const Values& values);
  std::string ResourceManager(const Values& values);
  std::string Branches(const Values& values);
  std::string Ports(const Values& values);
  std::string DefaultHostFile(const Values& values);
  std::string MoreArguments(const Values& values);
  std::string Interface(const Values& values);
  std::string NameServer(const Values& values);
  std::string RunNameServer(const Values& values);
  std::string KvsServer(const Values& values);
  std::string SecretFile(const Values& values);
  std::string SocketType(const Values& values);
  std::string ConfigFile(const Values& values);
  std::string Help(const Values&) { return Do(Options::Action::kHelp); }
  std::string Version(const Values&) { return Do(Options::Action::kVersion); }
  std::string Ignore(const Values&) { return {}; }

  static std::string Set(bool* flag) {
    *flag = true;
    return {};
  }
  static std::string Positive(const std::string& text, const char* what, std::optional<int>* number);
  static std::string Pattern(const std::string& text, std::string* pattern);
  static std::string SetVariable(const Values& values, EnvironmentOptions* environment);
  static std::string List(const std::string& names, EnvironmentOptions* environment);
  static std::string Inherit(EnvironmentOptions::Inherit inherit, EnvironmentOptions* environment);
  std::string AddHosts(const Result<std::vector<HostSlots>, PmiError>& hosts);
  std::string Do(Options::Action action);

  ProgramOptions& program() { return options_.programs.back(); }
  // Consumes the option at words[at] and its values; why it is wrong, or empty.
  std::string TakeOption(const std::vector<std::string>& words, size_t* at);
  std::string TakeProgram(const std::vector<std::string>& words, size_t* at);
  // Programs, colons between, to the end of `words`; or as many as there are before -help or the like.
  std::string TakePrograms(const std::vector<std::string>& words);
  // That there is what -kvs-server needs, and nothing else; `rest` follows the options.
  std::string CheckKvsServer(const std::vector<std::string>& rest);
  // What the environment says; why it is wrong, or empty.
  std::string TakeVariables(const EnvironmentReader& get);
  // The programs of -configfile, which `rest` of the command line follows.
  std::string TakeConfigFile(const std::vector<std::string>& rest);

  Options options_;
  std::string default_host_file_;  // HYDRA_HOST_FILE
  bool forks_ = false;             // -launcher fork
  bool names_hosts_ = false;       // -rmk user
  std::string config_name_;  // -configfile; empty: there is none
  std::vector<ConfigLine> config_;
};

const Parser::Option Parser::kOptions[] = {
    {"n,np", "COUNT", "ranks of the program (default: as many as -hosts or -f have room for, else 1)", &Parser::Ranks},
    {"ppn,perhost", "COUNT", "ranks in a row on each host", &Parser::RanksPerHost},
    {"hosts,host,hostlist,machines,machine,machinelist", "HOST[:COUNT],...", "hosts to run on, with the ranks in a row that each takes (1)", &Parser::Hosts},
    {"f,hostfile,machinefile", "FILE", "the same from a file, a HOST or HOST:COUNT on each line", &Parser::HostFile},
    {"l,prepend-rank", "", "put the rank in front of every line of output", &Parser::Label},
    {"prepend-pattern", "PATTERN", "put this in front of every line: %r rank, %g job, %p proxy, %h host, %t time", &Parser::LabelPattern},
    {"output-from", "RANK", "show the output of this rank alone", &Parser::OutputFrom},
    {"outfile-pattern,outfile", "PATTERN", "write each rank's output to the file that this names: %r rank, %g job, %p proxy, %h host", &Parser::OutputFiles},
    {"errfile-pattern,errfile", "PATTERN", "the same for its standard error", &Parser::ErrorFiles},
    {"bind-to,binding", "WHAT", "CPUs of each rank: none, core, socket, numa, hwthread, machine, l3cache; several core:2; a list user:0+1,2+3", &Parser::BindTo},
    {"map-by", "WHAT", "what successive ranks go on to (default: as -bind-to), for example socket", &Parser::MapBy},
    {"wdir,wd", "DIRECTORY", "working directory of the program (default: this one)", &Parser::Directory},
    {"genv", "NAME VALUE", "set an environment variable for all programs", &Parser::GlobalVariable},
    {"genvlist", "NAME,NAME,...", "pass only these variables of this environment", &Parser::GlobalList},
    {"genvall", "", "pass this environment (default)", &Parser::GlobalAll},
    {"genvnone", "", "pass nothing of this environment", &Parser::GlobalNone},
    {"env", "NAME VALUE", "set an environment variable for this program", &Parser::LocalVariable},
    {"envlist", "NAME,NAME,...", "pass only these variables to this program", &Parser::LocalList},
    {"envall", "", "pass this environment to this program", &Parser::LocalAll},
    {"envnone", "", "pass nothing of this environment to this program", &Parser::LocalNone},
    {"usize", "COUNT|SYSTEM|INFINITE", "what MPI_UNIVERSE_SIZE says (default: the number of ranks; SYSTEM: what the hosts have room for)", &Parser::Universe},
    {"timeout", "SECONDS", "end the job after this time (0: never; default: MPIEXEC_TIMEOUT)", &Parser::TimeOut},
    {"iface", "NAME", "network interface that other hosts reach this one by", &Parser::Interface},
    {"branches", "COUNT", "proxies on other hosts that mpiexec, and each proxy, starts and connects with (16)", &Parser::Branches},
    {"skip-launch-node", "", "run no rank on this host", &Parser::SkipThisHost},
    {"rmk", "user|slurm", "where hosts come from when none are named: nowhere, or Slurm's allocation (default)", &Parser::ResourceManager},
    {"launcher,bootstrap", "ssh|rsh|slurm|fork", "how programs on other hosts are started (default: slurm in an allocation of Slurm's, else ssh)", &Parser::Launcher},
    {"launcher-exec,bootstrap-exec", "PROGRAM", "called as PROGRAM HOST COMMAND instead of ssh", &Parser::RemoteProgram},
    {"nameserver", "FILE", "share names with the jobs of the name server that wrote this file", &Parser::NameServer},
    {"nameserver-run", "FILE", "be a name server, and say where in this file, until a signal comes", &Parser::RunNameServer},
    {"kvs-server", "[PORT]", "serve PMI to -n COUNT ranks that somebody else starts, and print the environment that they need", &Parser::KvsServer},
    {"secret-file", "FILE", "file whose first line those ranks must prove to know; without it they are on this host", &Parser::SecretFile},
    {"socktype", "POSIX|OpenSSL", "with OpenSSL, speak TLS with those ranks", &Parser::SocketType},
    {"configfile", "FILE", "take the programs from this file, on each line what would stand between two colons", &Parser::ConfigFile},
    {"print-all-exitcodes", "", "print the exit status of every rank at the end", &Parser::ExitStatuses},
    {"profile", "", "print how many messages mpiexec and its proxies sent to one another", &Parser::Profile},
    {"version,V,info", "", "print the version", &Parser::Version},
    {"help,h,?", "", "print this", &Parser::Help},
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
    {"disable-auto-cleanup", "", "", &Parser::Ignore},
    {"enable-auto-cleanup", "", "", &Parser::Ignore},
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

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

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

std::string Parser::Positive(const std::string& text, const char* what, std::optional<int>* number) {
  const std::optional<int> value = ParseInt(text);
  if (!value || *value < 1 || *value > kMostRanks) {
    return "'" + Printable(text) + "' is not " + what + " from 1 to " + std::to_string(kMostRanks);
  }
  *number = value;
  return {};
}

std::string Parser::AddHosts(const Result<std::vector<HostSlots>, PmiError>& hosts) {
  if (!hosts) return hosts.error().message;
  if (!options_.hosts.empty()) return "the hosts were given before: -hosts and -f go once, before the first program";
  options_.hosts = hosts.value();
  return {};
}

std::string Parser::HostFile(const Values& values) {
  std::ifstream file(values[0]);
  if (!file) return "cannot read the host file " + values[0] + ": " + std::strerror(errno);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return "cannot read the host file " + values[0] + ": is it a file?";
  return AddHosts(ParseHostFile(text, values[0]));
}

std::string Parser::DefaultHostFile(const Values& values) {
  default_host_file_ = values[0];
  return {};
}

std::string Parser::SetVariable(const Values& values, EnvironmentOptions* environment) {
  if (values[0].empty() || values[0].find('=') != std::string::npos) {
    return "'" + Printable(values[0]) + "' is not the name of an environment variable (name and value are two words)";
  }
  environment->set.emplace_back(values[0], values[1]);
  return {};
}

std::string Parser::List(const std::string& names, EnvironmentOptions* environment) {
  environment->listed = Split(names, ',');
  return Inherit(EnvironmentOptions::Inherit::kListed, environment);
}

std::string Parser::Inherit(EnvironmentOptions::Inherit inherit, EnvironmentOptions* environment) {
  environment->inherit = inherit;
  return {};
}

std::string Parser::Directory(const Values& values) {
  if (values[0].empty()) return "the name of the directory is empty";
  program().directory = values[0];
  return {};
}

std::string Parser::LabelPattern(const Values& values) {
  options_.label_pattern = values[0];
  return ProblemOfLinePattern(values[0]);
}

std::string Parser::OutputFrom(const Values& values) {
  options_.output_from = ParseInt(values[0]);
  return options_.output_from && *options_.output_from >= 0 ? "" : "'" + Printable(values[0]) + "' is not a rank";
}

std::string Parser::Pattern(const std::string& text, std::string* pattern) {
  *pattern = text;
  return ProblemOfFilePattern(text);
}

std::string Parser::Universe(const Values& values) {
  options_.universe_is_hosts = values[0] == "SYSTEM";
  options_.universe_size.reset();
  if (values[0] == "SYSTEM") return {};
  if (values[0] == "INFINITE") {
    options_.universe_size = -1;
    return {};
  }
  return Positive(values[0], "SYSTEM, INFINITE or a number", &options_.universe_size);
}

std::string Parser::BindTo(const Values& values) {
  const auto request = ParseBinding(values[0], {});
  if (!request) return request.error().message;
  options_.bind_to = request.value() ? values[0] : "";
  return {};
}

std::string Parser::MapBy(const Values& values) {
  if (values[0].empty()) return "the value is empty";
  const auto request = ParseBinding("core", values[0]);
  if (!request) return request.error().message;
  options_.map_by = values[0];
  return {};
}

std::string Parser::TimeOut(const Values& values) {
  const auto time_out = ParseTimeOut(values[0]);
  if (!time_out) return time_out.error().message;
  options_.time_out = time_out.value();
  return {};
}

std::string Parser::Launcher(const Values& values) {
  const std::string& name = values[0];
  if (name != "ssh" && name != "rsh" && name != "slurm" && name != "fork") {
    return "'" + Printable(name) + "' is not supported; programs on other hosts are started by ssh, rsh or slurm, or by what -launcher-exec names";
  }
  forks_ = name == "fork";
  options_.launcher = name == "slurm" ? RemoteShell::Slurm() : name == "rsh" ? RemoteShell::Program("rsh") : RemoteShell::Ssh();
  return {};
}

std::string Parser::MoreArguments(const Values& values) {
  options_.launcher_arguments = Split(values[0], ' ');
  std::erase(options_.launcher_arguments, "");
  return {};
}

std::string Parser::ResourceManager(const Values& values) {
  if (values[0] != "user" && values[0] != "slurm") {
    return "'" + Printable(values[0]) + "' is not supported; slurm is, and user, with hosts that -hosts or -f name";
  }
  names_hosts_ = values[0] == "user";
  return {};
}

std::string Parser::Branches(const Values& values) {
  std::optional<int> count;
  const std::string problem = Positive(values[0], "a number of proxies", &count);
  if (count) options_.most_branches = static_cast<uint32_t>(*count);
  return problem;
}

std::string Parser::Ports(const Values& values) {
  const auto range = ParsePortRange(values[0]);
  if (!range) return range.error().message;
  options_.ports = range.value();
  return {};
}

std::string Parser::RemoteProgram(const Values& values) {
  if (values[0].empty()) return "the name of the program is empty";
  if (options_.launcher && options_.launcher->kind == RemoteShell::Kind::kSlurm) {
    options_.launcher->program = values[0];  // another srun
  } else {
    options_.launcher = RemoteShell::Program(values[0]);
  }
  return {};
}

std::string Parser::Interface(const Values& values) {
  options_.interface = values[0];
  return {};
}

std::string Parser::NameServer(const Values& values) {
  if (values[0].empty()) return "the name of the file is empty";
  options_.name_file = values[0];
  return {};
}

std::string Parser::RunNameServer(const Values& values) {
  options_.action = Options::Action::kNameServer;
  return NameServer(values);
}

std::string Parser::KvsServer(const Values& values) {
  options_.action = Options::Action::kKvsServer;
  const std::optional<int> port = values.empty() ? 0 : ParseInt(values[0]);
  if (!port || *port < 0 || *port > 65535) return "'" + Printable(values[0]) + "' is not a TCP port";
  options_.kvs_port = *port;
  return {};
}

std::string Parser::SecretFile(const Values& values) {
  if (values[0].empty()) return "the name of the file is empty";
  options_.secret_file = values[0];
  return {};
}

std::string Parser::SocketType(const Values& values) {
  options_.secured = values[0] == "OpenSSL";
  return options_.secured || values[0] == "POSIX" ? "" : "'" + Printable(values[0]) + "' is not known; POSIX and OpenSSL are";
}

std::string Parser::ConfigFile(const Values& values) {
  if (!config_name_.empty()) return "there is one already: " + config_name_;
  auto lines = ReadConfigFile(values[0]);
  if (!lines) return lines.error().message;
  config_name_ = values[0];
  config_ = std::move(lines).value();
  return {};
}

std::string Parser::Do(Options::Action action) {
  options_.action = action;
  return {};
}

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
    return "unknown option " + Printable(word) + (meant ? "; did you mean -" + *meant + "?" : "; mpiexec -help lists those that are known");
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
  return program().ranks ? "" : "-kvs-server needs -n COUNT, the number of ranks that will come";
}

std::string Parser::TakeConfigFile(const std::vector<std::string>& rest) {
  if (!rest.empty()) return "'" + Printable(rest[0]) + "' after -configfile " + config_name_ + ": the file names all programs";
  if (options_.programs.size() > 1) return "a program before -configfile " + config_name_ + ": the file names all programs";
  if (program() != ProgramOptions{}) return "options of one program before -configfile " + config_name_ + ": they stand there, with their program";
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

}  // namespace

Result<Options, PmiError> ParseOptions(const std::vector<std::string>& words, const EnvironmentReader& get) { return Parser().Parse(words, get); }

Result<std::chrono::seconds, PmiError> ParseTimeOut(const std::string& text) {
  const std::optional<int> seconds = ParseInt(text);
  if (!seconds || *seconds < 0) return PmiError{"'" + Printable(text) + "' is not a number of seconds"};
  return std::chrono::seconds(*seconds);
}

Result<PortRange, PmiError> ParsePortRange(const std::string& text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::optional<int> first = ParseInt(std::string_view(text).substr(0, colon));
  const std::optional<int> last = colon == text.size() ? first : ParseInt(std::string_view(text).substr(colon + 1));
  if (first && last && *first >= 1 && *first <= *last && *last <= 65535) return PortRange{*first, *last};
  return PmiError{"'" + Printable(text) + "' is not a range of TCP ports, such as 20000:20100"};
}

std::string HelpText() {
  std::string text =
      "usage: mpiexec [OPTIONS] PROGRAM [ARGUMENTS...] [: [OPTIONS] PROGRAM [ARGUMENTS...]]...\n\n"
      "Starts the ranks of an MPI job and watches over them.\n\n";
  for (const Parser::Option& option : Parser::kOptions) {
    if (*option.help == '\0') continue;
    std::string names;
    for (const std::string& name : Split(option.names, ',')) names += (names.empty() ? "-" : ", -") + name;
    text += "  " + names + (*option.values == '\0' ? "" : " ") + option.values + "\n        " + option.help + "\n";
  }
  return text +
         "\nExit status: that of the first rank that failed, 128 + N when signal N killed it; 127 when the program is not found, "
         "126 "
         "when it\ncannot be executed, 1 when the job could not be started or mpiexec's output could not be written, 2 for a "
         "wrong "
         "command line;\n255 when it ran for longer than -timeout or MPIEXEC_TIMEOUT (environment) allows.\n";
}

}  // namespace weft::pmi
