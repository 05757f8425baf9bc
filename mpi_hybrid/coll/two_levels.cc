#include "mpi_hybrid/coll/two_levels.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "mpi_hybrid/coll/tuning.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/datatype/predefined.h"

namespace weft::mpi {
namespace {

// A word from each to place 0, up a binomial tree.
void Collect(Schedule& schedule, Place place) {
  const Datatype& byte = *Datatype::Find(MPI_BYTE);
  int mask = 1;
  for (; mask < place.size && (place.rank & mask) == 0; mask *= 2) {
    if (place.rank + mask < place.size) schedule.Receive(nullptr, 0, byte, place.rank + mask);
  }
  schedule.EndRound();
  if (place.rank != 0) schedule.Send(nullptr, 0, byte, place.rank - mask);
  schedule.EndRound();
}

// Whatever the order and the grouping, the result has the same bits.
bool IsExact(const Op& op, const Datatype& type) {
  const Basic* const basic = FindBasic(type.OnlyBasic());
  return op.builtin && basic != nullptr && IsIntegral(basic->kind);
}

}  // namespace

TwoLevels::TwoLevels(int rank, std::span<const int> hosts) {
  std::map<int, int> numbers;
  for (size_t i = 0; i < hosts.size(); ++i) {
    const auto [at, is_new] = numbers.emplace(hosts[i], static_cast<int>(leaders_.size()));
    if (is_new) leaders_.push_back(static_cast<int>(i));
    host_of_.push_back(at->second);
  }
  host_ = host_of_[static_cast<size_t>(rank)];
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (host_of_[i] != host_) continue;
    if (static_cast<int>(i) == rank) place_ = static_cast<int>(here_.size());
    here_.push_back(static_cast<int>(i));
  }
  first_of_.resize(leaders_.size() + 1);
  for (const int host : host_of_) ++first_of_[static_cast<size_t>(host) + 1];
  most_each_ = *std::max_element(first_of_.begin(), first_of_.end());
  is_equal_ = std::all_of(first_of_.begin() + 1, first_of_.end(), [this](int ranks) { return ranks == most_each_; });
  std::partial_sum(first_of_.begin(), first_of_.end(), first_of_.begin());
  order_.resize(hosts.size());
  std::vector<int> next = first_of_;
  for (size_t i = 0; i < hosts.size(); ++i) order_[static_cast<size_t>(next[static_cast<size_t>(host_of_[i])]++)] = static_cast<int>(i);
  in_order_ = std::is_sorted(order_.begin(), order_.end());
  const int size = static_cast<int>(hosts.size()), each = size / static_cast<int>(leaders_.size());
  is_even_ = IsPowerOfTwo(size) && IsPowerOfTwo(static_cast<int>(leaders_.size()));
  for (int i = 0; i < size && is_even_; ++i) is_even_ = host_of_[static_cast<size_t>(i)] == i / each;
}

const TwoLevels* TwoLevels::Of(Comm& comm) {
  const Job& job = ThisJob();
  if (job.one_host || job.host_of.empty() || comm.inter) return nullptr;
  if (comm.levels == nullptr) {
    std::vector<int> hosts;
    for (int rank = 0; rank < comm.size(); ++rank) {
      const auto process = static_cast<size_t>(comm.peer(rank));
      hosts.push_back(process < job.host_of.size() ? job.host_of[process] : -1);
    }
    const bool all = std::find(hosts.begin(), hosts.end(), -1) == hosts.end();
    // Without levels it stands for nothing else.
    comm.levels = std::make_unique<TwoLevels>(comm.rank, all ? hosts : std::vector<int>(hosts.size(), 0));
  }
  const auto& levels = static_cast<const TwoLevels&>(*comm.levels);
  return levels.exists() ? &levels : nullptr;
}

bool TwoLevels::AreFor(Collective collective, MPI_Aint bytes) const {
  switch (collective) {
    case Collective::kGather:
    case Collective::kScatter:
      return most_each_ * bytes <= kMostBytes;
    case Collective::kAllGather:
      return bytes <= kMostGathered;
    case Collective::kAllToAll:
      return most_each_ * size() * bytes <= kMostExchanged && int64_t{most_each_} * size() <= kMostPieces;
    case Collective::kBroadcast:
    case Collective::kReduce:
    case Collective::kAllReduce:
    case Collective::kReduceScatter:
      return bytes <= kMostBytes;
    case Collective::kAllGatherV:
      return false;
  }
  return false;
}

bool TwoLevels::KeepsResult(const Op& op, const Datatype& type, MPI_Aint bytes) const {
  if (IsExact(op, type)) return true;
  const auto chosen = [&](size_t ranks) { return Choose(Collective::kAllReduce, bytes, static_cast<int>(ranks), op.commutative); };
  return is_even_ && chosen(host_of_.size()) == Algorithm::kDoubling && chosen(leaders_.size()) == Algorithm::kDoubling;
}

bool TwoLevels::KeepsResult(const Op& op, const Datatype& type, MPI_Aint bytes, int root) const {
  if (IsExact(op, type)) return true;
  const size_t each = host_of_.size() / leaders_.size();
  return is_even_ && static_cast<size_t>(root) % each == 0 &&
         Choose(Collective::kReduce, bytes, static_cast<int>(host_of_.size()), op.commutative) == Algorithm::kBinomial;
}

bool TwoLevels::KeepsScattered(const Op& op, const Datatype& type, MPI_Aint bytes) const {
  if (IsExact(op, type)) return true;
  return is_even_ && Choose(Collective::kReduceScatter, bytes, size(), op.commutative) == Algorithm::kDoubling &&
         Choose(Collective::kAllReduce, bytes, AmongHosts().size, op.commutative) == Algorithm::kDoubling;
}

std::vector<int> TwoLevels::SpeakersFor(int root) const {
  std::vector<int> speakers = leaders_;
  speakers[static_cast<size_t>(host_of_[static_cast<size_t>(root)])] = root;
  return speakers;
}

int TwoLevels::SpeakerHere(int root) const {
  const auto at = std::find(here_.begin(), here_.end(), root);
  return at == here_.end() ? 0 : static_cast<int>(at - here_.begin());
}

void TwoLevels::BuildBarrier(Schedule& schedule) const {
  schedule.Among(here_);
  Collect(schedule, InHost());
  if (place_ == 0) {
    schedule.Among(leaders_);
    mpi::BuildBarrier(schedule, AmongHosts());
  }
  schedule.Among(here_);
  mpi::BuildBroadcast(schedule, InHost(), Algorithm::kBinomial, nullptr, 0, *Datatype::Find(MPI_BYTE), 0);
}

void TwoLevels::BuildBroadcast(Schedule& schedule, void* buffer, MPI_Aint count, const Datatype& type, int root) const {
  const int speaker = SpeakerHere(root);
  if (place_ == speaker) {
    const std::vector<int> speakers = SpeakersFor(root);
    schedule.Among(speakers);
    const Algorithm algorithm = Choose(Collective::kBroadcast, count * type.size, AmongHosts().size);
    mpi::BuildBroadcast(schedule, AmongHosts(), algorithm, buffer, count, type, host_of_[static_cast<size_t>(root)]);
  }
  schedule.Among(here_);
  mpi::BuildBroadcast(schedule, InHost(), Algorithm::kBinomial, buffer, count, type, speaker);
}

void TwoLevels::BuildReduce(Schedule& schedule, const Reduction& reduction, int root) const {
  const int speaker = SpeakerHere(root);
  const bool is_root = here_[static_cast<size_t>(place_)] == root;
  Reduction of_host = reduction;
  of_host.receive = is_root ? reduction.receive : nullptr;
  if (place_ == speaker && !is_root) of_host.receive = schedule.TemporaryFor(reduction.count, *reduction.type);
  schedule.Among(here_);
  mpi::BuildReduce(schedule, InHost(), Algorithm::kBinomial, of_host, speaker);
  if (place_ != speaker) return;
  schedule.EndRound();
  const std::vector<int> speakers = SpeakersFor(root);
  schedule.Among(speakers);
  Reduction between = reduction;
  between.send = of_host.receive;
  between.receive = is_root ? reduction.receive : nullptr;
  mpi::BuildReduce(schedule, AmongHosts(), Algorithm::kBinomial, between, host_of_[static_cast<size_t>(root)]);
  schedule.Among({});
}

void TwoLevels::ReduceToLeaders(Schedule& schedule, const Reduction& reduction) const {
  schedule.Among(here_);
  mpi::BuildReduce(schedule, InHost(), Algorithm::kBinomial, reduction, 0);
  schedule.EndRound();
  if (place_ != 0) return;
  schedule.Among(leaders_);
  Reduction between = reduction;
  between.send = reduction.receive;
  const MPI_Aint bytes = reduction.count * reduction.type->size;
  mpi::BuildAllReduce(schedule, AmongHosts(), Choose(Collective::kAllReduce, bytes, AmongHosts().size, reduction.op->commutative), between);
  schedule.EndRound();
}

void TwoLevels::BuildAllReduce(Schedule& schedule, const Reduction& reduction) const {
  ReduceToLeaders(schedule, reduction);
  schedule.Among(here_);
  mpi::BuildBroadcast(schedule, InHost(), Algorithm::kBinomial, reduction.receive, reduction.count, *reduction.type, 0);
}

void TwoLevels::BuildReduceScatter(Schedule& schedule, const Reduction& reduction, std::span<const MPI_Aint> counts) const {
  const Datatype& type = *reduction.type;
  std::vector<MPI_Aint> begins(counts.size() + 1);
  std::partial_sum(counts.begin(), counts.end(), begins.begin() + 1);
  Reduction whole = reduction;
  whole.count = begins.back();
  whole.receive = place_ == 0 ? schedule.TemporaryFor(whole.count, type) : nullptr;
  ReduceToLeaders(schedule, whole);
  std::vector<MPI_Aint> pieces, places;
  for (const int rank : here_) {
    pieces.push_back(counts[static_cast<size_t>(rank)]);
    places.push_back(begins[static_cast<size_t>(rank)]);
  }
  schedule.Among(here_);
  mpi::BuildScatterV(schedule, InHost(), {whole.receive, pieces, places, &type, {}}, {reduction.receive, pieces[static_cast<size_t>(place_)], &type}, 0);
  schedule.Among({});
}

}  // namespace weft::mpi
