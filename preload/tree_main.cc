#include <sys/stat.h>
#include <unistd.h>
#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/settings.h"
#include "preload/home.h"
#include "preload/tree.h"
#include "sim/device/device.h"

// weft-paths: makes or brings up to date the tree for this user, network namespace and settings, and prints where it is, or behind a '!' why
// there is none.
// libweft_paths.so runs it in a program's place when the program first looks.
namespace weft::preload {
namespace {

namespace fs = std::filesystem;

// Memory if there is some: the trees are small and of no use after the next boot.
constexpr const char* kPlaces[] = {"/dev/shm", "/tmp"};
// Trees of namespaces and settings that nobody looked at for so long go.
constexpr time_t kUnusedSeconds = 24 * 3600;
// Less than libweft_paths.so has (root.cc).
constexpr std::chrono::seconds kPatience{2};
constexpr char kRefusal = '!';

// What tells trees apart: the network namespace, and the settings that make devices what they are.
std::string Name() {
  struct stat space = {};
  stat("/proc/self/ns/net", &space);
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  const auto add = [&hash](const std::string& text) {
    for (const char c : text + '\n') hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  };
  add(ProcessSettings().persona == Persona::kRoce ? "roce" : "iwarp");
  for (const std::string& device : ProcessSettings().devices) add(device);
  char text[64];
  snprintf(text, sizeof text, "%llx-%016llx", static_cast<unsigned long long>(space.st_ino), static_cast<unsigned long long>(hash));
  return text;
}

void RemoveUnused(const std::string& home) {
  std::error_code error;
  for (auto it = fs::directory_iterator(home, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    struct stat now;
    if (it->path().filename() == kLockName || lstat(it->path().c_str(), &now) != 0 || now.st_mtime > time(nullptr) - kUnusedSeconds) continue;
    std::error_code ignored;
    fs::remove_all(it->path(), ignored);
  }
}

bool IsTree(const std::string& root) {
  struct stat now;
  return lstat((root + "/sys").c_str(), &now) == 0;
}

// The tree in `place`; the error says why there is none.
Result<std::string, Refusal> MakeTree(const std::string& place) {
  const auto home = FindHome(place);
  if (!home.ok()) return home.error();
  const std::string root = *home + "/" + Name();
  std::string error;
  if (!LockHome(*home, kPatience, &error)) {
    if (IsTree(root)) return root;  // as it was when somebody last looked
    return Refusal{error};
  }
  Machine machine;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  machine.host_name = host;
  if (!MakeOwn(root) || !WriteTree(root, sim::ListDevices(), machine)) {
    return Refusal{root + ": " + strerror(errno)};
  }
  utimensat(AT_FDCWD, root.c_str(), nullptr, 0);
  RemoveUnused(*home);
  return root;
}

int Main() {
  if (!ProcessSettingProblems().empty()) return 1;  // the settings have said it
  umask(022);
  std::string problems;
  for (const char* place : kPlaces) {
    const auto root = MakeTree(place);
    if (root.ok()) {
      printf("%s\n", root->c_str());
      return 0;
    }
    problems += (problems.empty() ? "" : "; ") + root.error().reason;
  }
  printf("%c%s\n", kRefusal, problems.c_str());
  return 1;
}

}  // namespace
}  // namespace weft::preload

int main() { return weft::preload::Main(); }
