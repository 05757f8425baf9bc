#ifndef PMI_LAUNCH_JOB_PLAN_H_
#define PMI_LAUNCH_JOB_PLAN_H_

#include <string>
#include <vector>

#include "base/result.h"
#include "pmi/error.h"
#include "pmi/launch/frame.h"
#include "pmi/launch/options.h"
#include "pmi/launch/placement.h"

namespace weft::pmi {

// The concrete plan of a command line.
struct JobPlan {
  Placement placement;
  std::vector<int> program_of_rank;
  std::vector<StartOrder> orders;  // one for each host of the placement
  std::vector<int> errors;         // of a spawn, by requested process: 1 if `soft` left it out
  std::vector<std::string> notes;  // of a spawn: what was ignored, for stderr

  int size() const { return static_cast<int>(program_of_rank.size()); }
};

// `own_environment`: NAME=VALUE entries of mpiexec itself. `directory`: where programs without -wdir run. The plan does
// not contain the job's secret, because orders cross the network in clear text.
JobPlan MakePlan(const Options& options, const std::vector<std::string>& own_environment, const std::string& directory);

// The plan of a spawn, as the job `number`. `options` apply to everything that its info keys leave open (hosts,
// environment, universe size). An error names the info key and its value.
Result<JobPlan, PmiError> MakeSpawnPlan(const ask::Spawn& spawn, const Options& options, const std::vector<std::string>& own_environment,
                                        const std::string& directory, int number, const std::string& spawner);

// The largest number up to `most` in the info key `soft`: numbers and ranges FIRST:LAST[:STEP], separated by commas
// (MPI 4.0 section 11.8.4).
Result<int, PmiError> SoftCount(const std::string& soft, int most);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_JOB_PLAN_H_
