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

// New branches of a proxy tree, from the order to the proxies that are there, they and those below them. Three steps, none of which blocks: the
// hosts are looked up; proxies are started on those that are to be connected with this process, and connect; they start those below them, and say so. Its
// owner, mpiexec or a proxy, waits for it beside what it does for the jobs that run.
class TreeGrowth {
 public:
  using Clock = std::chrono::steady_clock;

  // Begins.
  TreeGrowth(GrowOrder order, const JobSecret& secret);
  // On the way: what was started ends by itself.
  ~TreeGrowth() = default;
  TreeGrowth(const TreeGrowth&) = delete;
  TreeGrowth& operator=(const TreeGrowth&) = delete;

  // Readable when there is something for Step(), which is to be called at wake_at(), too.
  int fd() const { return poller_.fd(); }
  Clock::time_point wake_at() const;
  void Step();
  // The owner has waited for a child, which may be of these.
  void ChildEnded(pid_t pid, int status);

  bool done() const { return stage_ == Stage::kDone; }
  // When it is done: which host is missing, and why.
  const std::optional<LaunchError>& error() const { return error_; }
  std::string MissingHosts() const;  // ", " between
  // When it is done without error.
  std::vector<std::unique_ptr<ProxyTree::Branch>> TakeBranches();

 private:
  enum class Stage { kLookUp, kStart, kBelow, kDone };
  using Branch = ProxyTree::Branch;
  using Hosts = std::vector<GrowOrder::Host>;

  // Those of a branch, of which the first is connected with this process.
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
  std::set<Branch*> waiting_;  // whose proxies start others
  Clock::time_point below_limit_{};
  std::optional<LaunchError> error_;
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_TREE_GROWTH_H_
