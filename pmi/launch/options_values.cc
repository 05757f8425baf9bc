// What the options of mpiexec do with their values.
#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>

#include "pmi/launch/binding_request.h"
#include "pmi/launch/config_file.h"
#include "pmi/launch/file_pattern.h"
#include "pmi/launch/host_file.h"
#include "pmi/launch/options_parser.h"
#include "pmi/wire/message.h"

namespace weft::pmi {

using Parser = OptionParser;
using Values = Parser::Values;

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
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
  if (!options_.hosts.empty()) return "the hosts were given already: use -hosts or -f once, before the first program";
  options_.hosts = hosts.value();
  return {};
}

std::string Parser::HostFile(const Values& values) {
  return AddHosts(ReadHostFile(values[0], Accepts::kFilesOrPipes));
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
    return "'" + Printable(name) + "' is not supported; programs on other hosts are started by ssh, rsh, slurm or the program of -launcher-exec";
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
    return "'" + Printable(values[0]) + "' is not supported; it can be slurm, or user with the hosts of -hosts or -f";
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
  return options_.secured || values[0] == "POSIX" ? "" : "'" + Printable(values[0]) + "' is unknown; it can be POSIX or OpenSSL";
}

std::string Parser::ConfigFile(const Values& values) {
  if (!config_name_.empty()) return "it was given already: " + config_name_;
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

}  // namespace weft::pmi
