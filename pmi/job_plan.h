#ifndef PMI_JOB_PLAN_H_
#define PMI_JOB_PLAN_H_

#include <string>
#include <vector>

#include "pmi/frame.h"
#include "pmi/options.h"
#include "pmi/placement.h"

namespace weft::pmi {

// A command line made concrete.
struct JobPlan {
  Placement placement;
  std::vector<int> program_of_rank;
  std::vector<StartOrder> orders;  // one for each host of the placement

  int size() const { return static_cast<int>(program_of_rank.size()); }
};

// `own_environment`: NAME=VALUE entries of mpiexec itself. `directory`: where programs run that have no -wdir.
// The job's secret is not in it: orders cross the network in clear.
JobPlan MakePlan(const Options& options, const std::vector<std::string>& own_environment, const std::string& directory);

}  // namespace weft::pmi

#endif  // PMI_JOB_PLAN_H_
