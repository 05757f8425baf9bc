#ifndef MPI_HYBRID_P2P_TCP_FEW_DESCRIPTORS_H_
#define MPI_HYBRID_P2P_TCP_FEW_DESCRIPTORS_H_

#include <sys/resource.h>
#include <unistd.h>

#include <vector>

namespace weft::mpi {

// For tests: while it lives, this process can open only `left` more descriptors.
class FewDescriptors {
 public:
  explicit FewDescriptors(int left) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit limit = before_;
    std::vector<int> taken;  // the lowest free ones
    for (int i = 0; i <= left; ++i) taken.push_back(dup(0));
    limit.rlim_cur = static_cast<rlim_t>(taken.back());
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int fd : taken) close(fd);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_TCP_FEW_DESCRIPTORS_H_
