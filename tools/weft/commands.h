#ifndef TOOLS_WEFT_COMMANDS_H_
#define TOOLS_WEFT_COMMANDS_H_

#include <string>
#include <vector>

namespace weft::tool {

// The subcommands. Each prints for people, and returns the exit status of `weft`.
inline constexpr int kWrongCommandLine = 2;

// Replaces this process by `command`, with Weft's libraries first. Returns only on failure: 127 if the program is not
// found, 126 if it cannot be executed, 125 if Weft itself is not usable (no libraries, or an invalid setting).
int Run(const std::vector<std::string>& command);

// Prints shell lines that make every later program of that shell run on Weft: eval "$(weft env)".
int Env();

// Prints one block for each device that a program will see.
int Devices();

// Checks the installation, and tells what to do about each failure. Returns 1 if there was one.
int Doctor();

// Prints the table of settings, and the errors in those that are set.
int Settings();
std::string SettingsTable();
// The errors in the WEFT_ variables that are set, including the faults in WEFT_FAULTS; one text for each.
std::vector<std::string> SettingProblems();

// `weft faults`: lists the kinds of faults (--list), or controls those of a running process. `action` is "", "set",
// "clear", "show" or "check".
struct FaultsArguments {
  bool list = false;
  bool manual = false;  // print the list as source of a part of the manual
  std::string pid;
  std::string action;
  std::vector<std::string> specification;  // its words, as split by the shell
};
int Faults(const FaultsArguments& arguments);

// `weft stat`: shows the queue pairs of process `pid`, again every `interval` seconds. Without a pid: the processes
// that have queue pairs.
struct StatArguments {
  std::string pid;
  bool json = false;
  std::string interval;
};
int Stat(const StatArguments& arguments);

// Prints the file that a program gets for the library `soname`. Doctor runs it in a child under `weft run`.
int Which(const std::string& soname);

}  // namespace weft::tool

#endif  // TOOLS_WEFT_COMMANDS_H_
