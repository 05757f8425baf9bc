#include "preload/tree_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

namespace weft::preload {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kAttribute = 0444;
constexpr mode_t kFolder = 0755;
constexpr mode_t kNode = S_ISVTX | 0666;

bool HasContent(const std::string& path, std::string_view content) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  std::string now(content.size() + 1, '\0');
  const ssize_t length = read(fd, now.data(), now.size());
  close(fd);
  return length == static_cast<ssize_t>(content.size()) && now.compare(0, content.size(), content) == 0;
}

bool MakeFile(const std::string& path, std::string_view content, mode_t mode) {
  unlink(path.c_str());
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) return false;
  const bool done = write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()) && fchmod(fd, mode) == 0;
  close(fd);
  return done;
}

}  // namespace

void TreeWriter::Note(bool done) {
  if (!done && error_ == 0) error_ = errno != 0 ? errno : EIO;
}

std::string TreeWriter::Keep(std::string_view path) {
  if (const size_t slash = path.rfind('/'); slash != path.npos) Directory(path.substr(0, slash));
  wanted_.emplace(path);
  return root_ + "/" + std::string(path);
}

void TreeWriter::Replace(const std::string& aside, const std::string& path) {
  if (rename(aside.c_str(), path.c_str()) == 0) return;
  std::error_code ignored;
  fs::remove_all(path, ignored);  // a directory is in the way
  Note(rename(aside.c_str(), path.c_str()) == 0);
}

void TreeWriter::Directory(std::string_view path) {
  if (wanted_.contains(std::string(path))) return;
  Keep(path);
  const std::string full = root_ + "/" + std::string(path);
  struct stat now;
  if (lstat(full.c_str(), &now) == 0) {
    if (S_ISDIR(now.st_mode)) return;
    unlink(full.c_str());
  }
  Note(mkdir(full.c_str(), kFolder) == 0 && chmod(full.c_str(), kFolder) == 0);
}

void TreeWriter::File(std::string_view path, std::string_view content) {
  const std::string full = Keep(path);
  if (HasContent(full, content)) return;
  const std::string aside = Aside(full);
  if (!MakeFile(aside, content, kAttribute)) return Note(false);
  Replace(aside, full);
}

void TreeWriter::Link(std::string_view path, std::string_view target) {
  const std::string full = Keep(path);
  std::error_code none;
  if (fs::read_symlink(full, none) == fs::path(target) && !none) return;
  const std::string aside = Aside(full);
  unlink(aside.c_str());
  if (symlink(std::string(target).c_str(), aside.c_str()) != 0) return Note(false);
  Replace(aside, full);
}

void TreeWriter::DeviceNode(std::string_view path, dev_t number) {
  const std::string full = Keep(path);
  struct stat now;
  const auto time = static_cast<time_t>(number);
  if (lstat(full.c_str(), &now) == 0 && now.st_mode == (S_IFREG | kNode) && now.st_mtime == time) return;
  const std::string aside = Aside(full);
  const timespec times[2] = {{time, 0}, {time, 0}};
  if (!MakeFile(aside, "", kNode) || utimensat(AT_FDCWD, aside.c_str(), times, 0) != 0) return Note(false);
  Replace(aside, full);
}

void TreeWriter::Finish() {
  std::vector<fs::path> stale;
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(root_, error); !error && it != fs::recursive_directory_iterator();) {
    const std::string path = it->path().string().substr(root_.size() + 1);
    if (!wanted_.contains(path)) {
      stale.push_back(it->path());
      it.disable_recursion_pending();
    }
    it.increment(error);
  }
  for (const fs::path& path : stale) fs::remove_all(path, error);
}

}  // namespace weft::preload
