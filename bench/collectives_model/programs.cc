#include "bench/collectives_model/programs.h"

#include <algorithm>
#include <utility>

#include "bench/collectives_model/address_range.h"
#include "mpi_hybrid/coll/algorithms.h"

namespace weft::bench {
namespace {

using mpi::Algorithm;
using mpi::Collective;

constexpr int kRoot = 0;
constexpr MPI_Aint kMostData = MPI_Aint{16} << 30;

// The data of one rank. All ranks have the same addresses, at which no memory is.
class Data {
 public:
  Data(const Case& one, int ranks) : one_(one), ranks_(ranks), send_(Room()), receive_(Room()) {
    const MPI_Aint elements = Elements();
    for (int rank = 0; rank < ranks; ++rank) counts_.push_back(elements / ranks + (rank < elements % ranks ? 1 : 0));
    for (MPI_Aint begin = 0; const MPI_Aint count : counts_)
      displacements_.push_back(std::exchange(begin, begin + count));
  }

  // The bytes of a rank that has the most.
  static MPI_Aint BytesOf(const Case& one, int ranks) {
    const bool is_block = one.collective == Collective::kGather || one.collective == Collective::kScatter ||
                          one.collective == Collective::kAllToAll;
    return is_block ? one.bytes * ranks : one.bytes;
  }
  mpi::Uniform Block(const void* buffer, MPI_Aint bytes) const {
    return {buffer, bytes, mpi::Datatype::Find(MPI_BYTE)};
  }
  mpi::Reduction Reduction() const {
    return {send_.begin(), receive_.begin(), Elements(), mpi::Datatype::Find(MPI_INT), mpi::Op::Find(MPI_SUM)};
  }
  void Build(mpi::Schedule& schedule, mpi::Place place, Algorithm algorithm) const;
  void Build(mpi::Schedule& schedule, const mpi::TwoLevels& levels) const;

 private:
  size_t Room() const { return static_cast<size_t>(BytesOf(one_, ranks_) + 4 * ranks_ + 4096); }
  // Of reductions, rounded up, and of the blocks of kAllGatherV.
  MPI_Aint Elements() const { return one_.collective == Collective::kAllGatherV ? one_.bytes : (one_.bytes + 3) / 4; }

  const Case one_;
  const int ranks_;
  AddressRange send_, receive_;
  std::vector<MPI_Aint> counts_, displacements_;
};

void Data::Build(mpi::Schedule& schedule, mpi::Place place, Algorithm algorithm) const {
  const mpi::Datatype& byte = *mpi::Datatype::Find(MPI_BYTE);
  const MPI_Aint bytes = one_.bytes, each = (bytes + ranks_ - 1) / ranks_;
  void* const send = send_.begin();
  void* const receive = receive_.begin();
  switch (one_.collective) {
    case Collective::kBroadcast:
      return mpi::BuildBroadcast(schedule, place, algorithm, receive, bytes, byte, kRoot);
    case Collective::kGather:
      return mpi::BuildGather(schedule, place, algorithm, Block(send, bytes), Block(receive, bytes), kRoot);
    case Collective::kScatter:
      return mpi::BuildScatter(schedule, place, algorithm, Block(send, bytes), Block(receive, bytes), kRoot);
    case Collective::kAllGather:
      return mpi::BuildAllGather(schedule, place, algorithm, Block(send, each), Block(receive, each));
    case Collective::kAllGatherV:
      return mpi::BuildAllGatherV(schedule, place, algorithm, Block(send, counts_[static_cast<size_t>(place.rank)]),
                                  {receive, counts_, displacements_, &byte, {}});
    case Collective::kAllToAll:
      return mpi::BuildAllToAll(schedule, place, algorithm, Block(send, bytes), Block(receive, bytes));
    case Collective::kReduce:
      return mpi::BuildReduce(schedule, place, algorithm, Reduction(), kRoot);
    case Collective::kAllReduce:
      return mpi::BuildAllReduce(schedule, place, algorithm, Reduction());
    case Collective::kReduceScatter:
      return mpi::BuildReduceScatter(schedule, place, algorithm, Reduction(), counts_);
  }
}

void Data::Build(mpi::Schedule& schedule, const mpi::TwoLevels& levels) const {
  const mpi::Uniform send = Block(send_.begin(), one_.bytes), receive = Block(receive_.begin(), one_.bytes);
  const MPI_Aint each = (one_.bytes + ranks_ - 1) / ranks_;
  switch (one_.collective) {
    case Collective::kBroadcast:
      return levels.BuildBroadcast(schedule, receive_.begin(), one_.bytes, *mpi::Datatype::Find(MPI_BYTE), kRoot);
    case Collective::kGather:
      return levels.BuildGather(schedule, send, receive, kRoot);
    case Collective::kScatter:
      return levels.BuildScatter(schedule, send, receive, kRoot);
    case Collective::kAllGather:
      return levels.BuildAllGather(schedule, Block(send_.begin(), each), Block(receive_.begin(), each));
    case Collective::kAllToAll:
      return levels.BuildAllToAll(schedule, send, receive);
    case Collective::kReduce:
      return levels.BuildReduce(schedule, Reduction(), kRoot);
    case Collective::kAllReduce:
      return levels.BuildAllReduce(schedule, Reduction());
    case Collective::kReduceScatter:
      return levels.BuildReduceScatter(schedule, Reduction(), counts_);
    case Collective::kAllGatherV:
      break;
  }
}

// The root is the first rank of its host, so that the first ranks speak for their hosts.
void BuildInLevels(mpi::Schedule& schedule, const Data& data, const Case& one, const Layout& layout, int rank,
                   const Way& way) {
  const std::vector<int> beside = layout.RanksBeside(rank), first = layout.FirstRanks();
  const mpi::Place in_host{rank - beside.front(), static_cast<int>(beside.size())};
  const mpi::Place among_hosts{layout.host_of()[static_cast<size_t>(rank)], layout.hosts()};
  const mpi::Datatype& byte = *mpi::Datatype::Find(MPI_BYTE);
  mpi::Reduction reduction = data.Reduction();
  if (one.collective != Collective::kBroadcast) {
    schedule.Among(beside);
    mpi::BuildReduce(schedule, in_host, way.within, reduction, 0);
    schedule.EndRound();
    reduction.send = reduction.receive;
  }
  if (in_host.rank == 0) {
    schedule.Among(first);
    if (one.collective == Collective::kBroadcast)
      mpi::BuildBroadcast(schedule, among_hosts, way.algorithm, reduction.receive, one.bytes, byte, 0);
    else if (one.collective == Collective::kReduce)
      mpi::BuildReduce(schedule, among_hosts, way.algorithm, reduction, 0);
    else
      mpi::BuildAllReduce(schedule, among_hosts, way.algorithm, reduction);
    schedule.EndRound();
  }
  if (one.collective != Collective::kReduce) {
    schedule.Among(beside);
    const Algorithm within = one.collective == Collective::kBroadcast ? way.within : Algorithm::kBinomial;
    mpi::BuildBroadcast(schedule, in_host, within, reduction.receive, one.bytes, byte, 0);
  }
  schedule.Among({});
}

// Copies in a row, and reductions, are one action.
Program Shorten(const std::vector<mpi::Step>& steps) {
  using Kind = mpi::Step::Kind;
  constexpr auto kKindOf = [](Kind kind) {
    switch (kind) {
      case Kind::kSend:
        return Action::Kind::kSend;
      case Kind::kReceive:
        return Action::Kind::kReceive;
      case Kind::kCopy:
        return Action::Kind::kCopy;
      case Kind::kReduce:
        return Action::Kind::kReduce;
      case Kind::kEndOfRound:
        break;
    }
    return Action::Kind::kEndOfRound;
  };
  Program program;
  Kind previous = Kind::kEndOfRound;
  for (const mpi::Step& step : steps) {
    const int64_t bytes = step.type == nullptr ? 0 : step.count * step.type->size;
    if (step.kind == previous && (step.kind == Kind::kCopy || step.kind == Kind::kReduce))
      program.back().bytes += bytes;
    else
      program.push_back({kKindOf(step.kind), step.peer, bytes});
    previous = step.kind;
  }
  program.shrink_to_fit();
  return program;
}

}  // namespace

Layout::Layout(int ranks, int hosts) {
  for (int rank = 0; rank < ranks; ++rank)
    host_of_.push_back(static_cast<int>(static_cast<int64_t>(rank) * hosts / ranks));
}

std::vector<int> Layout::RanksBeside(int rank) const {
  const auto [begin, end] = std::equal_range(host_of_.begin(), host_of_.end(), host_of_[static_cast<size_t>(rank)]);
  std::vector<int> result;
  for (auto at = begin; at != end; ++at) result.push_back(static_cast<int>(at - host_of_.begin()));
  return result;
}

std::vector<int> Layout::FirstRanks() const {
  std::vector<int> result;
  for (int host = 0; host < hosts(); ++host)
    result.push_back(static_cast<int>(std::lower_bound(host_of_.begin(), host_of_.end(), host) - host_of_.begin()));
  return result;
}

std::string ToString(const Way& way) {
  if (way.levels == Way::Levels::kLibrary) return "two_levels";
  const std::string name(NameOfAlgorithm(way.algorithm));
  return way.levels == Way::Levels::kNone ? name : std::string(NameOfAlgorithm(way.within)) + "+" + name;
}

Way WayOfWeft(const Case& one, const Layout& layout) {
  if (layout.has_two_levels() && layout.LevelsOf(0).AreFor(one.collective, one.bytes)) return {Algorithm::kAutomatic, Way::Levels::kLibrary};
  return {mpi::Choose(one.collective, one.bytes, layout.ranks())};
}

std::vector<Way> AllWays(const Case& one, const Layout& layout) {
  std::vector<Way> ways;
  for (const Algorithm algorithm : mpi::AlgorithmsOf(one.collective)) {
    if (mpi::IsLegal(one.collective, algorithm, layout.ranks(), /*commutative=*/true)) ways.push_back({algorithm});
  }
  return ways;
}

std::optional<std::vector<Program>> MakePrograms(const Case& one, const Way& way, const Layout& layout,
                                                 size_t most_actions) {
  if (Data::BytesOf(one, layout.ranks()) > kMostData) return std::nullopt;
  const Data data(one, layout.ranks());
  std::vector<Program> programs;
  mpi::Schedule schedule;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    schedule.Clear();
    if (way.levels == Way::Levels::kLibrary)
      data.Build(schedule, layout.LevelsOf(rank));
    else if (way.levels == Way::Levels::kGiven)
      BuildInLevels(schedule, data, one, layout, rank, way);
    else
      data.Build(schedule, {rank, layout.ranks()}, way.algorithm);
    programs.push_back(Shorten(schedule.steps()));
    if (programs.back().size() > most_actions) return std::nullopt;
    most_actions -= programs.back().size();
  }
  return programs;
}

}  // namespace weft::bench
