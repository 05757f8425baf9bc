#ifndef PRELOAD_TREE_WRITER_H_
#define PRELOAD_TREE_WRITER_H_

#include <sys/types.h>

#include <set>
#include <string>
#include <string_view>

namespace weft::preload {

// Makes a directory have the content that is written to it. Files that already have their content are not touched.
// Finish() removes files that were there but were not written again. Paths are relative to the root and do not end in a
// slash. The first error is kept (Failed(), an errno).
class TreeWriter {
 public:
  explicit TreeWriter(std::string root) : root_(std::move(root)) {}

  // Each call makes the parent directories.
  void File(std::string_view path, std::string_view content);
  void Link(std::string_view path, std::string_view target);
  void Directory(std::string_view path);
  void DeviceNode(std::string_view path, dev_t number);

  void Finish();
  int Failed() const { return error_; }

 private:
  std::string Keep(std::string_view path);  // returns the path in the file system; it and its parents are kept
  void Note(bool done);
  // The temporary name, in the same directory, under which `path` is made before it is renamed.
  static std::string Aside(const std::string& path) { return path + ".new"; }
  void Replace(const std::string& aside, const std::string& path);

  const std::string root_;
  std::set<std::string> wanted_;
  int error_ = 0;
};

}  // namespace weft::preload

#endif  // PRELOAD_TREE_WRITER_H_
