#ifndef PMI_LAUNCH_PROXY_TREE_H_
#define PMI_LAUNCH_PROXY_TREE_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "pmi/launch/connection.h"
#include "pmi/launch/grow_order.h"
#include "pmi/launch/remote_start.h"

namespace weft::pmi {

// The proxies below one process, mpiexec or a proxy. Up to 16 hosts (StartMeans::most_branches) are connected with it in one growth; where there are more, those
// connected have the others below them, in shares that differ by one at most, and so on: a process starts, and speaks with, no more
// proxies than that, however many hosts there are.
//
//   mpiexec --+-- host 1 --+-- host 2        kGrow to host 1: 2, 3. Frames for host 3 go to host 1, which passes them on.
//             |            +-- host 3
//             +-- host 4 --+-- host 5 ...
//
// The host of mpiexec itself has a branch of its own without others.
class ProxyTree {
 public:
  struct Branch {
    ProxyLink link;
    std::vector<int32_t> hosts;  // its own first
    bool open = true;

    bool leads_to(int32_t host) const;
    int32_t own_host() const { return hosts.front(); }
    // Sends it to its host, or to all of the branch's with kEverywhere; a frame for nobody here is not sent.
    void Send(Frame frame, int32_t host);
  };

  // The branches of a growth that has gone well (tree_growth.h).
  void Add(std::vector<std::unique_ptr<Branch>> branches);

  // They stay where they are.
  const std::vector<std::unique_ptr<Branch>>& branches() const { return branches_; }
  // nullptr: there is none.
  Branch* To(int32_t host) const;

 private:
  std::vector<std::unique_ptr<Branch>> branches_;
};

// `hosts` in `parts` shares, in their order, the longer ones first. No share is empty.
std::vector<std::vector<GrowOrder::Host>> Shares(const std::vector<GrowOrder::Host>& hosts, size_t parts);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_PROXY_TREE_H_
