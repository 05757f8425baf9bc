#ifndef PRELOAD_TREE_WRITER_H_
#define PRELOAD_TREE_WRITER_H_

#include <sys/types.h>

#include <set>
#include <string>
#include <string_view>

namespace weft::preload {

// Brings a directory to a described content: what is written stays as it is when it is so already, and what was there and was not
// written again goes with Finish(). Paths are relative to the root and end in no slash. The first error stays (Failed(), an errno).
class TreeWriter {
 public:
  explicit TreeWriter(std::string root) : root_(std::move(root)) {}

  // Each makes the directories above.
  void File(std::string_view path, std::string_view content);
  void Link(std::string_view path, std::string_view target);
  void Directory(std::string_view path);
  void DeviceNode(std::string_view path, dev_t number);

  void Finish();
  int Failed() const { return error_; }

 private:
  std::string Keep(std::string_view path);  // the path in the file system; it and what is above it are wanted
  void Note(bool done);
  // A name in the same directory under which `path` is made before it takes its place.
  static std::string Aside(const std::string& path) { return path + ".new"; }
  void Replace(const std::string& aside, const std::string& path);

  const std::string root_;
  std::set<std::string> wanted_;
  int error_ = 0;
};

}  // namespace weft::preload

#endif  // PRELOAD_TREE_WRITER_H_
