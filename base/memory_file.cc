#include "base/memory_file.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "base/dma_scope.h"
#include "base/file_limit.h"
#include "base/high_descriptor.h"
#include "base/uncancelled.h"

namespace weft {
namespace {

// Files that are open, by their processes' numbers.
struct OpenFiles {
  std::mutex mutex;
  std::map<pid_t, std::weak_ptr<MemoryFile>> by_pid;
};

OpenFiles& Files() {
  static auto* const files = new OpenFiles;  // used until the process ends
  return *files;
}

// Of what pread(2) or pwrite(2) returned. EIO: no memory; EINVAL: nor can be, in the upper half of all addresses.
int ErrorOf(ssize_t moved, size_t length) {
  if (moved == static_cast<ssize_t>(length)) return 0;
  if (moved == 0) return ESRCH;
  return moved > 0 || errno == EIO || errno == EINVAL ? EFAULT : errno;
}

}  // namespace

std::shared_ptr<MemoryFile> MemoryFile::Open(pid_t pid, uint64_t address, uint64_t value) {
  return OpenIf(pid, [&](const MemoryFile& file) {
    uint64_t found = 0;
    return file.Read(&found, address, sizeof found) == 0 && found == value;
  });
}

std::shared_ptr<MemoryFile> MemoryFile::Open(const MarkedProcess& process) {
  return OpenIf(process.pid(), [&](const MemoryFile& file) {
    uint64_t found;
    static_assert(sizeof found == kMarkBytes);
    return process.mark() != 0 && file.Read(&found, process.mark(), sizeof found) == 0;
  });
}

template <typename IsOfProcess>
std::shared_ptr<MemoryFile> MemoryFile::OpenIf(pid_t pid, IsOfProcess is_of_process) {
  const uncancelled::Scope scope;
  OpenFiles& files = Files();
  // Not to be had: another thread opens one at this moment, or did when this process was forked off. Then this one is not shared.
  const std::unique_lock lock(files.mutex, std::try_to_lock);
  if (lock.owns_lock()) {
    std::erase_if(files.by_pid, [](const auto& one) { return one.second.expired(); });
    if (auto known = files.by_pid.find(pid); known != files.by_pid.end()) {
      if (auto file = known->second.lock(); file != nullptr && is_of_process(*file)) return file;
    }
  }
  const std::string path = "/proc/" + std::to_string(pid) + "/mem";
  Descriptor opened(LeaveRoomForSelect(open(path.c_str(), O_RDWR | O_CLOEXEC)));
  if (!opened || !IsToSpare(opened.get())) return nullptr;
  std::shared_ptr<MemoryFile> file(new MemoryFile(std::move(opened)));
  if (!is_of_process(*file)) return nullptr;
  if (lock.owns_lock()) files.by_pid[pid] = file;
  return file;
}

bool MemoryFile::WritesInOrder() {
#if defined(__x86_64__)
  // Fast short REP MOVSB: the kernel's memcpy is that one instruction then.
  static const bool in_order = [] {
    constexpr unsigned kFastShortRepMovsb = 1u << 4;
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kFastShortRepMovsb) != 0;
  }();
  return in_order;
#else
  return false;
#endif
}

int MemoryFile::Write(const void* from, uint64_t to, size_t length) const {
  const DmaScope dma;
  return ErrorOf(uncancelled::WriteAt(file_.get(), from, length, static_cast<off_t>(to)), length);
}

int MemoryFile::Read(void* to, uint64_t from, size_t length) const {
  const DmaScope dma;
  return ErrorOf(uncancelled::ReadAt(file_.get(), to, length, static_cast<off_t>(from)), length);
}

}  // namespace weft
