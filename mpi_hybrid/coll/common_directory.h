#ifndef MPI_HYBRID_COLL_COMMON_DIRECTORY_H_
#define MPI_HYBRID_COLL_COMMON_DIRECTORY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// Finds out which processes see the same directory (SplitByDirectory). Sends no messages.
namespace weft::mpi {

// A directory as this process sees it. It can put a file there, as a mark that others may look for.
class SeenDirectory {
 public:
  explicit SeenDirectory(const std::string& path);
  ~SeenDirectory();  // removes the file
  SeenDirectory(const SeenDirectory&) = delete;
  SeenDirectory& operator=(const SeenDirectory&) = delete;

  bool exists() const { return fd_ >= 0; }
  // Same number on the same kernel: the same directory.
  uint64_t device() const { return device_; }
  uint64_t inode() const { return inode_; }

  // Makes the file and returns its number. 0: it cannot be made (no permission, no space).
  uint64_t LeaveMark();
  bool HasMark(uint64_t mark) const;

 private:
  int fd_;
  uint64_t device_ = 0, inode_ = 0;
  uint64_t mark_ = 0;
};

// Divides `count` processes into parts that see the same directory. sees[i * count + j]: process i found the file of
// process j. Returns, for each process, the number of its part, which is the index of the part's first member. If two
// processes are in one part, all processes agree on that.
std::vector<size_t> PartsOf(size_t count, const std::vector<bool>& sees);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_COMMON_DIRECTORY_H_
