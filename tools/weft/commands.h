#ifndef TOOLS_WEFT_COMMANDS_H_
#define TOOLS_WEFT_COMMANDS_H_

#include <string>
#include <vector>

namespace weft::tool {

// The subcommands. Each prints for a person, and returns the exit status of `weft`.

// Replaces this process by `command` with Weft's libraries in front. Returns only on failure: 127 when the program is
// not found, 126 when it cannot be executed, 125 when Weft itself is not usable (no libraries, a setting misspelt).
int Run(const std::vector<std::string>& command);

// Shell lines that make every later program of that shell run on Weft: eval "$(weft env)".
int Env();

// One block per device that a program will see.
int Devices();

// Checks the installation, says what to do about each failure; 1 when there was one.
int Doctor();

// Prints the table of settings, and what is wrong with those that are set.
int Settings();
std::string SettingsTable();
// What is wrong with the WEFT_ variables that are set, WEFT_FAULTS' words included; a text for each.
std::vector<std::string> SettingProblems();

// `weft faults`: what there is (--list), or what a running process is told. `action` is "", "set", "clear", "show" or "check".
struct FaultsArguments {
  bool list = false;
  bool manual = false;  // the list as the source of a part of the manual
  std::string pid;
  std::string action;
  std::vector<std::string> specification;  // its words; a shell split what was not quoted
};
int Faults(const FaultsArguments& arguments);

// `weft stat`: the queue pairs of process `pid`, looked at again every `interval` seconds; without a pid, which processes have any.
struct StatArguments {
  std::string pid;
  bool json = false;
  std::string interval;
};
int Stat(const StatArguments& arguments);

// Prints which file a program gets when it asks for the library `soname`. Doctor runs it in a child under `weft run`.
int Which(const std::string& soname);

}  // namespace weft::tool

#endif  // TOOLS_WEFT_COMMANDS_H_
