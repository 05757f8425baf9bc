#ifndef PMI_LAUNCH_OUTPUT_FILES_H_
#define PMI_LAUNCH_OUTPUT_FILES_H_

#include <cstddef>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "pmi/launch/output.h"

namespace weft::pmi {

// The files for the ranks' output. Several ranks may write lines to one file. Each file belongs to this object from its
// first use on. A file is created or truncated at its first bytes, so that ranks without output have no file. Only few
// files are open at a time: when another is needed, the one that was not written for longest is closed, and continued
// later. Writes wait for the disk.
class OutputFiles {
 public:
  enum Stream { kOutput, kErrorOutput };    // both may use the same file
  static constexpr size_t kMostOpen = 256;  // descriptors

  // `label`: as for OutputMerger.
  explicit OutputFiles(OutputMerger::Label label, size_t most_open = kMostOpen) : label_(std::move(label)), most_open_(most_open) {}
  explicit OutputFiles(bool label, size_t most_open = kMostOpen) : OutputFiles(label ? OutputMerger::RankLabel : OutputMerger::Label(), most_open) {}
  ~OutputFiles();
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;

  // Adds output of the writer for the file `name`. Returns why it cannot be written, with its name, or empty. A file
  // that failed is not written any more, and is reported once.
  std::string Add(const std::string& name, Stream stream, Writer writer, std::string_view bytes);
  // The writer writes no more. A file that exists from an earlier run and that was not written in this one is removed.
  std::string Finish(const std::string& name, Stream stream, Writer writer);

 private:
  struct File;
  using Entry = std::pair<const std::string, File>;  // of files_
  struct File {
    explicit File(const OutputMerger::Label& label) : mergers{OutputMerger(label), OutputMerger(label)} {}
    OutputMerger mergers[2];  // by Stream
    int fd = -1;
    std::list<Entry*>::iterator place;  // in open_, if fd is open
    bool written = false;               // by this object
    bool failed = false;
  };

  Entry& Find(const std::string& name);
  // These return a description of the error, or empty.
  std::string Flush(Entry& entry, Stream stream);
  std::string Open(Entry& entry);
  std::string Close(Entry& entry);
  static std::string Fail(Entry& entry, int error);

  const OutputMerger::Label label_;
  const size_t most_open_;
  std::map<std::string, File> files_;
  std::list<Entry*> open_;  // the most recently used is last
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_OUTPUT_FILES_H_
