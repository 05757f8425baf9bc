// weft: runs unmodified verbs programs on Weft and looks after the installation. docs/man/weft.1 is its manual.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/version.h"
#include "tools/weft/commands.h"
#include "tools/weft/words.h"

namespace tool = weft::tool;

namespace {

int Refuse(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  return tool::kWrongCommandLine;
}

// Usage lines of the subcommands as the manual writes them.
class Usage : public CLI::Formatter {
 public:
  explicit Usage(std::string line) : line_(std::move(line)) {}
  std::string make_usage(const CLI::App*, std::string) const override { return "Usage: " + line_ + "\n"; }

 private:
  const std::string line_;
};

// A subcommand whose wrong words are ours to name: CLI11 says neither which command it is nor what is near.
CLI::App* Add(CLI::App& app, const std::string& name, const std::string& what, const std::string& usage) {
  CLI::App* command = app.add_subcommand(name, what);
  command->allow_extras();
  command->formatter(std::make_shared<Usage>("weft " + name + usage));
  return command;
}

std::vector<std::string_view> Views(const std::vector<std::string>& words) { return {words.begin(), words.end()}; }

std::vector<std::string> OptionsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

}  // namespace

int main(int argc, char** argv) {
  // CLI11 would take what follows a "--" for arguments of weft itself.
  if (argc > 2 && std::string_view(argv[1]) == "run" && std::string_view(argv[2]) == "--") {
    return tool::Run({argv + 3, argv + argc});
  }
  CLI::App app("Run unmodified RDMA verbs programs on software iWARP.", "weft");
  app.set_version_flag("--version", "weft " + std::string(weft::Version()))->description("Print the version");
  app.get_help_ptr()->description("Print this help");
  app.require_subcommand(0, 1);
  app.allow_extras();
  app.formatter(std::make_shared<Usage>("weft COMMAND [ARGUMENTS...]"));
  app.get_formatter()->label("SUBCOMMANDS", "Commands");

  // Everything behind the program's name is the program's own, whatever it looks like.
  CLI::App* run = Add(app, "run", "Run PROGRAM ARGS... with Weft as its RDMA device", " [--] PROGRAM [ARGS...]");
  run->prefix_command();
  run->footer("Put settings in front: WEFT_TRACE=1 weft run PROGRAM; weft settings lists them.");
  CLI::App* devices = Add(app, "devices", "List the devices that a program will see", "");
  CLI::App* env = Add(app, "env", "Print shell lines to use Weft in this shell: eval \"$(weft env)\"", "");
  CLI::App* doctor = Add(app, "doctor", "Check the installation and say what to do", "");
  env->footer(tool::SettingsTable());
  CLI::App* settings = Add(app, "settings", "List the environment variables that Weft reads", "");
  tool::FaultsArguments wanted;
  CLI::App* faults =
      Add(app, "faults", "Failures on demand: list them, check a specification, change those of a running program",
          " --list | check SPECIFICATION | --pid PID set SPECIFICATION|clear|show");
  faults->add_flag("--list", wanted.list, "List every fault with its keys, what the program sees, and an example");
  faults->add_flag("--manual", wanted.manual, "")->group("");
  faults->add_option("--pid", wanted.pid, "The process: set, clear or show its faults")->type_name("PID");
  faults->add_option("action", wanted.action, "set SPECIFICATION, clear, show; check SPECIFICATION needs no process")
      ->option_text(" ");
  faults->add_option("specification", wanted.specification, "As in WEFT_FAULTS: 'FAULT; FAULT ...' or @FILE")
      ->option_text(" ");
  std::string stat_pid, interval = "1";
  bool json = false;
  CLI::App* stat =
      Add(app, "stat", "Show the queue pairs of a running program", " [PID] [--json] [--interval SECONDS]");
  stat->add_option("pid", stat_pid, "The process; without it, lists the processes that can be asked")->option_text(" ");
  stat->add_flag("--json", json, "One snapshot as JSON");
  stat->add_option("--interval", interval, "Seconds between two updates, 0.01 to 3600 (default 1)")->type_name("SECONDS");
  CLI::App* help = Add(app, "help", "Print this help, or that of a command", " [COMMAND]");
  std::string topic;
  help->add_option("command", topic)->option_text(" ");
  std::string soname;
  CLI::App* which = app.add_subcommand("which", "")->group("");  // hidden: see Which()
  which->add_option("soname", soname)->required();

  app.footer("weft COMMAND --help and man weft say more. First steps: weft devices, then weft run ibv_devices.");
  const std::string overview = app.help();  // afterwards it is the help of the command that was given

  std::vector<std::string> commands = OptionsOf(app);
  for (const CLI::App* command : app.get_subcommands([](CLI::App* c) { return !c->get_group().empty(); })) {
    commands.push_back(command->get_name());
  }
  const auto where = [&] {
    return app.get_subcommands().empty() ? "weft" : "weft " + app.get_subcommands().front()->get_name();
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return Refuse(where() + ": " + error.what() + " (" + where() + " --help)");
  }
  if (!app.remaining().empty()) return Refuse(tool::UnknownCommand(app.remaining(), Views(commands)));
  if (app.get_subcommands().empty()) return Refuse(overview);
  if (*run) return tool::Run(run->remaining());
  CLI::App* command = app.get_subcommands().front();
  if (*help && !topic.empty()) {
    const auto about = app.get_subcommands([&](const CLI::App* c) { return c->get_name() == topic; });
    if (about.empty()) return Refuse(tool::UnknownCommand({topic}, Views(commands)));
    return std::fputs(about.front()->help().c_str(), stdout) < 0;
  }
  if (!command->remaining().empty()) {
    return Refuse(tool::UnknownWord(where(), command->remaining().front(), Views(OptionsOf(*command))));
  }

  if (*help) return std::fputs(overview.c_str(), stdout) < 0;
  if (*devices) return tool::Devices();
  if (*env) return tool::Env();
  if (*doctor) return tool::Doctor();
  if (*settings) return tool::Settings();
  if (*faults) return tool::Faults(wanted);
  if (*stat) return tool::Stat({.pid = stat_pid, .json = json, .interval = interval});
  return tool::Which(soname);
}
