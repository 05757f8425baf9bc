#ifndef PMI_LAUNCH_TREE_GROWTH_H_
#define PMI_LAUNCH_TREE_GROWTH_H_

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/job_secret.h"
#include "pmi/error.h"
#include "pmi/launch/event_poller.h"
#include "pmi/launch/grow_order.h"
#include "pmi/launch/host_lookup.h"
#include "pmi/launch/proxy_starter.h"
#include "pmi/launch/proxy_tree.h"

namespace weft::pmi {

// Adds branches to a proxy tree: from the order until all their proxies exist, including those further below. Three
// steps, none of which blocks. The hosts are looked up. Proxies are started on the hosts that connect with this
// process, and they connect. These start the proxies below them and report success. The owner, mpiexec or a proxy,
// waits for it while it serves the running jobs.
class TreeGrowth {
 public:
  using Clock = std::chrono::steady_clock;

  // Begins.
  TreeGrowth(GrowOrder order, const JobSecret& secret);
  // If it is not done, the processes that were started end by themselves.
  ~TreeGrowth() = default;
  TreeGrowth(const TreeGrowth&) = delete;
  TreeGrowth& operator=(const TreeGrowth&) = delete;

  // Readable when Step() has something to do. Step() must also be called at wake_at().
  int fd() const { return poller_.fd(); }
  Clock::time_point wake_at() const;
  void Step();
  // The owner has reaped a child, which may be one of these.
  void ChildEnded(pid_t pid, int status);

  bool done() const { return stage_ == Stage::kDone; }
  // When done: which host is missing, and why.
  const std::optional<LaunchError>& error() const { return error_; }
  std::string MissingHosts() const;  // separated by ", "
  // After success.
  std::vector<std::unique_ptr<ProxyTree::Branch>> TakeBranches();

 private:
  enum class Stage { kLookUp, kStart, kBelow, kDone };
  using Branch = ProxyTree::Branch;
  using Hosts = std::vector<GrowOrder::Host>;

  // The hosts of a branch. The first one connects with this process.
  struct Part {
    Hosts hosts;
    bool is_local = false;
  };

  void StartParts();
  void OrderThoseBelow();
  void OnBranch(Branch& branch, uint32_t events);
  void Fail(LaunchError error);

  const GrowOrder order_;
  const JobSecret secret_;
  Stage stage_ = Stage::kLookUp;
  EventPoller poller_;
  std::unique_ptr<HostLookup> lookup_;
  std::vector<Part> parts_;
  std::unique_ptr<ProxyStarter> starter_;
  std::vector<std::unique_ptr<Branch>> branches_;
  std::set<Branch*> waiting_;  // branches whose proxies start others
  Clock::time_point below_limit_{};
  std::optional<LaunchError> error_;
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_TREE_GROWTH_H_
