#ifndef PMI_LAUNCH_OPTIONS_PARSER_H_
#define PMI_LAUNCH_OPTIONS_PARSER_H_

#include <string>
#include <vector>

#include "base/result.h"
#include "pmi/launch/config_file.h"
#include "pmi/launch/options.h"

namespace weft::pmi {

// The parts of `text` between separators. Empty text has no parts.
std::vector<std::string> Split(const std::string& text, char separator);

// How options.cc parses a command line by its table of options; options_values.cc handles their values. CLI11 supports
// neither options of one dash and several letters nor options with two values; therefore this is our own parser.
class OptionParser {
 public:
  using Values = std::vector<std::string>;  // the words that follow an option

  Result<Options, PmiError> Parse(const std::vector<std::string>& words, const EnvironmentReader& get);

  struct Option {
    const char* names;                                       // "n,np": help shows the first
    const char* values;                                      // "NAME VALUE"; "[PORT]": an optional number
    const char* help;                                        // empty: accepted but not shown
    std::string (OptionParser::*set)(const Values& values);  // returns why the values are wrong, or empty
  };
  static const Option kOptions[];

  struct Variable {
    const char* name;
    std::string (OptionParser::*set)(const Values& values);
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
  std::string GoOn(const Values&) { return Set(&options_.goes_on); }
  std::string CleanUp(const Values&) {
    options_.goes_on = false;
    return {};
  }
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
  // Consumes the option at words[at] and its values. Returns why it is wrong, or empty.
  std::string TakeOption(const std::vector<std::string>& words, size_t* at);
  std::string TakeProgram(const std::vector<std::string>& words, size_t* at);
  // Parses programs, separated by colons, to the end of `words`, or up to -help and similar options.
  std::string TakePrograms(const std::vector<std::string>& words);
  // Checks that the command line has what -kvs-server needs, and nothing else. `rest`: the words behind the options.
  std::string CheckKvsServer(const std::vector<std::string>& rest);
  // Applies the environment variables. Returns why a value is wrong, or empty.
  std::string TakeVariables(const EnvironmentReader& get);
  // Parses the programs of -configfile. `rest` of the command line follows them.
  std::string TakeConfigFile(const std::vector<std::string>& rest);

  Options options_;
  std::string default_host_file_;  // HYDRA_HOST_FILE
  bool forks_ = false;             // -launcher fork
  bool names_hosts_ = false;       // -rmk user
  std::string config_name_;  // -configfile; empty: there is none
  std::vector<ConfigLine> config_;
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_OPTIONS_PARSER_H_
