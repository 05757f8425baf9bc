#ifndef MPI_HYBRID_COLL_COMMON_DIRECTORY_H_
#define MPI_HYBRID_COLL_COMMON_DIRECTORY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// Which processes see the same directory (SplitByDirectory): no messages here.
namespace weft::mpi {

// A directory as this process sees it, and at times a file in it that others may look for.
class SeenDirectory {
 public:
  explicit SeenDirectory(const std::string& path);
  ~SeenDirectory();  // takes the file away
  SeenDirectory(const SeenDirectory&) = delete;
  SeenDirectory& operator=(const SeenDirectory&) = delete;

  bool exists() const { return fd_ >= 0; }
  // The same number and the same kernel: the same directory.
  uint64_t device() const { return device_; }
  uint64_t inode() const { return inode_; }

  // Makes the file; its number, 0: it cannot be made (no permission, no space).
  uint64_t LeaveMark();
  bool HasMark(uint64_t mark) const;

 private:
  int fd_;
  uint64_t device_ = 0, inode_ = 0;
  uint64_t mark_ = 0;
};

// Two that are in one part are so for all: sees[i * count + j] says that `i` found the file of `j`. The number of each one's part, which is
// its first member.
std::vector<size_t> PartsOf(size_t count, const std::vector<bool>& sees);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_COMMON_DIRECTORY_H_
