// Communicators of processes that have something in common where they run: memory, a directory.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mpi_hybrid/coll/common_directory.h"
#include "mpi_hybrid/coll/gather_words.h"
#include "mpi_hybrid/coll/make_comm.h"
#include "mpi_hybrid/core/impi_world.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/host/host_number.h"

namespace weft::mpi {
namespace {

uint64_t HashOf(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

// A number that processes have in common when they can share memory: the same running kernel, and the same /dev/shm.
uint64_t MemoryNumber() {
  std::string identity = host::BootId();
  char name[256] = {};
  if (identity.empty() && gethostname(name, sizeof name - 1) == 0) identity = name;
  struct stat shared {};
  // Clients of an IMPI job do not share memory, wherever they run.
  if (const auto& world = ThisJob().impi) identity += "client " + std::to_string(world->job().self().value) + " ";
  if (stat("/dev/shm", &shared) == 0) identity += std::to_string(shared.st_dev) + ":" + std::to_string(shared.st_ino);
  return HashOf(identity);
}

constexpr size_t kWords = 2;  // ints of a number
int Low(uint64_t number) { return static_cast<int>(number); }
int High(uint64_t number) { return static_cast<int>(number >> 32); }
uint64_t NumberAt(const std::vector<int>& table, size_t at) {
  return static_cast<uint32_t>(table[at]) | uint64_t{static_cast<uint32_t>(table[at + 1])} << 32;
}

constexpr size_t kBits = 32;  // of an int

// Who sees the directory of whom. Every process takes every step, whatever it learnt in those before.
class Neighbourhood {
 public:
  Neighbourhood(Comm& comm, const std::string& directory)
      : comm_(comm),
        directory_(directory),
        text_(HashOf(directory)),
        count_(static_cast<size_t>(comm.size() + (comm.inter ? comm.remote_size() : 0))) {}

  Error Find() {
    Error seen = CompareNumbers();
    Error marked = LeaveMarks();
    Error looked = LookForMarks();
    for (Error* failed : {&seen, &marked, &looked}) WEFT_MPI_TRY(std::move(*failed));
    return {};
  }
  int color() const { return color_; }  // or MPI_UNDEFINED

 private:
  // first_[i]: of those on the kernel of `i` that see the same directory.
  Error CompareNumbers() {
    const uint64_t host = MemoryNumber(), device = directory_.device(), inode = directory_.inode();
    constexpr size_t kWidth = 4 * kWords + 1;
    const int mine[kWidth] = {Low(host), High(host), Low(device), High(device), Low(inode),
                              High(inode), Low(text_), High(text_), directory_.exists()};
    first_.assign(count_, count_);
    std::vector<int> all;
    WEFT_MPI_TRY(GatherFromAll(comm_, mine, kWidth, &all));
    for (size_t i = 0; i < count_; ++i) {
      agreed_ &= NumberAt(all, i * kWidth + 3 * kWords) == text_;
      if (all[i * kWidth + 4 * kWords] == 0) continue;
      size_t first = 0;
      while (!std::equal(&all[first * kWidth], &all[first * kWidth] + kWidth, &all[i * kWidth])) ++first;
      first_[i] = first;
    }
    return {};
  }

  bool IsFirst(size_t i) const { return first_[i] == i; }

  Error LeaveMarks() {
    const bool leave = IsFirst(PlaceAmongAll(comm_)) && HasOthers();
    const uint64_t mark = leave ? directory_.LeaveMark() : 0;
    const int mine[kWords] = {Low(mark), High(mark)};
    marks_.assign(count_, 0);
    std::vector<int> all;
    WEFT_MPI_TRY(GatherFromAll(comm_, mine, kWords, &all));
    for (size_t i = 0; i < count_; ++i) marks_[i] = NumberAt(all, i * kWords);
    return {};
  }

  // Whether there is a directory of other numbers to compare with.
  bool HasOthers() const {
    for (size_t i = 0; i < count_; ++i) {
      if (IsFirst(i) && i != first_[PlaceAmongAll(comm_)]) return true;
    }
    return false;
  }

  Error LookForMarks() {
    const size_t width = (count_ + kBits - 1) / kBits;
    std::vector<int> mine(width), all;
    if (IsFirst(PlaceAmongAll(comm_))) {
      for (size_t i = 0; i < count_; ++i) {
        if (directory_.HasMark(marks_[i])) mine[i / kBits] |= static_cast<int>(1u << i % kBits);
      }
    }
    WEFT_MPI_TRY(GatherFromAll(comm_, mine.data(), width, &all));
    std::vector<size_t> parts;  // by those that are first
    for (size_t i = 0; i < count_; ++i) {
      if (IsFirst(i)) parts.push_back(i);
    }
    std::vector<bool> sees;
    for (size_t i : parts) {
      for (size_t j : parts) sees.push_back((static_cast<unsigned>(all[i * width + j / kBits]) >> j % kBits & 1) != 0);
    }
    const std::vector<size_t> merged = PartsOf(parts.size(), sees);
    for (size_t at = 0; at < parts.size(); ++at) {
      if (agreed_ && parts[at] == first_[PlaceAmongAll(comm_)]) color_ = static_cast<int>(merged[at]);
    }
    return {};
  }

  Comm& comm_;
  SeenDirectory directory_;
  const uint64_t text_;
  const size_t count_;  // of processes
  bool agreed_ = true;  // on the text
  std::vector<size_t> first_;  // count_: has no such directory
  std::vector<uint64_t> marks_;
  int color_ = MPI_UNDEFINED;
};

}  // namespace

Error SplitByHost(Comm& comm, int key, Ref<Comm>* made, bool take_part) {
  *made = nullptr;
  const uint64_t host = MemoryNumber();
  const int mine[kWords] = {Low(host), High(host)};
  std::vector<int> all;
  if (const Error gathered = GatherFromAll(comm, mine, kWords, &all); !gathered.ok())
    return Split(comm, MPI_UNDEFINED, key, made, gathered);
  // The color is the place of the host's first process.
  size_t color = 0;
  while (NumberAt(all, color * kWords) != host) ++color;
  return Split(comm, take_part ? static_cast<int>(color) : MPI_UNDEFINED, key, made);
}

Error SplitByDirectory(Comm& comm, const std::string& directory, int key, Ref<Comm>* made) {
  *made = nullptr;
  Neighbourhood neighbourhood(comm, directory);
  const Error found = neighbourhood.Find();
  return Split(comm, neighbourhood.color(), key, made, found);
}

}  // namespace weft::mpi
