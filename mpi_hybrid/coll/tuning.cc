#include "mpi_hybrid/coll/tuning.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "mpi_hybrid/coll/algorithms.h"

namespace weft::mpi {
namespace {

constexpr MPI_Aint kAny = std::numeric_limits<MPI_Aint>::max();
constexpr MPI_Aint kKi = 1024;

struct Row {
  Collective collective;
  MPI_Aint most_bytes;
  int least_ranks, most_ranks;
  Algorithm algorithm;
  MPI_Aint most_bytes_each = kAny;  // bytes / ranks
  bool power_of_two = false;        // only for such a number of ranks
};

constexpr int kManyRanks = std::numeric_limits<int>::max();

constexpr int kBeyondMeasured = 9;
constexpr bool kPowerOfTwo = true;

// The first row that fits and is legal; the last of each collective is legal always. Up to 8 ranks the sizes are those
// at which the sums of all ranks' processor times crossed (4 ranks on one host over loopback TCP, which copies cost
// most). Beyond, they are those at which bench/collectives_model has the least loss on any of its networks, with one
// rank on each host or with many. Rings and pairwise exchanges take a latency for each rank: they need many
// bytes for each rank (most_bytes_each is the limit of the algorithms before them).
constexpr Row kTable[] = {
    {Collective::kBroadcast, 64 * kKi, 1, kManyRanks, Algorithm::kBinomial},
    {Collective::kBroadcast, kAny, 1, 4, Algorithm::kBinomial},
    {Collective::kBroadcast, 512 * kKi, 8, 8, Algorithm::kScatterDoubling},
    {Collective::kBroadcast, kAny, kBeyondMeasured, kManyRanks, Algorithm::kScatterDoubling, 32 * kKi},
    {Collective::kBroadcast, kAny, kBeyondMeasured, kManyRanks, Algorithm::kBinomial, 256},
    {Collective::kBroadcast, kAny, 1, kManyRanks, Algorithm::kScatterRing},

    {Collective::kGather, 2 * kKi, 8, kManyRanks, Algorithm::kBinomial},
    {Collective::kGather, 4 * kKi, 128, kManyRanks, Algorithm::kBinomial},
    {Collective::kGather, 16 * kKi, 512, kManyRanks, Algorithm::kBinomial},
    {Collective::kGather, kAny, 1, kManyRanks, Algorithm::kLinear},
    {Collective::kScatter, 2 * kKi, 8, kManyRanks, Algorithm::kBinomial},
    {Collective::kScatter, 4 * kKi, 128, kManyRanks, Algorithm::kBinomial},
    {Collective::kScatter, 16 * kKi, 512, kManyRanks, Algorithm::kBinomial},
    {Collective::kScatter, kAny, 1, kManyRanks, Algorithm::kLinear},

    {Collective::kAllGather, 512 * kKi, 1, kManyRanks, Algorithm::kDoubling},
    {Collective::kAllGather, kAny, 1, 8, Algorithm::kDoubling},
    {Collective::kAllGather, 512 * kKi, 1, 8, Algorithm::kBruck},
    {Collective::kAllGather, 64 * kKi, 1, kManyRanks, Algorithm::kBruck},
    {Collective::kAllGather, kAny, kBeyondMeasured, kManyRanks, Algorithm::kBruck, 512},
    {Collective::kAllGather, kAny, 1, kManyRanks, Algorithm::kRing},
    {Collective::kAllGatherV, 64 * kKi, 1, kManyRanks, Algorithm::kBruck},
    {Collective::kAllGatherV, kAny, kBeyondMeasured, kManyRanks, Algorithm::kBruck, 512},
    {Collective::kAllGatherV, kAny, 1, kManyRanks, Algorithm::kRing},

    {Collective::kAllToAll, 1 * kKi, 4, 16, Algorithm::kBruck},
    {Collective::kAllToAll, 256, 4, kManyRanks, Algorithm::kBruck},
    {Collective::kAllToAll, 32 * kKi, 1, kManyRanks, Algorithm::kLinear},
    {Collective::kAllToAll, kAny, 1, 8, Algorithm::kLinear},
    {Collective::kAllToAll, kAny, 1, kManyRanks, Algorithm::kPairwise},

    {Collective::kReduce, 64 * kKi, 1, kManyRanks, Algorithm::kBinomial},
    {Collective::kReduce, kAny, 5, kManyRanks, Algorithm::kRabenseifner},
    {Collective::kReduce, kAny, 1, kManyRanks, Algorithm::kBinomial},

    {Collective::kAllReduce, 48 * kKi, 1, kManyRanks, Algorithm::kDoubling},
    {Collective::kAllReduce, kAny, 1, 2, Algorithm::kRabenseifner},
    {Collective::kAllReduce, 64 * kKi, 1, kManyRanks, Algorithm::kRabenseifner},
    {Collective::kAllReduce, kAny, 3, 8, Algorithm::kRing},
    {Collective::kAllReduce, kAny, 1, kManyRanks, Algorithm::kRabenseifner, 128 * kKi, kPowerOfTwo},
    {Collective::kAllReduce, 2048 * kKi, 1, kManyRanks, Algorithm::kRabenseifner, 16 * kKi},
    {Collective::kAllReduce, kAny, 1, kManyRanks, Algorithm::kRing},
    {Collective::kAllReduce, kAny, 1, kManyRanks, Algorithm::kDoubling},

    {Collective::kReduceScatter, 2 * kKi, kBeyondMeasured, kManyRanks, Algorithm::kDoubling, kAny, kPowerOfTwo},
    {Collective::kReduceScatter, 128 * kKi, 1, kManyRanks, Algorithm::kHalving},
    {Collective::kReduceScatter, kAny, kBeyondMeasured, kManyRanks, Algorithm::kHalving, 128 * kKi, kPowerOfTwo},
    {Collective::kReduceScatter, kAny, kBeyondMeasured, kManyRanks, Algorithm::kHalving, 8 * kKi},
    {Collective::kReduceScatter, 16 * kKi, 1, kManyRanks, Algorithm::kDoubling},
    {Collective::kReduceScatter, kAny, 1, kManyRanks, Algorithm::kPairwise},
};

struct CollectiveName {
  std::string_view name;
  Collective collective;
};
constexpr CollectiveName kCollectives[] = {
    {"bcast", Collective::kBroadcast},
    {"gather", Collective::kGather},
    {"scatter", Collective::kScatter},
    {"allgather", Collective::kAllGather},
    {"allgatherv", Collective::kAllGatherV},
    {"alltoall", Collective::kAllToAll},
    {"reduce", Collective::kReduce},
    {"allreduce", Collective::kAllReduce},
    {"reduce_scatter", Collective::kReduceScatter},
};
struct AlgorithmName {
  std::string_view name;
  Algorithm algorithm;
};
constexpr AlgorithmName kAlgorithms[] = {
    {"binomial", Algorithm::kBinomial},
    {"scatter_doubling", Algorithm::kScatterDoubling},
    {"scatter_ring", Algorithm::kScatterRing},
    {"linear", Algorithm::kLinear},
    {"doubling", Algorithm::kDoubling},
    {"bruck", Algorithm::kBruck},
    {"ring", Algorithm::kRing},
    {"pairwise", Algorithm::kPairwise},
    {"rabenseifner", Algorithm::kRabenseifner},
    {"halving", Algorithm::kHalving},
};

bool Knows(Collective collective, Algorithm algorithm) {
  return std::any_of(std::begin(kTable), std::end(kTable),
                     [&](const Row& row) { return row.collective == collective && row.algorithm == algorithm; });
}

using Forced = std::array<Algorithm, std::size(kCollectives)>;  // by Collective; kAutomatic: the table
Forced g_forced{};

std::string NamesOfAlgorithms(Collective collective) {
  std::string names;
  for (const Algorithm algorithm : AlgorithmsOf(collective))
    names.append(names.empty() ? "" : ", ").append(NameOfAlgorithm(algorithm));
  return names;
}

Error Parse(std::string_view item, Forced* forced) {
  const size_t colon = item.find(':');
  const std::string_view name = item.substr(0, colon);
  const std::optional<Collective> collective = FindCollective(name);
  if (!collective) {
    std::string known;
    for (const CollectiveName& entry : kCollectives) known.append(known.empty() ? "" : ", ").append(entry.name);
    return Error(MPI_ERR_ARG, "WEFT_MPI_COLL: \"" + std::string(name) + "\" is not one of the collectives " + known);
  }
  const std::string_view wanted = colon == std::string_view::npos ? std::string_view() : item.substr(colon + 1);
  for (const AlgorithmName& entry : kAlgorithms) {
    if (entry.name == wanted && Knows(*collective, entry.algorithm)) {
      (*forced)[static_cast<size_t>(*collective)] = entry.algorithm;
      return {};
    }
  }
  return Error(MPI_ERR_ARG, "WEFT_MPI_COLL: \"" + std::string(wanted) + "\" is not one of the algorithms of " +
                                std::string(name) + ": " + NamesOfAlgorithms(*collective));
}

}  // namespace

bool IsLegal(Collective collective, Algorithm algorithm, int ranks, bool commutative) {
  const bool power_of_two = IsPowerOfTwo(ranks);
  switch (algorithm) {
    case Algorithm::kScatterDoubling:
      return power_of_two;
    case Algorithm::kDoubling:
      return collective != Collective::kAllGather || power_of_two;
    case Algorithm::kRabenseifner:
    case Algorithm::kHalving:
      return commutative;
    case Algorithm::kRing:
      return collective != Collective::kAllReduce || commutative;
    default:
      return true;
  }
}

std::vector<Algorithm> AlgorithmsOf(Collective collective) {
  std::vector<Algorithm> result;
  for (const AlgorithmName& entry : kAlgorithms) {
    if (Knows(collective, entry.algorithm)) result.push_back(entry.algorithm);
  }
  return result;
}

std::string_view NameOfCollective(Collective collective) {
  const auto* entry = std::find_if(std::begin(kCollectives), std::end(kCollectives),
                                   [&](const CollectiveName& one) { return one.collective == collective; });
  return entry == std::end(kCollectives) ? std::string_view() : entry->name;
}

std::string_view NameOfAlgorithm(Algorithm algorithm) {
  const auto* entry = std::find_if(std::begin(kAlgorithms), std::end(kAlgorithms),
                                   [&](const AlgorithmName& one) { return one.algorithm == algorithm; });
  return entry == std::end(kAlgorithms) ? "automatic" : entry->name;
}

std::optional<Collective> FindCollective(std::string_view name) {
  for (const CollectiveName& entry : kCollectives) {
    if (entry.name == name) return entry.collective;
  }
  return std::nullopt;
}

bool IsForced(Collective collective) { return g_forced[static_cast<size_t>(collective)] != Algorithm::kAutomatic; }

Algorithm Choose(Collective collective, MPI_Aint bytes, int ranks, bool commutative) {
  const Algorithm forced = g_forced[static_cast<size_t>(collective)];
  if (forced != Algorithm::kAutomatic && IsLegal(collective, forced, ranks, commutative)) [[unlikely]]
    return forced;
  Algorithm last = Algorithm::kLinear;
  const MPI_Aint bytes_each = bytes / ranks;
  for (const Row& row : kTable) {
    if (row.collective != collective) continue;
    last = row.algorithm;
    if (bytes <= row.most_bytes && bytes_each <= row.most_bytes_each && ranks >= row.least_ranks &&
        ranks <= row.most_ranks && (!row.power_of_two || IsPowerOfTwo(ranks)) &&
        IsLegal(collective, row.algorithm, ranks, commutative))
      return row.algorithm;
  }
  return last;
}

Error ConfigureCollectives(const char* setting) {
  Forced forced{};
  std::string_view rest = setting == nullptr ? "" : setting;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    WEFT_MPI_TRY(Parse(rest.substr(0, comma), &forced));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  g_forced = forced;
  return {};
}

const Error& TuningError() {
  static const Error error = ConfigureCollectives(secure_getenv("WEFT_MPI_COLL"));
  return error;
}

}  // namespace weft::mpi
