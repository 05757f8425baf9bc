#include "pmi/launch/output_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file_limit.h"

namespace weft::pmi {
namespace {

std::string Problem(const std::string& name, int error) {
  const std::string why = error == ENXIO || error == ESPIPE ? "neither a file nor a device"
                          : IsShortage(error)               ? DescribeShortage(error)
                                                            : std::strerror(error);
  return "cannot write the ranks' output to " + name + ": " + why;
}

// For writing at the end. `flags`: O_CREAT and O_TRUNC, or less. The descriptor, or -errno. Pipes are refused: nobody
// might read them, and a write would wait for ever.
int OpenForWriting(const std::string& name, int flags) {
  const int fd = open(name.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags, 0666);
  if (fd < 0) return -errno;
  struct stat status {};
  if (fstat(fd, &status) != 0 || !(S_ISREG(status.st_mode) || S_ISCHR(status.st_mode))) {
    close(fd);
    return -ENXIO;
  }
  fcntl(fd, F_SETFL, O_APPEND);  // without O_NONBLOCK
  return fd;
}

}  // namespace

OutputFiles::~OutputFiles() {
  for (const Entry* entry : open_) close(entry->second.fd);
}

std::string OutputFiles::Add(const std::string& name, Stream stream, Writer writer, std::string_view bytes) {
  Entry& entry = Find(name);
  if (entry.second.failed) return {};
  entry.second.mergers[stream].Add(writer, bytes, {});
  return Flush(entry, stream);
}

std::string OutputFiles::Finish(const std::string& name, Stream stream, Writer writer) {
  Entry& entry = Find(name);
  File& file = entry.second;
  if (file.failed) return {};
  if (!file.written) {
    if (const int fd = OpenForWriting(name, O_TRUNC); fd >= 0) close(fd);
    return {};
  }
  file.mergers[stream].Finish(writer);
  if (file.mergers[stream].unwritten() != 0) {
    if (std::string problem = Flush(entry, stream); !problem.empty()) return problem;
  }
  return Close(entry);  // most files have one writer
}

OutputFiles::Entry& OutputFiles::Find(const std::string& name) { return *files_.try_emplace(name, label_).first; }

// Writes the lines that are complete. The file is created also while there is none.
std::string OutputFiles::Flush(Entry& entry, Stream stream) {
  File& file = entry.second;
  std::string problem;
  if (file.fd < 0) {
    problem = Open(entry);
  } else {
    open_.splice(open_.end(), open_, file.place);
  }
  OutputMerger& merger = file.mergers[stream];
  while (merger.unwritten() != 0) {
    const int error = merger.WriteTo(file.fd);
    if (error == 0) continue;
    (void)Close(entry);
    return Fail(entry, error);
  }
  return problem;
}

// Makes room for it. The problem may be another file's, which could not be closed: some file systems say only then that
// they are full.
std::string OutputFiles::Open(Entry& entry) {
  File& file = entry.second;
  std::string problem;
  if (open_.size() >= most_open_) problem = Close(*open_.front());
  int fd = 0;
  while ((fd = OpenForWriting(entry.first, O_CREAT | (file.written ? 0 : O_TRUNC))) < 0) {
    if ((fd != -EMFILE && fd != -ENFILE) || open_.empty()) return Fail(entry, -fd);
    if (std::string other = Close(*open_.front()); !other.empty()) problem = other;
  }
  file.fd = fd;
  file.place = open_.insert(open_.end(), &entry);
  file.written = true;
  return problem;
}

std::string OutputFiles::Close(Entry& entry) {
  File& file = entry.second;
  if (file.fd < 0) return {};
  open_.erase(file.place);
  const bool closed = close(std::exchange(file.fd, -1)) == 0 || errno == EINTR;
  return closed ? std::string() : Fail(entry, errno);
}

std::string OutputFiles::Fail(Entry& entry, int error) {
  entry.second.failed = true;
  for (OutputMerger& merger : entry.second.mergers) merger.Discard();
  return Problem(entry.first, error);
}

}  // namespace weft::pmi
