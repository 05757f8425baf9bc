#include "mpi_hybrid/coll/clients.h"

#include <algorithm>
#include <map>

#include "base/check.h"

namespace weft::mpi {
namespace {

const Datatype& Byte() {
  static const Datatype& byte = *Datatype::Find(MPI_BYTE);
  return byte;
}

// The highest bit of a tree's number; -1 of 0, which has no parent.
int HighestBit(int number) {
  int bit = -1;
  for (; number != 0; number /= 2) ++bit;
  return bit;
}

// All children of `number` in the tree whose parents have the number without the highest bit, ascending.
std::vector<int> ChildrenByHighestBit(int number, int count) {
  std::vector<int> children;
  for (int bit = HighestBit(number) + 1; number + (1 << bit) < count; ++bit) children.push_back(number + (1 << bit));
  return children;
}
int ParentByHighestBit(int number) { return number & ~(1 << HighestBit(number)); }

// Place 0 hears from all others.
void CollectAtLeaders(Schedule& schedule, Place place) {
  if (place.rank != 0) schedule.Send(nullptr, 0, Byte(), 0);
  for (int member = 1; place.rank == 0 && member < place.size; ++member) schedule.Receive(nullptr, 0, Byte(), member);
  schedule.EndRound();
}

}  // namespace

Clients::Clients(int rank, std::span<const int> clients, Limits limits) : rank_(rank), limits_(limits) {
  std::map<int, int> numbers;
  for (size_t i = 0; i < clients.size(); ++i) {
    const auto [at, is_new] = numbers.emplace(clients[i], count());
    if (is_new) members_.emplace_back();
    client_of_.push_back(at->second);
    members_[static_cast<size_t>(at->second)].push_back(static_cast<int>(i));
  }
  const std::span<const int> here = MembersOf(client());
  place_ = static_cast<int>(std::find(here.begin(), here.end(), rank) - here.begin());
}

std::vector<int> Clients::SpeakersFor(int root) const {
  std::vector<int> speakers;
  for (int client = 0; client < count(); ++client) speakers.push_back(client == ClientOf(root) ? root : MasterOf(client));
  return speakers;
}

int Clients::SpeakerHere(int root) const {
  if (client() != ClientOf(root)) return 0;
  const std::span<const int> here = MembersOf(client());
  return static_cast<int>(std::find(here.begin(), here.end(), root) - here.begin());
}

void Clients::BuildBarrier(Schedule& schedule) const {
  schedule.Among(MembersOf(client()));
  CollectAtLeaders(schedule, WithinClient());
  if (place_ == 0) {
    const std::vector<int> masters = SpeakersFor(0);
    schedule.Among(masters);
    schedule.Tagged(kBarrierTag);
    std::vector<int> children;
    if (IsTree()) {
      children = ChildrenByHighestBit(client(), count());
    } else if (client() == 0) {
      for (int other = 1; other < count(); ++other) children.push_back(other);
    }
    for (auto child = children.rbegin(); child != children.rend(); ++child) schedule.Receive(nullptr, 0, Byte(), *child);
    schedule.EndRound();
    if (client() != 0) {
      const int parent = IsTree() ? ParentByHighestBit(client()) : 0;
      schedule.Send(nullptr, 0, Byte(), parent);
      schedule.Receive(nullptr, 0, Byte(), parent);
      schedule.EndRound();
    }
    for (int child : children) schedule.Send(nullptr, 0, Byte(), child);
    schedule.EndRound();
    schedule.Tagged(0);
  }
  schedule.Among(MembersOf(client()));
  mpi::BuildBroadcast(schedule, WithinClient(), Algorithm::kBinomial, nullptr, 0, Byte(), 0);
  schedule.Among({});
}

void Clients::BuildBroadcast(Schedule& schedule, void* buffer, MPI_Aint count, const Datatype& type, int root) const {
  const int speaker = SpeakerHere(root);
  if (place_ == speaker) {
    const std::vector<int> speakers = SpeakersFor(root);
    const int me = Relative(client(), root);
    schedule.Among(speakers);
    schedule.Tagged(kBroadcastTag);
    if (me != 0) {
      schedule.Receive(buffer, count, type, Real(IsTree() ? ParentByHighestBit(me) : 0, root));
      schedule.EndRound();
    }
    if (IsTree()) {
      for (int child : ChildrenByHighestBit(me, this->count())) schedule.Send(buffer, count, type, Real(child, root));
    } else if (me == 0) {
      for (int other = 0; other < this->count(); ++other) {
        if (other != client()) schedule.Send(buffer, count, type, other);
      }
    }
    schedule.EndRound();
    schedule.Tagged(0);
  }
  schedule.Among(MembersOf(client()));
  mpi::BuildBroadcast(schedule, WithinClient(), Algorithm::kBinomial, buffer, count, type, speaker);
  schedule.Among({});
}

void Clients::ReduceInOrder(Schedule& schedule, const Reduction& reduction, int root) const {
  const MPI_Aint count = reduction.count;
  const Datatype& type = *reduction.type;
  schedule.Tagged(kReduceTag);
  if (rank_ != root) {
    schedule.Send(reduction.send, count, type, root);
    schedule.EndRound();
    return schedule.Tagged(0);
  }
  const void* own = reduction.send;
  if (own == reduction.receive) {
    void* copy = schedule.TemporaryFor(count, type);
    schedule.Copy(own, copy, count, type);
    own = copy;
  }
  void* const next = schedule.TemporaryFor(count, type);
  for (int rank = size() - 1; rank >= 0; --rank) {
    const bool is_last = rank == size() - 1;
    if (rank == root) {
      if (is_last)
        schedule.Copy(own, reduction.receive, count, type);
      else
        schedule.Reduce(own, reduction.receive, count, type, *reduction.op);
      continue;
    }
    schedule.Receive(is_last ? reduction.receive : next, count, type, rank);
    schedule.EndRound();
    if (!is_last) schedule.Reduce(next, reduction.receive, count, type, *reduction.op);
  }
  schedule.Tagged(0);
}

void Clients::BuildReduce(Schedule& schedule, const Reduction& reduction, int root) const {
  if (!reduction.op->commutative) return ReduceInOrder(schedule, reduction, root);
  const int speaker = SpeakerHere(root);
  Reduction of_client = reduction;
  of_client.receive = rank_ == root ? reduction.receive : nullptr;
  if (place_ == speaker && rank_ != root) of_client.receive = schedule.TemporaryFor(reduction.count, *reduction.type);
  schedule.Among(MembersOf(client()));
  mpi::BuildReduce(schedule, WithinClient(), Algorithm::kBinomial, of_client, speaker);
  schedule.EndRound();
  if (place_ == speaker) {
    const std::vector<int> speakers = SpeakersFor(root);
    schedule.Among(speakers);
    schedule.Tagged(kReduceTag);
    Reduction between = reduction;
    between.send = of_client.receive;
    between.receive = rank_ == root ? reduction.receive : nullptr;
    if (IsTree()) {
      mpi::BuildReduce(schedule, AmongClients(), Algorithm::kBinomial, between, ClientOf(root));
    } else if (rank_ != root) {
      schedule.Send(between.send, between.count, *between.type, ClientOf(root));
    } else {
      void* const next = schedule.TemporaryFor(between.count, *between.type);
      for (int other = 0; other < count(); ++other) {
        if (other == client()) continue;
        schedule.Receive(next, between.count, *between.type, other);
        schedule.EndRound();
        schedule.Reduce(next, between.receive, between.count, *between.type, *between.op);
      }
    }
    schedule.EndRound();
    schedule.Tagged(0);
  }
  schedule.Among({});
}

void Clients::BuildAllReduce(Schedule& schedule, const Reduction& reduction) const {
  BuildReduce(schedule, reduction, 0);
  BuildBroadcast(schedule, reduction.receive, reduction.count, *reduction.type, 0);
}

void Clients::BuildReduceScatter(Schedule& schedule, const Reduction& reduction, std::span<const MPI_Aint> counts) const {
  Reduction whole = reduction;
  whole.count = 0;
  std::vector<MPI_Aint> displacements;
  for (MPI_Aint count : counts) {
    displacements.push_back(whole.count);
    whole.count += count;
  }
  whole.receive = rank_ == 0 ? schedule.TemporaryFor(whole.count, *reduction.type) : nullptr;
  BuildReduce(schedule, whole, 0);
  Varying parts;
  parts.buffer = whole.receive;
  parts.counts = counts;
  parts.displacements = displacements;
  parts.type = reduction.type;
  BuildScatterV(schedule, parts, {reduction.receive, counts[static_cast<size_t>(rank_)], reduction.type}, 0);
}

void Clients::BuildScan(Schedule& schedule, const Reduction& reduction, bool exclusive) const {
  const MPI_Aint count = reduction.count;
  const Datatype& type = *reduction.type;
  const bool is_first = rank_ == 0, is_last = rank_ == size() - 1;
  schedule.Tagged(kScanTag);
  const void* own = reduction.send;
  if (own == reduction.receive && !is_first) {
    void* copy = schedule.TemporaryFor(count, type);
    schedule.Copy(own, copy, count, type);
    own = copy;
  }
  // With this rank's data: what the next rank gets.
  void* sum = exclusive ? nullptr : reduction.receive;
  if (exclusive && !is_first && !is_last) sum = schedule.TemporaryFor(count, type);
  void* before = nullptr;
  if (!is_first) {
    before = exclusive ? reduction.receive : schedule.TemporaryFor(count, type);
    schedule.Receive(before, count, type, rank_ - 1);
    schedule.EndRound();
  }
  if (sum != nullptr) {
    schedule.Copy(own, sum, count, type);
    if (before != nullptr) schedule.Reduce(before, sum, count, type, *reduction.op);
  }
  if (!is_last) schedule.Send(sum != nullptr ? sum : own, count, type, rank_ + 1);
  schedule.EndRound();
  schedule.Tagged(0);
}

}  // namespace weft::mpi
