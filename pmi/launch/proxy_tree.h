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

// The proxies below one process (mpiexec or a proxy). One growth connects up to 16 hosts (StartMeans::most_branches)
// with it. If there are more hosts, the connected ones get the others below them, in shares whose sizes differ by at
// most one, and so on. Thus a process starts and talks to no more proxies than that, for any number of hosts.
//
//   mpiexec --+-- host 1 --+-- host 2        kGrow to host 1: 2, 3. Frames for host 3 go to host 1, which passes them on.
//             |            +-- host 3
//             +-- host 4 --+-- host 5 ...
//
// The host of mpiexec itself has a branch of its own, without other hosts.
class ProxyTree {
 public:
  struct Branch {
    ProxyLink link;
    std::vector<int32_t> hosts;  // its own host first
    bool open = true;

    bool leads_to(int32_t host) const;
    int32_t own_host() const { return hosts.front(); }
    // Sends the frame to a host of the branch, or, with kEverywhere, to all of them. A frame for no host of the branch
    // is not sent.
    void Send(Frame frame, int32_t host);
  };

  // Adds the branches of a successful growth (tree_growth.h).
  void Add(std::vector<std::unique_ptr<Branch>> branches);

  // The branches keep their addresses.
  const std::vector<std::unique_ptr<Branch>>& branches() const { return branches_; }
  // nullptr: no branch leads to the host.
  Branch* To(int32_t host) const;

 private:
  std::vector<std::unique_ptr<Branch>> branches_;
};

// Divides `hosts` into `parts` shares, in order, the longer ones first. No share is empty.
std::vector<std::vector<GrowOrder::Host>> Shares(const std::vector<GrowOrder::Host>& hosts, size_t parts);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_PROXY_TREE_H_
