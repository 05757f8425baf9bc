#include "preload/home.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

namespace weft::preload {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kBetweenTries{10};

bool IsOwn(const struct stat& now) { return now.st_uid == geteuid() && (now.st_mode & 022) == 0; }

// Nobody else can rename or remove what is in it.
bool IsSafePlace(const std::string& place) {
  struct stat now;
  if (stat(place.c_str(), &now) != 0 || !S_ISDIR(now.st_mode)) return false;
  const bool others_write = (now.st_mode & 022) != 0;
  if (others_write) return (now.st_mode & S_ISVTX) != 0;
  return now.st_uid == geteuid() || now.st_uid == 0;
}

std::vector<std::string> BySuffix(const std::string& place, const std::string& name) {
  std::vector<std::string> found;
  std::error_code error;
  for (auto it = fs::directory_iterator(place, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string each = it->path().filename().string();
    struct stat now;
    if (each.starts_with(name + ".") && lstat(it->path().c_str(), &now) == 0 && S_ISDIR(now.st_mode) && IsOwn(now)) {
      found.push_back(it->path().string());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

bool MakeOwn(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0) return chmod(path.c_str(), 0755) == 0;
  struct stat now;
  if (errno != EEXIST || lstat(path.c_str(), &now) != 0) return false;
  if (S_ISDIR(now.st_mode) && IsOwn(now)) return true;
  errno = EPERM;  // what it shows is not to be trusted
  return false;
}

Result<std::string, Refusal> FindHome(const std::string& place) {
  if (!IsSafePlace(place)) return Refusal{place + " is not a directory, or other users may replace files in it"};
  const std::string name = "weft-" + std::to_string(geteuid());
  const std::string path = place + "/" + name;
  if (MakeOwn(path)) return path;
  if (errno != EPERM) return Refusal{path + ": " + std::strerror(errno)};
  if (const auto made = BySuffix(place, name); !made.empty()) return made.front();
  std::string unguessable = path + ".XXXXXX";
  if (mkdtemp(unguessable.data()) != nullptr && chmod(unguessable.c_str(), 0755) == 0) return unguessable;
  return Refusal{path + " belongs to another user, and " + unguessable + " cannot be made: " + std::strerror(errno)};
}

bool LockHome(const std::string& home, std::chrono::milliseconds patience, std::string* error) {
  const std::string path = home + "/" + kLockName;
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
  struct stat now;
  if (fd < 0 || fstat(fd, &now) != 0) {
    *error = "cannot open " + path + ": " + std::strerror(errno);
    if (fd >= 0) close(fd);
    return false;
  }
  if (!S_ISREG(now.st_mode) || now.st_uid != geteuid() || (now.st_mode & 077) != 0) {
    *error = path + " does not belong to this user alone; remove it";
    close(fd);
    return false;
  }
  const auto until = std::chrono::steady_clock::now() + patience;
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      *error = "cannot lock " + path + ": " + std::strerror(errno);
      close(fd);
      return false;
    }
    if (std::chrono::steady_clock::now() >= until) {
      *error = "another process of this user holds the lock " + path + " (fuser tells which)";
      close(fd);
      return false;
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
  return true;
}

}  // namespace weft::preload
