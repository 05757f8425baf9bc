#include "base/settings.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

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

int Settings() {
  std::printf("%s", SettingsTable().c_str());
  std::vector<std::string> problems;
  weft::Settings::FromEnvironment(&problems);
  for (const std::string& problem : problems) std::fprintf(stderr, "weft settings: %s\n", problem.c_str());
  return problems.empty() ? 0 : 1;
}

}  // namespace weft::tool
