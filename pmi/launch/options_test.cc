#include "pmi/launch/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

namespace weft::pmi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using Inherit = EnvironmentOptions::Inherit;

std::vector<std::string> Words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

Options Parse(const std::string& line) {
  const auto options = ParseOptions(Words(line));
  EXPECT_TRUE(options) << options.error().message;
  return options ? options.value() : Options{};
}

std::string ErrorOf(const std::string& line) {
  const auto options = ParseOptions(Words(line));
  return options ? "parsed" : options.error().message;
}

TEST(MpiexecOptions, NamesANameServersFile) {
  EXPECT_EQ(Parse("-nameserver names ./a").name_file, "names");
  const Options server = Parse("-nameserver-run=names");
  EXPECT_EQ(server.action, Options::Action::kNameServer);
  EXPECT_EQ(server.name_file, "names");
  EXPECT_THAT(ErrorOf("-nameserver"), HasSubstr("-nameserver needs FILE"));
  EXPECT_THAT(ErrorOf("-nameserver= ./a"), HasSubstr("the name of the file is empty"));
}

TEST(MpiexecOptions, ReadsTheUsualLine) {
  const Options options = Parse("-n 4 ./a -n 5 --help");
  ASSERT_EQ(options.programs.size(), 1u);
  EXPECT_EQ(options.programs[0].ranks, 4);
  EXPECT_THAT(options.programs[0].arguments, ElementsAre("./a", "-n", "5", "--help"));
  EXPECT_EQ(options.action, Options::Action::kRun);
}

TEST(MpiexecOptions, OneOrTwoDashesAndEqualsSignsAreTheSame) {
  for (const char* line : {"-np 3 a", "--np 3 a", "-np=3 a", "--n=3 a"}) EXPECT_EQ(Parse(line).programs[0].ranks, 3) << line;
}

TEST(MpiexecOptions, AColonSeparatesPrograms) {
  const Options options = Parse("-l -n 1 -env A 1 a x : -n 2 -wdir /tmp -envnone b : c");
  ASSERT_EQ(options.programs.size(), 3u);
  EXPECT_THAT(options.programs[0].arguments, ElementsAre("a", "x"));
  EXPECT_THAT(options.programs[0].environment.set, ElementsAre(Pair("A", "1")));
  EXPECT_EQ(options.programs[1].directory, "/tmp");
  EXPECT_EQ(options.programs[1].environment.inherit, Inherit::kNone);
  EXPECT_THAT(options.programs[2].arguments, ElementsAre("c"));
  EXPECT_TRUE(options.label);
  EXPECT_THAT(RanksOfPrograms(options), ElementsAre(1, 2, 1));
}

TEST(MpiexecOptions, ReadsEnvironmentOptions) {
  const Options options = Parse("-genv A -5 -genv B x=y -genvlist P,Q -envlist R a");
  EXPECT_THAT(options.environment.set, ElementsAre(Pair("A", "-5"), Pair("B", "x=y")));
  EXPECT_EQ(options.environment.inherit, Inherit::kListed);
  EXPECT_THAT(options.environment.listed, ElementsAre("P", "Q"));
  EXPECT_THAT(options.programs[0].environment.listed, ElementsAre("R"));
  EXPECT_EQ(Parse("-genvnone a").environment.inherit, Inherit::kNone);
  EXPECT_EQ(Parse("-genvall a").environment.inherit, Inherit::kAll);
}

TEST(MpiexecOptions, WithoutACountThereIsRoomForAsManyAsHostsTake) {
  EXPECT_THAT(RanksOfPrograms(Parse("a")), ElementsAre(1));
  EXPECT_THAT(RanksOfPrograms(Parse("-hosts x:2,y a")), ElementsAre(3));
  EXPECT_THAT(RanksOfPrograms(Parse("-hosts x:2,y -ppn 4 a")), ElementsAre(8));
  EXPECT_THAT(HostEntries(Parse("-hosts x:2,y -ppn 4 a")), ElementsAre(HostSlots{"x", 4}, HostSlots{"y", 4}));
  EXPECT_THAT(HostEntries(Parse("a")), ElementsAre(HostSlots{"localhost", 1}));
}

TEST(MpiexecOptions, ReadsAHostFile) {
  const std::string name = ::testing::TempDir() + "/hosts";
  std::ofstream(name) << "x:2\ny\n";
  EXPECT_THAT(Parse("-f " + name + " a").hosts, ElementsAre(HostSlots{"x", 2}, HostSlots{"y", 1}));
  EXPECT_THAT(ErrorOf("-f /nonexistent/hosts a"), HasSubstr("-f: cannot read the host file /nonexistent/hosts: No such file"));
  EXPECT_THAT(ErrorOf("-hosts a -f " + name + " a"), HasSubstr("given already"));
  EXPECT_THAT(ErrorOf("-f /dev/zero a"), HasSubstr("-f: cannot read the host file /dev/zero: it is a device, not a file"));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "z:3\n", 4), 4);
  close(ends[1]);
  EXPECT_THAT(Parse("-f /dev/fd/" + std::to_string(ends[0]) + " a").hosts, ElementsAre(HostSlots{"z", 3}));
  close(ends[0]);
  std::remove(name.c_str());
}

TEST(MpiexecOptions, AConfigFilesLinesAreProgramsWithColonsBetween) {
  const std::string name = ::testing::TempDir() + "/jobs";
  const auto write = [&](const std::string& text) { std::ofstream(name) << text; };
  const std::string option = "-l -configfile " + name;
  write("-n 1 -env A 1 a 'x y'\n# workers\n-n 2 -wdir /tmp b : c\n");
  const Options options = Parse(option);
  ASSERT_EQ(options.programs.size(), 3u);
  EXPECT_THAT(options.programs[0].arguments, ElementsAre("a", "x y"));
  EXPECT_THAT(options.programs[0].environment.set, ElementsAre(Pair("A", "1")));
  EXPECT_EQ(options.programs[1].directory, "/tmp");
  EXPECT_THAT(options.programs[2].arguments, ElementsAre("c"));
  EXPECT_TRUE(options.label);

  EXPECT_EQ(ErrorOf(option + " d"), "'d' after -configfile " + name + ": the file names all programs");
  EXPECT_EQ(ErrorOf(option + " : d"), "':' after -configfile " + name + ": the file names all programs");
  EXPECT_EQ(ErrorOf("d : " + option), "a program before -configfile " + name + ": the file names all programs");
  EXPECT_THAT(ErrorOf("-n 2 " + option), HasSubstr("options of one program before -configfile"));
  EXPECT_THAT(ErrorOf(option + "-not-there"), HasSubstr("-configfile: cannot read " + name + "-not-there: No such file"));
  write("a\n\n-n x b\n");
  EXPECT_THAT(ErrorOf(option), HasSubstr(name + ", line 3: -n: 'x' is not a number of ranks"));
  write("a\n-n 2\n");
  EXPECT_EQ(ErrorOf(option), name + ", line 2: no program after '2'");
  write("-configfile " + name + " a\n");
  EXPECT_EQ(ErrorOf(option), name + ", line 1: -configfile: it was given already: " + name);
  write("a\nb '\n");
  EXPECT_EQ(ErrorOf(option), "-configfile: " + name + ", line 2: a quote ' is not closed on its line");
  std::remove(name.c_str());
}

TEST(MpiexecOptions, NamesFilesForOutput) {
  const Options options = Parse("-outfile-pattern=o.%r -errfile-pattern /dev/null a");
  EXPECT_EQ(options.output_pattern, "o.%r");
  EXPECT_EQ(options.error_output_pattern, "/dev/null");
  EXPECT_THAT(ErrorOf("-outfile-pattern o.%x a"), HasSubstr("-outfile-pattern: '%x' is unknown; %r is the rank"));
  EXPECT_THAT(ErrorOf("-errfile-pattern= a"), HasSubstr("-errfile-pattern: the name of the file is empty"));
}

TEST(MpiexecOptions, BindsRanks) {
  const Options options = Parse("-bind-to core:2 -map-by=socket a");
  EXPECT_EQ(options.bind_to, "core:2");
  EXPECT_EQ(options.map_by, "socket");
  EXPECT_THAT(options.notes, IsEmpty());
  EXPECT_EQ(Parse("-bind-to core -bind-to none a").bind_to, "");
  EXPECT_THAT(Parse("-map-by core a").notes, ElementsAre("-map-by core has no effect without -bind-to"));
  EXPECT_THAT(Parse("-map-by core -bind-to user:0 a").notes, ElementsAre("-map-by core has no effect where -bind-to lists CPUs"));
  EXPECT_THAT(ErrorOf("-bind-to cores a"), HasSubstr("-bind-to: 'cores' is not one of none, user:LIST, core,"));
  EXPECT_THAT(ErrorOf("-map-by= a"), HasSubstr("-map-by: the value is empty"));
}

TEST(MpiexecOptions, TwoDashesEndTheOptions) {
  EXPECT_THAT(Parse("-n 2 -- -strange name").programs[0].arguments, ElementsAre("-strange", "name"));
}

TEST(MpiexecOptions, HelpAndVersionNeedNothingElse) {
  for (const char* word : {"-h", "-help", "--help"}) EXPECT_EQ(Parse(word).action, Options::Action::kHelp);
  for (const char* word : {"-version", "--version", "-V"}) EXPECT_EQ(Parse(word).action, Options::Action::kVersion);
  for (const char* option : {"-n, -np COUNT", "-hosts", "-genv NAME VALUE", "-l, "}) EXPECT_THAT(HelpText(), HasSubstr(option));
}

TEST(MpiexecOptions, SaysWhatIsIgnored) {
  EXPECT_THAT(Parse("-membind bind:0 -n 1 a").notes, ElementsAre("-membind has no effect here"));
  EXPECT_THAT(Parse("-n 1 a").notes, IsEmpty());
}

TEST(MpiexecOptions, NamesWhatIsWrong) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("no program given"));
  EXPECT_THAT(ErrorOf("-n 4"), HasSubstr("no program after '4'"));
  EXPECT_THAT(ErrorOf("-n 1 a :"), HasSubstr("no program after ':'"));
  EXPECT_THAT(ErrorOf(": a"), HasSubstr("no program"));
  EXPECT_THAT(ErrorOf("-n 0 a"), HasSubstr("-n: '0' is not a number of ranks from 1 to 65536"));
  EXPECT_THAT(ErrorOf("-n -1 a"), HasSubstr("'-1'"));
  EXPECT_THAT(ErrorOf("-np 4x a"), HasSubstr("-np: '4x'"));
  EXPECT_THAT(ErrorOf("-n 99999999999 a"), HasSubstr("'99999999999'"));
  EXPECT_THAT(ErrorOf("-n 65536 a : -n 1 b"), HasSubstr("65537 ranks are more than 65536"));
  EXPECT_THAT(ErrorOf("-n"), HasSubstr("-n needs COUNT"));
  EXPECT_THAT(ErrorOf("-genv A"), HasSubstr("-genv needs NAME VALUE"));
  EXPECT_THAT(ErrorOf("-genv A=1 ./a b"), HasSubstr("'A=1' is not the name of an environment variable"));
  EXPECT_THAT(ErrorOf("-frobnicate a"), HasSubstr("unknown option -frobnicate; mpiexec -help"));
  EXPECT_THAT(ErrorOf("--hlep"), HasSubstr("unknown option --hlep; did you mean -help?"));
  EXPECT_THAT(ErrorOf("-hostfiel a b"), HasSubstr("did you mean -hostfile?"));
  EXPECT_THAT(ErrorOf("-l=yes a"), HasSubstr("-l takes no value"));
  EXPECT_THAT(ErrorOf("-hosts a:b x"), HasSubstr("-hosts: the host 'a:b' has 'b'"));
  EXPECT_THAT(ErrorOf("-launcher lsf a"), HasSubstr("'lsf' is not supported"));
  EXPECT_THAT(ErrorOf("-rmk pbs a"), HasSubstr("-rmk: 'pbs' is not supported; it can be slurm"));
  EXPECT_THAT(ErrorOf("-branches 0 a"), HasSubstr("'0' is not a number of proxies"));
  EXPECT_THAT(ErrorOf("-output-from -1 a"), HasSubstr("'-1' is not a rank"));
  EXPECT_THAT(ErrorOf("-prepend-pattern %x a"), HasSubstr("'%x' is unknown"));
}

TEST(Options, SaysHowProgramsOnOtherHostsAreStarted) {
  const auto parse = [](std::vector<std::string> words) {
    words.push_back("a");
    return ParseOptions(words).value();
  };
  EXPECT_EQ(parse({}).launcher, std::nullopt);
  EXPECT_TRUE(parse({}).takes_allocation);
  EXPECT_EQ(parse({"-launcher", "ssh"}).launcher, RemoteShell::Ssh());
  EXPECT_EQ(parse({"-launcher", "slurm"}).launcher, RemoteShell::Slurm());
  EXPECT_EQ(parse({"-launcher-exec", "rsh"}).launcher, RemoteShell::Program("rsh"));
  EXPECT_FALSE(parse({"-launcher", "fork"}).takes_allocation);
  EXPECT_FALSE(parse({"-rmk", "user"}).takes_allocation);
  EXPECT_FALSE(parse({"-rmk", "user", "-launcher", "ssh"}).takes_allocation);
  EXPECT_EQ(parse({"-launcher", "rsh"}).launcher, RemoteShell::Program("rsh"));
  EXPECT_EQ(parse({"-launcher", "slurm", "-launcher-exec", "/opt/srun"}).launcher->CommandFor("h", "/m").front(), "/opt/srun");
  EXPECT_EQ(parse({"-launcher", "slurm", "-launcher-exec", "/opt/srun"}).launcher->kind, RemoteShell::Kind::kSlurm);
}

// What `variables` and the line say together.
Result<Options, PmiError> ParseWith(const std::map<std::string, std::string>& variables, const std::string& line) {
  return ParseOptions(Words(line), [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Options, VariablesSayWhatTheCommandLineDoesNot) {
  const std::string name = ::testing::TempDir() + "/hosts";
  std::ofstream(name) << "x:2\ny\n";
  const std::map<std::string, std::string> all = {{"HYDRA_HOST_FILE", name},       {"HYDRA_LAUNCHER", "slurm"},           {"HYDRA_LAUNCHER_EXEC", "/opt/srun"},
                                                  {"HYDRA_IFACE", "eth1"},         {"HYDRA_BINDING", "core"},             {"HYDRA_MAPPING", "socket"},
                                                  {"HYDRA_RMK", "user"},           {"HYDRA_LAUNCHER_EXTRA_ARGS", "-p  2222"}, {"MPIEXEC_TIMEOUT", "9"},
                                                  {"MPIEXEC_PORT_RANGE", "70:80"}, {"MPIEXEC_UNIVERSE_SIZE", "12"},       {"MPIEXEC_PREFIX_DEFAULT", "1"},
                                                  {"WEFT_PMI_NAMESERVER", "names"}};
  const Options from = ParseWith(all, "a").value();
  EXPECT_THAT(from.hosts, ElementsAre(HostSlots{"x", 2}, HostSlots{"y", 1}));
  EXPECT_EQ(from.launcher->program, "/opt/srun");
  EXPECT_EQ(from.launcher->kind, RemoteShell::Kind::kSlurm);
  EXPECT_THAT(from.launcher_arguments, ElementsAre("-p", "2222"));
  EXPECT_FALSE(from.takes_allocation);
  EXPECT_EQ(from.interface, "eth1");
  EXPECT_EQ(from.bind_to, "core");
  EXPECT_EQ(from.map_by, "socket");
  EXPECT_EQ(from.time_out, std::chrono::seconds(9));
  EXPECT_EQ(from.ports, (PortRange{70, 80}));
  EXPECT_EQ(from.universe_size, 12);
  EXPECT_TRUE(from.label);
  EXPECT_EQ(from.name_file, "names");

  const Options over = ParseWith(all, "-hosts z -launcher ssh -iface lo -bind-to none -timeout 0 -usize 5 -nameserver n a").value();
  EXPECT_THAT(over.hosts, ElementsAre(HostSlots{"z", 1}));
  EXPECT_EQ(over.launcher, RemoteShell::Ssh());
  EXPECT_EQ(over.interface, "lo");
  EXPECT_EQ(over.bind_to, "");
  EXPECT_EQ(over.time_out, std::chrono::seconds(0));
  EXPECT_EQ(over.universe_size, 5);
  EXPECT_EQ(over.name_file, "n");
  std::remove(name.c_str());
}

TEST(Options, OfTwoNamesForOneVariableTheNewerCounts) {
  EXPECT_EQ(ParseWith({{"HYDRA_BOOTSTRAP", "slurm"}, {"HYDRA_LAUNCHER", "ssh"}}, "a")->launcher, RemoteShell::Ssh());
  EXPECT_EQ(ParseWith({{"HYDRA_BOOTSTRAP", "slurm"}}, "a")->launcher, RemoteShell::Slurm());
  EXPECT_EQ(ParseWith({{"MPIEXEC_PORTRANGE", "1:2"}, {"MPIEXEC_PORT_RANGE", "3:4"}}, "a")->ports, (PortRange{3, 4}));
  EXPECT_EQ(ParseWith({{"MPIEXEC_PORTRANGE", "1:2"}, {"MPIEXEC_PORT_RANGE", ""}}, "a")->ports, (PortRange{1, 2}));
}

TEST(Options, AVariableThatIsWrongIsNamedWhereItCounts) {
  const auto error = [](const char* name, const char* value, const char* line = "a") {
    const auto options = ParseWith({{name, value}}, line);
    return options ? "parsed" : options.error().message;
  };
  EXPECT_EQ(error("MPIEXEC_TIMEOUT", "soon"), "MPIEXEC_TIMEOUT: 'soon' is not a number of seconds");
  EXPECT_THAT(error("HYDRA_BINDING", "cores"), HasSubstr("HYDRA_BINDING: 'cores' is not one of"));
  EXPECT_THAT(error("HYDRA_LAUNCHER", "lsf"), HasSubstr("HYDRA_LAUNCHER: 'lsf' is not supported"));
  EXPECT_THAT(error("HYDRA_HOST_FILE", "/nonexistent/h"), HasSubstr("HYDRA_HOST_FILE: cannot read the host file /nonexistent/h"));
  EXPECT_EQ(error("HYDRA_HOST_FILE", "/nonexistent/h", "-hosts x a"), "parsed") << "it is not needed";
  EXPECT_EQ(error("MPIEXEC_TIMEOUT", "soon", "-help"), "parsed");
  for (const char* range : {"x", "0:5", "5:4", "1:65536", ":", "5:", "-1:3"}) {
    EXPECT_THAT(error("MPIEXEC_PORT_RANGE", range), HasSubstr("is not a range of TCP ports")) << range;
  }
}

TEST(Options, TheUniverseIsWhatHostsHaveRoomFor) {
  EXPECT_EQ(UniverseSize(Parse("-n 2 a")), -1);
  EXPECT_EQ(UniverseSize(Parse("-n 2 -usize 3 a")), 3);
  EXPECT_EQ(UniverseSize(Parse("-n 2 -hosts x:3,y:4 -usize SYSTEM a")), 7);
  EXPECT_EQ(UniverseSize(Parse("-n 2 -hosts x:3,y:4 -ppn 5 -usize SYSTEM a")), 10);
  EXPECT_EQ(UniverseSize(Parse("-n 9 -hosts x -usize SYSTEM a")), 9);
  EXPECT_EQ(UniverseSize(Parse("-n 2 -usize INFINITE a")), -1);
}

TEST(Options, ReadsWhatHydraHasMoreOf) {
  const Options options = Parse("-machinelist x,y -outfile o.%r -print-all-exitcodes -output-from 1 -prepend-pattern <%r> -skip-launch-node -branches 3 -profile a");
  EXPECT_THAT(options.hosts, ElementsAre(HostSlots{"x", 1}, HostSlots{"y", 1}));
  EXPECT_EQ(options.output_pattern, "o.%r");
  EXPECT_TRUE(options.shows_exit_statuses && options.skips_this_host && options.shows_messages);
  EXPECT_EQ(options.output_from, 1);
  EXPECT_EQ(options.label_pattern, "<%r>");
  EXPECT_EQ(options.most_branches, 3u);
  EXPECT_FALSE(options.goes_on);
  EXPECT_TRUE(Parse("-disable-auto-cleanup a").goes_on);
  EXPECT_FALSE(Parse("-disable-auto-cleanup -enable-auto-cleanup a").goes_on);
}

TEST(Options, AnAllocationMayHaveRoomForTooManyRanks) {
  Options options = ParseOptions({"a"}).value();
  EXPECT_EQ(TooManyRanks(options), "");
  options.hosts.assign(1000, {"host", 128});
  EXPECT_EQ(TooManyRanks(options), "128000 ranks are more than 65536; -n sets the number of ranks");
}

TEST(Options, TimeOutIsANumberOfSeconds) {
  EXPECT_EQ(ParseTimeOut("90").value(), std::chrono::seconds(90));
  EXPECT_EQ(Parse("-timeout 5 a").time_out, std::chrono::seconds(5));
  EXPECT_EQ(Parse("-timeout 0 a").time_out, std::chrono::seconds(0));
  EXPECT_EQ(Parse("a").time_out, std::nullopt);
  EXPECT_THAT(ErrorOf("-timeout soon a"), HasSubstr("-timeout: 'soon' is not a number of seconds"));
  for (const char* wrong : {"", "abc", "-1", "1.5", "99999999999"}) {
    const auto parsed = ParseTimeOut(wrong);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_NE(parsed.error().message.find(wrong), std::string::npos);
  }
}

}  // namespace
}  // namespace weft::pmi
