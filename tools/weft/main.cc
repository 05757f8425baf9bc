// weft: runs unmodified verbs programs on Weft and looks after the installation. docs/man/weft.1 is its manual.
#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weft/commands.h"

namespace tool = weft::tool;

int main(int argc, char** argv) {
  // CLI11 would take what follows a "--" for arguments of weft itself.
  if (argc > 2 && std::string_view(argv[1]) == "run" && std::string_view(argv[2]) == "--") {
    return tool::Run({argv + 3, argv + argc});
  }
  CLI::App app("Run unmodified RDMA verbs programs on software iWARP.", "weft");
  app.set_version_flag("--version", "weft " WEFT_VERSION);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);

  // Everything behind the program's name is the program's own, whatever it looks like.
  CLI::App* run = app.add_subcommand("run", "Run PROGRAM ARGS... with Weft as its RDMA device");
  run->prefix_command();
  run->footer("Usage: weft run [--] PROGRAM [ARGS...]");
  CLI::App* devices = app.add_subcommand("devices", "List the devices that a program will see");
  CLI::App* env = app.add_subcommand("env", "Print shell lines to use Weft in this shell: eval \"$(weft env)\"");
  CLI::App* doctor = app.add_subcommand("doctor", "Check the installation and say what to do");
  env->footer(tool::SettingsTable());
  CLI::App* settings = app.add_subcommand("settings", "List the environment variables that Weft obeys");
  tool::FaultsArguments wanted;
  CLI::App* faults = app.add_subcommand("faults", "Failures on demand: list them, check a specification, change those of a running program");
  faults->add_flag("--list", wanted.list, "List every fault with its keys, what the program sees, and an example");
  faults->add_flag("--manual", wanted.manual, "")->group("");
  faults->add_option("--pid", wanted.pid, "The process: set, clear or show its faults");
  faults->add_option("action", wanted.action, "set SPECIFICATION, clear, show; check SPECIFICATION needs no process")
      ->check(CLI::IsMember({"set", "clear", "show", "check"}));
  faults->add_option("specification", wanted.specification, "As in WEFT_FAULTS: 'FAULT; FAULT ...' or @FILE");
  int stat_pid = 0;
  bool json = false;
  double interval = 1;
  CLI::App* stat = app.add_subcommand("stat", "Show the queue pairs of a running program");
  stat->add_option("pid", stat_pid, "The process; without it those that can be asked are listed");
  stat->add_flag("--json", json, "One snapshot as JSON");
  stat->add_option("--interval", interval, "Seconds between two looks (1)")->check(CLI::Range(0.01, 3600.0));
  std::string soname;
  CLI::App* which = app.add_subcommand("which", "")->group("");  // hidden: see Which()
  which->add_option("soname", soname)->required();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  if (*run) return tool::Run(run->remaining());
  if (*devices) return tool::Devices();
  if (*env) return tool::Env();
  if (*doctor) return tool::Doctor();
  if (*settings) return tool::Settings();
  if (*faults) return tool::Faults(wanted);
  if (*stat) return tool::Stat(stat_pid, json, interval);
  return tool::Which(soname);
}
