#ifndef PMI_SLURM_ALLOCATION_H_
#define PMI_SLURM_ALLOCATION_H_

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "pmi/error.h"
#include "pmi/launch/placement.h"

namespace weft::pmi::slurm {

// The value of an environment variable, or nullptr.
using Environment = std::function<const char*(const char* name)>;

// Expands Slurm's short form of one number per node: "2(x3),1" is 2, 2, 2, 1. An error quotes the wrong part.
Result<std::vector<int>, PmiError> ExpandCounts(const std::string& counts);

// The hosts of the allocation in which this process runs, under salloc, sbatch or srun, and the number of ranks for
// each:
//
//   SLURM_JOB_ID              there is an allocation
//   SLURM_JOB_NODELIST        its hosts (node_list.h)
//   SLURM_TASKS_PER_NODE      the number of ranks on each. Inside a step it describes that step, which may have fewer
//                             hosts; then the next one is used
//   SLURM_JOB_CPUS_PER_NODE   divided by SLURM_CPUS_PER_TASK, if that is set; at least 1
//
// Empty: there is no allocation. An error names the variable and its value.
Result<std::vector<HostSlots>, PmiError> HostsOfAllocation(const Environment& environment);

}  // namespace weft::pmi::slurm

#endif  // PMI_SLURM_ALLOCATION_H_
