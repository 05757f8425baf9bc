#include "bench/collectives_model/mpich.h"

#include "mpi_hybrid/coll/algorithms.h"

namespace weft::bench {
namespace {

using mpi::Algorithm;
using mpi::Collective;
using mpi::IsPowerOfTwo;

constexpr int kBcastMinProcs = 8;            // BCAST_MIN_PROCS
constexpr MPI_Aint kBcastShort = 12288;      // BCAST_SHORT_MSG_SIZE
constexpr MPI_Aint kBcastLong = 524288;      // BCAST_LONG_MSG_SIZE
constexpr MPI_Aint kReduceShort = 2048;      // REDUCE_SHORT_MSG_SIZE
constexpr MPI_Aint kAllReduceShort = 2048;   // ALLREDUCE_SHORT_MSG_SIZE
constexpr MPI_Aint kAllGatherShort = 81920;  // ALLGATHER_SHORT_MSG_SIZE, ALLGATHERV_SHORT_MSG_SIZE
constexpr MPI_Aint kAllGatherLong = 524288;  // ALLGATHER_LONG_MSG_SIZE, ALLGATHERV_LONG_MSG_SIZE
constexpr int kAllToAllBruckMinProcs = 8;
constexpr MPI_Aint kAllToAllShort = 256;         // ALLTOALL_SHORT_MSG_SIZE
constexpr MPI_Aint kAllToAllMedium = 32768;      // ALLTOALL_MEDIUM_MSG_SIZE
constexpr MPI_Aint kReduceScatterLong = 524288;  // REDUCE_SCATTER_COMMUTATIVE_LONG_MSG_SIZE

bool HasElementForEach(MPI_Aint bytes, int ranks) { return bytes / 4 >= mpi::PowerOfTwoBelow(ranks); }

Algorithm ByRanks(Collective collective, MPI_Aint bytes, int ranks) {
  switch (collective) {
    case Collective::kBroadcast:
      if (bytes < kBcastShort || ranks < kBcastMinProcs) return Algorithm::kBinomial;
      return bytes < kBcastLong && IsPowerOfTwo(ranks) ? Algorithm::kScatterDoubling : Algorithm::kScatterRing;
    case Collective::kGather:
    case Collective::kScatter:
      return Algorithm::kBinomial;
    case Collective::kAllGather:
    case Collective::kAllGatherV:
      // Weft has no recursive doubling for kAllGatherV.
      if (bytes < kAllGatherLong && IsPowerOfTwo(ranks))
        return collective == Collective::kAllGather ? Algorithm::kDoubling : Algorithm::kBruck;
      return bytes < kAllGatherShort ? Algorithm::kBruck : Algorithm::kRing;
    case Collective::kAllToAll:
      if (bytes <= kAllToAllShort && ranks >= kAllToAllBruckMinProcs) return Algorithm::kBruck;
      return bytes <= kAllToAllMedium ? Algorithm::kLinear : Algorithm::kPairwise;
    case Collective::kReduce:
      return bytes > kReduceShort && HasElementForEach(bytes, ranks) ? Algorithm::kRabenseifner : Algorithm::kBinomial;
    case Collective::kAllReduce:
      return bytes > kAllReduceShort && HasElementForEach(bytes, ranks) ? Algorithm::kRabenseifner
                                                                        : Algorithm::kDoubling;
    case Collective::kReduceScatter:
      return bytes < kReduceScatterLong ? Algorithm::kHalving : Algorithm::kPairwise;
  }
  return Algorithm::kAutomatic;
}

// ENABLE_SMP_BCAST, ENABLE_SMP_REDUCE and ENABLE_SMP_ALLREDUCE. A long broadcast does not regard hosts.
bool IsInLevels(const Case& one, const Layout& layout) {
  if (!layout.has_two_levels()) return false;
  if (one.collective == Collective::kReduce || one.collective == Collective::kAllReduce) return true;
  return one.collective == Collective::kBroadcast && (one.bytes < kBcastShort || layout.ranks() < kBcastMinProcs ||
                                                      (one.bytes < kBcastLong && IsPowerOfTwo(layout.ranks())));
}

}  // namespace

Way WayOfMpich(const Case& one, const Layout& layout) {
  if (!IsInLevels(one, layout)) return {ByRanks(one.collective, one.bytes, layout.ranks())};
  const Collective within = one.collective == Collective::kAllReduce ? Collective::kReduce : one.collective;
  return {ByRanks(one.collective, one.bytes, layout.hosts()), Way::Levels::kGiven,
          ByRanks(within, one.bytes, layout.ranks() / layout.hosts())};
}

}  // namespace weft::bench
