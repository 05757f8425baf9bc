#include "base/settings.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "faults/plan.h"
#include "tools/weft/commands.h"

namespace weft::tool {

std::string SettingsTable() {
  std::string table = "Settings, from the environment:\n";
  for (const SettingInfo& setting : AllSettings()) {
    table += std::string("  ") + setting.name + "=" + setting.values + "  (default: " + setting.initial + ")\n";
    table += std::string("      ") + setting.help + "\n";
    if (const char* now = std::getenv(setting.name)) table += std::string("      Now set to: ") + now + "\n";
  }
  return table;
}

std::vector<std::string> SettingProblems() {
  std::vector<std::string> problems;
  weft::Settings::FromEnvironment(&problems);
  if (const char* specification = std::getenv("WEFT_FAULTS")) {
    if (const auto plan = faults::ParseSetting(specification); !plan.ok()) problems.push_back(plan.error());
  }
  return problems;
}

int Settings() {
  std::printf("%s", SettingsTable().c_str());
  std::fflush(stdout);
  const std::vector<std::string> problems = SettingProblems();
  for (const std::string& problem : problems) std::fprintf(stderr, "weft settings: %s\n", problem.c_str());
  return problems.empty() ? 0 : 1;
}

}  // namespace weft::tool
