#include <cstdio>
#include <string>

#include "tools/weft/commands.h"
#include "tools/weft/libraries.h"
#include "tools/weft/verbs_api.h"

namespace weft::tool {

int Devices() {
  const std::vector<std::string> problems = SettingProblems();
  for (const std::string& problem : problems) std::fprintf(stderr, "weft devices: %s\n", problem.c_str());
  if (!problems.empty()) {
    std::fprintf(stderr, "weft devices: no devices until this is corrected; weft settings lists the settings\n");
    return 1;
  }
  std::string error;
  const Library library(LibraryFolder() + "/libibverbs.so.1", &error);
  if (!library) {
    std::fprintf(stderr, "weft devices: %s\nRun 'weft doctor'.\n", error.c_str());
    return 1;
  }
  const auto views = ListDevices(library, &error);
  if (!error.empty()) std::fprintf(stderr, "weft devices: %s\n", error.c_str());
  if (views.empty()) {
    std::fprintf(stderr, "weft devices: no devices: %s\n", WhyNoDevice().c_str());
    return 1;
  }
  std::printf("%-16s %-10s %-8s %6s  %s\n", "DEVICE", "TRANSPORT", "STATE", "MTU", "ADDRESSES (GID index: address)");
  for (const DeviceView& view : views) {
    std::printf("%-16s %-10s %-8s %6d ", view.name.c_str(), view.transport.c_str(), view.state.c_str(), view.mtu_bytes);
    for (std::size_t i = 0; i < view.gids.size(); ++i) std::printf(" %zu: %s", i, view.gids[i].c_str());
    std::printf("\n");
  }
  return error.empty() ? 0 : 1;
}

int Which(const std::string& soname) {
  std::string error;
  const Library library(soname, &error);
  if (!library) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return 1;
  }
  std::printf("%s\n", library.Path().c_str());
  return 0;
}

}  // namespace weft::tool
