#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/settings.h"
#include "preload/tree.h"
#include "sim/device.h"

// weft-paths: makes or brings up to date the tree for this user, network namespace and settings, and prints where it is.
// libweft_paths.so runs it in a program's place when the program first looks.
namespace weft::preload {
namespace {

namespace fs = std::filesystem;

// Memory if there is some: the trees are small and of no use after the next boot.
constexpr const char* kPlaces[] = {"/dev/shm", "/tmp"};
// Trees of namespaces and settings that nobody looked at for so long go.
constexpr time_t kUnusedSeconds = 24 * 3600;

// A directory that only this user writes and everybody reads: a program may give up its privileges later.
bool MakeOwn(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0) return chmod(path.c_str(), 0755) == 0;
  struct stat now;
  if (errno != EEXIST || lstat(path.c_str(), &now) != 0) return false;
  if (!S_ISDIR(now.st_mode) || now.st_uid != geteuid() || (now.st_mode & 022) != 0) {
    errno = EPERM;  // somebody else's: what it shows is not to be trusted
    return false;
  }
  return true;
}

std::string Home() {
  for (const char* place : kPlaces) {
    const std::string path = std::string(place) + "/weft-" + std::to_string(geteuid());
    if (MakeOwn(path)) return path;
  }
  return "";
}

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
    if (lstat(it->path().c_str(), &now) != 0 || now.st_mtime > time(nullptr) - kUnusedSeconds) continue;
    std::error_code ignored;
    fs::remove_all(it->path(), ignored);
  }
}

int Fail(const char* what, const std::string& path) {
  fprintf(stderr, "weft-paths: %s %s: %s\n", what, path.c_str(), strerror(errno));
  return 1;
}

int Main() {
  if (!ProcessSettingProblems().empty()) return 1;  // the settings have said it
  umask(022);
  const std::string home = Home();
  if (home.empty()) return Fail("cannot use", std::string(kPlaces[0]) + " or " + kPlaces[1]);
  const int lock = open(home.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0 || flock(lock, LOCK_EX) != 0) return Fail("cannot lock", home);
  const std::string root = home + "/" + Name();
  if (!MakeOwn(root)) return Fail("cannot make", root);

  Machine machine;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  machine.host_name = host;
  if (!WriteTree(root, sim::ListDevices(), machine)) return Fail("cannot write", root);
  utimensat(AT_FDCWD, root.c_str(), nullptr, 0);
  RemoveUnused(home);
  printf("%s\n", root.c_str());
  return 0;
}

}  // namespace
}  // namespace weft::preload

int main() { return weft::preload::Main(); }
