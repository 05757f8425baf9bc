#include <algorithm>

#include "mpi_hybrid/coll/tuning.h"
#include "mpi_hybrid/coll/two_levels.h"

// Collectives that move blocks. What several hosts get or give is in the order of hosts, and within one in that of ranks.
namespace weft::mpi {
namespace {

const Datatype& InBytes() { return *Datatype::Find(MPI_BYTE); }
MPI_Aint BytesOf(const Uniform& side) { return side.count * side.type->size; }

}  // namespace

template <typename Move>
void TwoLevels::ForEachRun(Move move) const {
  for (int from = 0, to; from < size(); from = to) {
    to = from + 1;
    while (to < size() && order_[static_cast<size_t>(to)] == order_[static_cast<size_t>(to) - 1] + 1) ++to;
    move(from, order_[static_cast<size_t>(from)], to - from);
  }
}

void TwoLevels::PackInOrder(Schedule& schedule, const Uniform& from, uint8_t* to) const {
  ForEachRun([&](int place, int rank, int ranks) {
    schedule.Pack(At(from.buffer, rank * from.count, *from.type), ranks * from.count, *from.type, to + place * BytesOf(from));
  });
}

void TwoLevels::UnpackInOrder(Schedule& schedule, const uint8_t* from, const Uniform& to) const {
  ForEachRun([&](int place, int rank, int ranks) {
    schedule.Unpack(from + place * BytesOf(to), At(const_cast<void*>(to.buffer), rank * to.count, *to.type), ranks * to.count, *to.type);
  });
}

TwoLevels::ByHost TwoLevels::BlocksByHost(MPI_Aint block) const {
  ByHost by_host;
  for (int host = 0; host < AmongHosts().size; ++host) {
    by_host.counts.push_back(RanksOn(host) * block);
    by_host.displacements.push_back(FirstOf(host) * block);
  }
  return by_host;
}

void TwoLevels::BuildGather(Schedule& schedule, const Uniform& send, const Uniform& receive, int root) const {
  const bool is_root = Me() == root;
  const bool in_place = send.buffer == MPI_IN_PLACE;
  const Uniform mine = in_place ? Uniform{At(receive.buffer, root * receive.count, *receive.type), receive.count, receive.type} : send;
  const MPI_Aint block = BytesOf(mine);
  const int speaker = SpeakerHere(root);
  uint8_t *all = nullptr, *of_host = nullptr;
  if (is_root) {
    all = schedule.Temporary(size() * block);
    of_host = all + FirstOf(host_) * block;
  } else if (place_ == speaker) {
    of_host = schedule.Temporary(InHost().size * block);
  }
  schedule.Among(here_);
  mpi::BuildGather(schedule, InHost(), Choose(Collective::kGather, block, InHost().size), mine, {of_host, block, &InBytes()}, speaker);
  if (place_ != speaker) return schedule.Among({});
  schedule.EndRound();
  const std::vector<int> speakers = SpeakersFor(root);
  schedule.Among(speakers);
  const int root_host = host_of_[static_cast<size_t>(root)];
  const MPI_Aint of_each = InHost().size * block;
  const Uniform from_host = is_root ? Uniform{MPI_IN_PLACE, 0, &InBytes()} : Uniform{of_host, of_each, &InBytes()};
  if (is_equal_) {
    mpi::BuildGather(schedule, AmongHosts(), Choose(Collective::kGather, of_each, AmongHosts().size), from_host, {all, of_each, &InBytes()}, root_host);
  } else {
    const ByHost by_host = BlocksByHost(block);
    mpi::BuildGatherV(schedule, AmongHosts(), from_host, {all, by_host.counts, by_host.displacements, &InBytes(), {}}, root_host);
  }
  schedule.Among({});
  if (is_root) UnpackInOrder(schedule, all, receive);
}

void TwoLevels::BuildScatter(Schedule& schedule, const Uniform& send, const Uniform& receive, int root) const {
  const bool is_root = Me() == root;
  const MPI_Aint block = BytesOf(is_root ? send : receive);
  const int speaker = SpeakerHere(root);
  uint8_t *all = nullptr, *of_host = nullptr;
  if (place_ == speaker) {
    const MPI_Aint of_each = InHost().size * block;
    if (is_root) {
      all = schedule.Temporary(size() * block);
      of_host = all + FirstOf(host_) * block;
      PackInOrder(schedule, send, all);
    } else {
      of_host = schedule.Temporary(of_each);
    }
    const std::vector<int> speakers = SpeakersFor(root);
    schedule.Among(speakers);
    const int root_host = host_of_[static_cast<size_t>(root)];
    const Uniform to_host = is_root ? Uniform{MPI_IN_PLACE, 0, &InBytes()} : Uniform{of_host, of_each, &InBytes()};
    if (is_equal_) {
      mpi::BuildScatter(schedule, AmongHosts(), Choose(Collective::kScatter, of_each, AmongHosts().size), {all, of_each, &InBytes()}, to_host, root_host);
    } else {
      const ByHost by_host = BlocksByHost(block);
      mpi::BuildScatterV(schedule, AmongHosts(), {all, by_host.counts, by_host.displacements, &InBytes(), {}}, to_host, root_host);
    }
    schedule.EndRound();
    schedule.Among({});
  }
  schedule.Among(here_);
  mpi::BuildScatter(schedule, InHost(), Choose(Collective::kScatter, block, InHost().size), {of_host, block, &InBytes()}, receive, speaker);
  schedule.Among({});
}

void TwoLevels::BuildAllGather(Schedule& schedule, const Uniform& send, const Uniform& receive) const {
  const MPI_Aint block = BytesOf(receive), total = size() * block;
  const Uniform mine =
      send.buffer == MPI_IN_PLACE ? Uniform{At(receive.buffer, Me() * receive.count, *receive.type), receive.count, receive.type} : send;
  const bool direct = in_order_ && receive.type->dense;
  uint8_t* const all = direct ? static_cast<uint8_t*>(const_cast<void*>(receive.buffer)) : schedule.Temporary(total);
  schedule.Among(here_);
  mpi::BuildGather(schedule, InHost(), Choose(Collective::kGather, block, InHost().size), mine,
                   {place_ == 0 ? all + FirstOf(host_) * block : nullptr, block, &InBytes()}, 0);
  if (place_ == 0) {
    schedule.EndRound();
    schedule.Among(leaders_);
    const Uniform there{MPI_IN_PLACE, 0, &InBytes()};
    const int hosts = AmongHosts().size;
    if (is_equal_) {
      mpi::BuildAllGather(schedule, AmongHosts(), Choose(Collective::kAllGather, total, hosts), there, {all, InHost().size * block, &InBytes()});
    } else {
      const ByHost by_host = BlocksByHost(block);
      mpi::BuildAllGatherV(schedule, AmongHosts(), Choose(Collective::kAllGatherV, total, hosts), there,
                           {all, by_host.counts, by_host.displacements, &InBytes(), {}});
    }
    schedule.EndRound();
  }
  schedule.Among(here_);
  mpi::BuildBroadcast(schedule, InHost(), Algorithm::kBinomial, all, total, InBytes(), 0);
  schedule.EndRound();
  schedule.Among({});
  if (!direct) UnpackInOrder(schedule, all, receive);
}

// The blocks of a host's ranks go to its leader, which has then those from each of its ranks to each rank, and exchanges with each other leader those between
// the two hosts.
void TwoLevels::BuildAllToAll(Schedule& schedule, const Uniform& send, const Uniform& receive) const {
  const Uniform& from = send.buffer == MPI_IN_PLACE ? receive : send;
  const MPI_Aint block = BytesOf(from), each = size() * block;
  const int here = InHost().size;
  const auto host_bytes = [&](int host) { return here * RanksOn(host) * block; };
  uint8_t* const mine = schedule.Temporary(each);
  PackInOrder(schedule, from, mine);
  uint8_t *out = nullptr, *in = nullptr;  // by rank of this host
  if (place_ == 0) {
    out = schedule.Temporary(here * each);
    in = schedule.Temporary(here * each);
  }
  schedule.Among(here_);
  mpi::BuildGather(schedule, InHost(), Choose(Collective::kGather, each, here), {mine, each, &InBytes()}, {out, each, &InBytes()}, 0);
  if (place_ == 0) {
    schedule.EndRound();
    uint8_t* const going = schedule.Temporary(here * each);  // by host
    uint8_t* const coming = schedule.Temporary(here * each);
    std::vector<MPI_Aint> counts, displacements;
    for (int host = 0; host < AmongHosts().size; ++host) {
      counts.push_back(host_bytes(host));
      displacements.push_back(here * FirstOf(host) * block);
      for (int i = 0; i < here; ++i) {
        schedule.Copy(out + i * each + FirstOf(host) * block, going + displacements.back() + i * RanksOn(host) * block, RanksOn(host) * block, InBytes());
      }
    }
    schedule.Among(leaders_);
    if (is_equal_) {
      const MPI_Aint of_each = here * here * block;
      mpi::BuildAllToAll(schedule, AmongHosts(), Choose(Collective::kAllToAll, of_each, AmongHosts().size), {going, of_each, &InBytes()},
                         {coming, of_each, &InBytes()});
    } else {
      mpi::BuildAllToAllV(schedule, AmongHosts(), {going, counts, displacements, &InBytes(), {}}, {coming, counts, displacements, &InBytes(), {}});
    }
    schedule.EndRound();
    for (int host = 0; host < AmongHosts().size; ++host) {
      for (int i = 0; i < RanksOn(host); ++i) {
        for (int to = 0; to < here; ++to) {
          schedule.Copy(coming + displacements[static_cast<size_t>(host)] + (i * here + to) * block, in + to * each + (FirstOf(host) + i) * block, block,
                        InBytes());
        }
      }
    }
  }
  schedule.Among(here_);
  mpi::BuildScatter(schedule, InHost(), Choose(Collective::kScatter, each, here), {in, each, &InBytes()}, {mine, each, &InBytes()}, 0);
  schedule.EndRound();
  schedule.Among({});
  UnpackInOrder(schedule, mine, receive);
}

}  // namespace weft::mpi
