#ifndef BENCH_COLLECTIVES_MODEL_PROGRAMS_H_
#define BENCH_COLLECTIVES_MODEL_PROGRAMS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bench/collectives_model/network.h"
#include "mpi_hybrid/coll/tuning.h"
#include "mpi_hybrid/coll/two_levels.h"

// The actions of all ranks in a collective, from the schedules that the library builds for them.
namespace weft::bench {

// Ranks in blocks of equal size on hosts.
class Layout {
 public:
  Layout(int ranks, int hosts);

  int ranks() const { return static_cast<int>(host_of_.size()); }
  int hosts() const { return host_of_.back() + 1; }
  const std::vector<int>& host_of() const { return host_of_; }
  bool has_two_levels() const { return hosts() > 1 && hosts() < ranks(); }
  // The library's levels of one rank.
  mpi::TwoLevels LevelsOf(int rank) const { return {rank, host_of_}; }
  // The ranks of this rank's host, and the first rank of each host.
  std::vector<int> RanksBeside(int rank) const;
  std::vector<int> FirstRanks() const;

 private:
  std::vector<int> host_of_;
};

struct Case {
  mpi::Collective collective = mpi::Collective::kBroadcast;
  MPI_Aint bytes = 0;  // as in mpi_hybrid/coll/tuning.h
};

// How a collective is carried out.
struct Way {
  enum class Levels : uint8_t {
    kNone,     // by ranks alone
    kLibrary,  // mpi_hybrid/coll/two_levels, which chooses its algorithms
    kGiven,    // within each host by `within`, between the first ranks of the hosts by `algorithm`
  };

  mpi::Algorithm algorithm = mpi::Algorithm::kAutomatic;
  Levels levels = Levels::kNone;
  mpi::Algorithm within = mpi::Algorithm::kAutomatic;

  bool operator==(const Way&) const = default;
};
std::string ToString(const Way& way);

// What the library does. Reductions are of MPI_INT with MPI_SUM.
Way WayOfWeft(const Case& one, const Layout& layout);
// Every algorithm by ranks alone that is legal for the case.
std::vector<Way> AllWays(const Case& one, const Layout& layout);

// nullopt: the programs have more than `most_actions` actions together, or a rank's data have more than 16 GiB.
std::optional<std::vector<Program>> MakePrograms(const Case& one, const Way& way, const Layout& layout,
                                                 size_t most_actions);

}  // namespace weft::bench

#endif  // BENCH_COLLECTIVES_MODEL_PROGRAMS_H_
