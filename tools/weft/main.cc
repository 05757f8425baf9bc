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
  return tool::Which(soname);
}
