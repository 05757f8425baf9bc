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

// The files that ranks' output goes to, several ranks' lines to one file too, each file owned from its first use on. A
// file is created, or emptied, when the first bytes for it come, so that ranks that write nothing have none. However
// many there are, few are open: the one that was written longest ago makes room, and is continued later. Writes wait
// for the disk.
class OutputFiles {
 public:
  enum Stream { kOutput, kErrorOutput };    // both may go to one file
  static constexpr size_t kMostOpen = 256;  // descriptors

  // `label`: as OutputMerger has it.
  explicit OutputFiles(OutputMerger::Label label, size_t most_open = kMostOpen) : label_(std::move(label)), most_open_(most_open) {}
  explicit OutputFiles(bool label, size_t most_open = kMostOpen) : OutputFiles(label ? OutputMerger::RankLabel : OutputMerger::Label(), most_open) {}
  ~OutputFiles();
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;

  // What the writer wrote, for the file `name`. Why it cannot be written, with its name, or empty; a file that failed
  // is left alone from then on, and said once.
  std::string Add(const std::string& name, Stream stream, Writer writer, std::string_view bytes);
  // The writer writes no more. What an earlier run left in a file that nobody has written to is removed: it is not of
  // this one.
  std::string Finish(const std::string& name, Stream stream, Writer writer);

 private:
  struct File;
  using Entry = std::pair<const std::string, File>;  // of files_
  struct File {
    explicit File(const OutputMerger::Label& label) : mergers{OutputMerger(label), OutputMerger(label)} {}
    OutputMerger mergers[2];  // by Stream
    int fd = -1;
    std::list<Entry*>::iterator place;  // in open_, where fd is
    bool written = false;               // by this object
    bool failed = false;
  };

  Entry& Find(const std::string& name);
  // These return why it cannot be done, or empty.
  std::string Flush(Entry& entry, Stream stream);
  std::string Open(Entry& entry);
  std::string Close(Entry& entry);
  static std::string Fail(Entry& entry, int error);

  const OutputMerger::Label label_;
  const size_t most_open_;
  std::map<std::string, File> files_;
  std::list<Entry*> open_;  // what was used last is last
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_OUTPUT_FILES_H_
