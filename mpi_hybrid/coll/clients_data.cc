#include <algorithm>

#include "mpi_hybrid/coll/clients.h"
#include "mpi_hybrid/datatype/external32.h"

// Gather, scatter and what is made of them; all to all.
namespace weft::mpi {
namespace {

uint8_t* Block(const Uniform& of, MPI_Aint index) { return At(const_cast<void*>(of.buffer), index * of.count, *of.type); }

uint8_t* Block(const Varying& of, int rank) {
  const auto i = static_cast<size_t>(rank);
  if (of.types.empty()) return At(const_cast<void*>(of.buffer), of.displacements[i], *of.type);
  return static_cast<uint8_t*>(const_cast<void*>(of.buffer)) + of.displacements[i];
}
const Datatype& TypeAt(const Varying& of, int rank) { return of.types.empty() ? *of.type : *of.types[static_cast<size_t>(rank)]; }

// One rank's part of an all to all.
struct Part {
  uint8_t* at;
  MPI_Aint count;
  const Datatype* type;
};

// A message to and from every other rank, in portions. `send` and `receive` give the part for a rank, and have no memory in common.
template <typename Send, typename Receive>
void ExchangeParts(Schedule& schedule, Place place, bool in_place, Send send, Receive receive) {
  if (!in_place) {
    const Part from = send(place.rank), to = receive(place.rank);
    schedule.Copy(from.at, from.count, *from.type, to.at, to.count, *to.type);
  }
  for (int first = 1; first < place.size; first += kMostOutstanding) {
    const int end = std::min(first + kMostOutstanding, place.size);
    for (int i = first; i < end; ++i) {
      const Part to = receive((place.rank - i + place.size) % place.size);
      schedule.Receive(to.at, to.count, *to.type, (place.rank - i + place.size) % place.size);
    }
    for (int i = first; i < end; ++i) {
      const int peer = (place.rank + i) % place.size;
      const Part from = send(peer);
      schedule.Send(from.at, from.count, *from.type, peer);
    }
    schedule.EndRound();
  }
}

}  // namespace

bool Clients::IsLong(const Uniform& block) const { return ExternalSize(block.count, *block.type) >= limits_.long_from; }

MPI_Aint Clients::ProcessesOf(int first, int clients, int root) const {
  MPI_Aint processes = 0;
  for (int i = first; i < first + clients; ++i) processes += static_cast<MPI_Aint>(MembersOf(Real(i, root)).size());
  return processes;
}

int Clients::SubtreeOf(int relative) const {
  if (!IsTree()) return relative == 0 ? count() : 1;
  int below = 1;
  while (below < count() && (relative & below) == 0) below *= 2;
  return std::min(below, count() - relative);
}

void Clients::GatherAtRoot(Schedule& schedule, const Uniform& send, const Uniform& receive) const {
  const int root = rank_;
  for (int member : MembersOf(client())) {
    if (member != root)
      schedule.Receive(Block(receive, member), receive.count, *receive.type, member);
    else if (send.buffer != MPI_IN_PLACE)
      schedule.Copy(send.buffer, send.count, *send.type, Block(receive, root), receive.count, *receive.type);
  }
  // Of the other clients, in the order of relative numbers.
  Uniform others = receive;
  others.buffer = schedule.TemporaryFor(ProcessesOf(1, count() - 1, root) * receive.count, *receive.type);
  schedule.Tagged(kGatherTag);
  for (int child = 1; child < count(); child += IsTree() ? child : 1) {
    const MPI_Aint before = ProcessesOf(1, child - 1, root);
    schedule.Receive(Block(others, before), ProcessesOf(child, SubtreeOf(child), root) * receive.count, *receive.type, MasterOf(Real(child, root)));
  }
  schedule.EndRound();
  schedule.Tagged(0);
  MPI_Aint index = 0;
  for (int other = 1; other < count(); ++other) {
    for (int member : MembersOf(Real(other, root)))
      schedule.Copy(Block(others, index++), Block(receive, member), receive.count, *receive.type);
  }
}

void Clients::GatherAtMaster(Schedule& schedule, const Uniform& send, int root) const {
  const int me = Relative(client(), root), subtree = SubtreeOf(me);
  const MPI_Aint processes = ProcessesOf(me, subtree, root);
  Uniform all = send;
  all.buffer = schedule.TemporaryFor(processes * send.count, *send.type);
  const std::span<const int> here = MembersOf(client());
  schedule.Copy(send.buffer, Block(all, 0), send.count, *send.type);
  for (size_t i = 1; i < here.size(); ++i) schedule.Receive(Block(all, static_cast<MPI_Aint>(i)), send.count, *send.type, here[i]);
  schedule.Tagged(kGatherTag);
  for (int step = 1; step < subtree; step *= 2) {
    const int child = me + step;
    schedule.Receive(Block(all, ProcessesOf(me, step, root)), ProcessesOf(child, SubtreeOf(child), root) * send.count, *send.type, MasterOf(Real(child, root)));
  }
  schedule.EndRound();
  const int parent = IsTree() ? me & (me - 1) : 0;
  schedule.Send(all.buffer, processes * send.count, *send.type, parent == 0 ? root : MasterOf(Real(parent, root)));
  schedule.EndRound();
  schedule.Tagged(0);
}

void Clients::BuildGather(Schedule& schedule, const Uniform& send, const Uniform& receive, int root) const {
  if (IsLong(rank_ == root ? receive : send)) {
    schedule.Tagged(kGatherTag);
    mpi::BuildGather(schedule, {rank_, size()}, Algorithm::kLinear, send, receive, root);
    return schedule.Tagged(0);
  }
  if (rank_ == root) return GatherAtRoot(schedule, send, receive);
  const int speaker = client() == ClientOf(root) ? root : MasterOf(client());
  if (rank_ == speaker) return GatherAtMaster(schedule, send, root);
  schedule.Send(send.buffer, send.count, *send.type, speaker);
  schedule.EndRound();
}

void Clients::BuildGatherV(Schedule& schedule, const Uniform& send, const Varying& receive, int root) const {
  schedule.Tagged(kGatherVTag);
  if (rank_ != root) schedule.Send(send.buffer, send.count, *send.type, root);
  for (int rank = 0; rank_ == root && rank < size(); ++rank) {
    const MPI_Aint count = receive.counts[static_cast<size_t>(rank)];
    if (rank != root)
      schedule.ReceiveAtMost(Block(receive, rank), count, *receive.type, rank);
    else if (send.buffer != MPI_IN_PLACE)
      schedule.Copy(send.buffer, send.count, *send.type, Block(receive, rank), count, *receive.type);
  }
  schedule.EndRound();
  schedule.Tagged(0);
}

void Clients::ScatterAtRoot(Schedule& schedule, const Uniform& send, const Uniform& receive) const {
  const int root = rank_;
  Uniform others = send;
  others.buffer = schedule.TemporaryFor(ProcessesOf(1, count() - 1, root) * send.count, *send.type);
  MPI_Aint index = 0;
  for (int other = 1; other < count(); ++other) {
    for (int member : MembersOf(Real(other, root))) schedule.Copy(Block(send, member), Block(others, index++), send.count, *send.type);
  }
  schedule.Tagged(kScatterTag);
  for (int child = 1; child < count(); child += IsTree() ? child : 1) {
    schedule.Send(Block(others, ProcessesOf(1, child - 1, root)), ProcessesOf(child, SubtreeOf(child), root) * send.count, *send.type,
                  MasterOf(Real(child, root)));
  }
  schedule.Tagged(0);
  for (int member : MembersOf(client())) {
    if (member != root)
      schedule.Send(Block(send, member), send.count, *send.type, member);
    else if (receive.buffer != MPI_IN_PLACE)
      schedule.Copy(Block(send, root), send.count, *send.type, const_cast<void*>(receive.buffer), receive.count, *receive.type);
  }
  schedule.EndRound();
}

void Clients::ScatterAtMaster(Schedule& schedule, const Uniform& receive, int root) const {
  const int me = Relative(client(), root), subtree = SubtreeOf(me);
  const MPI_Aint processes = ProcessesOf(me, subtree, root);
  Uniform all = receive;
  all.buffer = schedule.TemporaryFor(processes * receive.count, *receive.type);
  const int parent = IsTree() ? me & (me - 1) : 0;
  schedule.Tagged(kScatterTag);
  schedule.Receive(const_cast<void*>(all.buffer), processes * receive.count, *receive.type, parent == 0 ? root : MasterOf(Real(parent, root)));
  schedule.EndRound();
  for (int step = 1; step < subtree; step *= 2) {
    const int child = me + step;
    schedule.Send(Block(all, ProcessesOf(me, step, root)), ProcessesOf(child, SubtreeOf(child), root) * receive.count, *receive.type,
                  MasterOf(Real(child, root)));
  }
  schedule.Tagged(0);
  const std::span<const int> here = MembersOf(client());
  for (size_t i = 1; i < here.size(); ++i) schedule.Send(Block(all, static_cast<MPI_Aint>(i)), receive.count, *receive.type, here[i]);
  schedule.Copy(Block(all, 0), const_cast<void*>(receive.buffer), receive.count, *receive.type);
  schedule.EndRound();
}

void Clients::BuildScatter(Schedule& schedule, const Uniform& send, const Uniform& receive, int root) const {
  if (IsLong(rank_ == root ? send : receive)) {
    schedule.Tagged(kScatterTag);
    mpi::BuildScatter(schedule, {rank_, size()}, Algorithm::kLinear, send, receive, root);
    return schedule.Tagged(0);
  }
  if (rank_ == root) return ScatterAtRoot(schedule, send, receive);
  const int speaker = client() == ClientOf(root) ? root : MasterOf(client());
  if (rank_ == speaker) return ScatterAtMaster(schedule, receive, root);
  schedule.Receive(const_cast<void*>(receive.buffer), receive.count, *receive.type, speaker);
  schedule.EndRound();
}

void Clients::BuildScatterV(Schedule& schedule, const Varying& send, const Uniform& receive, int root) const {
  void* const buffer = const_cast<void*>(receive.buffer);
  schedule.Tagged(kScatterVTag);
  if (rank_ != root) schedule.ReceiveAtMost(buffer, receive.count, *receive.type, root);
  for (int rank = 0; rank_ == root && rank < size(); ++rank) {
    const MPI_Aint count = send.counts[static_cast<size_t>(rank)];
    if (rank != root)
      schedule.Send(Block(send, rank), count, *send.type, rank);
    else if (receive.buffer != MPI_IN_PLACE)
      schedule.Copy(Block(send, rank), count, *send.type, buffer, receive.count, *receive.type);
  }
  schedule.EndRound();
  schedule.Tagged(0);
}

void Clients::BuildAllGather(Schedule& schedule, const Uniform& send, const Uniform& receive) const {
  Uniform mine = send;
  if (send.buffer == MPI_IN_PLACE && rank_ != 0) mine = {Block(receive, rank_), receive.count, receive.type};
  BuildGather(schedule, mine, receive, 0);
  BuildBroadcast(schedule, const_cast<void*>(receive.buffer), receive.count * size(), *receive.type, 0);
}

void Clients::BuildAllGatherV(Schedule& schedule, const Uniform& send, const Varying& receive) const {
  Uniform mine = send;
  if (send.buffer == MPI_IN_PLACE && rank_ != 0) mine = {Block(receive, rank_), receive.counts[static_cast<size_t>(rank_)], receive.type};
  BuildGatherV(schedule, mine, receive, 0);
  // Between the blocks may be memory that nobody may write.
  MPI_Aint total = 0;
  for (MPI_Aint count : receive.counts) total += count;
  uint8_t* const all = schedule.TemporaryFor(total, *receive.type);
  const auto copy_blocks = [&](bool out) {
    MPI_Aint at = 0;
    for (int rank = 0; rank < size(); ++rank) {
      const MPI_Aint count = receive.counts[static_cast<size_t>(rank)];
      uint8_t *const block = Block(receive, rank), *const packed = At(all, at, *receive.type);
      out ? schedule.Copy(packed, block, count, *receive.type) : schedule.Copy(block, packed, count, *receive.type);
      at += count;
    }
  };
  if (rank_ == 0) copy_blocks(false);
  BuildBroadcast(schedule, all, total, *receive.type, 0);
  if (rank_ != 0) copy_blocks(true);
}

void Clients::BuildAllToAll(Schedule& schedule, const Uniform& send, const Uniform& receive) const {
  schedule.Tagged(kAllToAllTag);
  const bool in_place = send.buffer == MPI_IN_PLACE;
  Uniform from = send;
  if (in_place) {
    from = receive;
    from.buffer = schedule.TemporaryFor(receive.count * size(), *receive.type);
    schedule.Copy(receive.buffer, const_cast<void*>(from.buffer), receive.count * size(), *receive.type);
  }
  const auto part = [](const Uniform& of) { return [&of](int rank) { return Part{Block(of, rank), of.count, of.type}; }; };
  ExchangeParts(schedule, {rank_, size()}, in_place, part(from), part(receive));
  schedule.Tagged(0);
}

void Clients::BuildAllToAllV(Schedule& schedule, const Varying& send, const Varying& receive) const {
  schedule.Tagged(kAllToAllVTag);
  const bool in_place = send.buffer == MPI_IN_PLACE;
  const auto part = [](const Varying& of) {
    return [&of](int rank) { return Part{Block(of, rank), of.counts[static_cast<size_t>(rank)], &TypeAt(of, rank)}; };
  };
  if (!in_place) {
    ExchangeParts(schedule, {rank_, size()}, false, part(send), part(receive));
  } else {
    std::vector<Part> copies;
    for (int rank = 0; rank < size(); ++rank) {
      Part copy = part(receive)(rank);
      uint8_t* const memory = schedule.TemporaryFor(copy.count, *copy.type);
      schedule.Copy(copy.at, memory, copy.count, *copy.type);
      copy.at = memory;
      copies.push_back(copy);
    }
    ExchangeParts(schedule, {rank_, size()}, true, [&](int rank) { return copies[static_cast<size_t>(rank)]; }, part(receive));
  }
  schedule.Tagged(0);
}

}  // namespace weft::mpi
