#include "pmi/launch/user_names.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>

#include "base/hex.h"
#include "pmi/server/names.h"

namespace weft::pmi {
namespace {

// Closes a descriptor, and its lock with it.
struct Descriptor {
  explicit Descriptor(int fd) : fd(fd) {}
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int Release() {
    const int released = fd;
    fd = -1;
    return released;
  }
  int fd;
};

bool IsOwn(const struct stat& status, mode_t kind) {
  return (status.st_mode & S_IFMT) == kind && status.st_uid == geteuid() && (status.st_mode & 077) == 0;
}

// A file of a publisher that has ended; the lock keeps two from removing it, of which the second would remove what came in its place. False: it has one
// that lives.
bool RemoveStale(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat opened {}, there {};
  if (file.fd < 0 || fstat(file.fd, &opened) != 0 || !IsOwn(opened, S_IFREG)) return false;
  if (flock(file.fd, LOCK_EX | LOCK_NB) != 0) return false;
  if (lstat(path.c_str(), &there) != 0 || there.st_ino != opened.st_ino || there.st_dev != opened.st_dev) return true;
  return unlink(path.c_str()) == 0;
}

}  // namespace

std::string UserNames::DirectoryOfUser() {
  const char* const runtime = secure_getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && runtime[0] == '/') return std::string(runtime) + "/weft-names";
  return "/tmp/weft-names-" + std::to_string(geteuid());
}

UserNames::~UserNames() {
  while (!published_.empty()) Unpublish(published_.begin()->first);
}

std::string UserNames::PathOf(const std::string& service) const {
  const std::string name = HexOf({reinterpret_cast<const uint8_t*>(service.data()), service.size()});
  return name.empty() || name.size() > NAME_MAX ? std::string() : directory_ + "/" + name;
}

// One that another user made, or can write to, is not used: the ports in it would be that user's.
bool UserNames::MakeDirectory() const {
  struct stat status {};
  (void)mkdir(directory_.c_str(), 0700);
  return lstat(directory_.c_str(), &status) == 0 && IsOwn(status, S_IFDIR);
}

// It gets its name when it has its lock and all its bytes.
bool UserNames::Publish(const std::string& service, const std::string& port) {
  const std::string path = PathOf(service);
  if (path.empty() || published_.contains(service) || !MakeDirectory()) return false;
  const std::string draft = directory_ + "/." + std::to_string(getpid());
  unlink(draft.c_str());  // of a process that had this number
  Descriptor file(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.fd < 0) return false;
  bool shared = flock(file.fd, LOCK_EX | LOCK_NB) == 0 && write(file.fd, port.data(), port.size()) == static_cast<ssize_t>(port.size());
  if (shared) {
    shared = link(draft.c_str(), path.c_str()) == 0 || (errno == EEXIST && RemoveStale(path) && link(draft.c_str(), path.c_str()) == 0);
  }
  unlink(draft.c_str());
  if (shared) published_.emplace(service, file.Release());
  return shared;
}

void UserNames::Unpublish(const std::string& service) {
  const auto found = published_.find(service);
  if (found == published_.end()) return;
  unlink(PathOf(service).c_str());
  close(found->second);
  published_.erase(found);
  if (published_.empty()) rmdir(directory_.c_str());  // unless others have names there
}

std::optional<std::string> UserNames::Lookup(const std::string& service) const {
  const std::string path = PathOf(service);
  struct stat status {};
  if (path.empty() || lstat(directory_.c_str(), &status) != 0 || !IsOwn(status, S_IFDIR)) return std::nullopt;
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.fd < 0 || fstat(file.fd, &status) != 0 || !IsOwn(status, S_IFREG)) return std::nullopt;
  if (flock(file.fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return std::nullopt;  // nobody holds it
  std::string port(NameService::kLongest + 1, '\0');
  const ssize_t count = read(file.fd, port.data(), port.size());
  if (count <= 0 || static_cast<size_t>(count) > NameService::kLongest) return std::nullopt;
  port.resize(static_cast<size_t>(count));
  return port;
}

}  // namespace weft::pmi
