#ifndef MPI_HYBRID_COLL_CLIENTS_H_
#define MPI_HYBRID_COLL_CLIENTS_H_

#include <mpi.h>

#include <cstdint>
#include <span>
#include <vector>

#include "mpi_hybrid/coll/algorithms.h"
#include "mpi_hybrid/coll/schedule.h"

namespace weft::mpi {

// Collectives of a group whose processes belong to several clients of an IMPI job (IMPI 0.0, chapter 4), that is, perhaps to several MPI
// implementations. The processes of one client use Weft's algorithms among each other. What goes from client to client is agreed: who sends it
// to whom, in which order, with which tag.
//
// The lowest rank of each client is its *master*. Masters are numbered by rank; the client has the number of its master. In a collective with
// a root, the root speaks for its client in the master's place.
//
// The specification gives barrier, broadcast and reduction. Of the others it gives the tags and the two limits below; what they do here
// is in the comment of each.
class Clients {
 public:
  struct Limits {
    // IMPI_C_COLL_XSIZE: from so many bytes of external32 a process on, which all implementations count alike, data of a gather or scatter goes directly between process and root; below it,
    // in one message a client.
    MPI_Aint long_from = 1024;
    // IMPI_C_COLL_MAXLINEAR: from so many clients on, masters form a tree; below it, all exchange messages with one of them.
    int tree_from = 4;
  };
  // Tags of messages from client to client.
  enum Tag : uint8_t {
    kBarrierTag = 110,
    kBroadcastTag = 120,
    kGatherTag = 130,
    kGatherVTag = 140,
    kScatterTag = 150,
    kScatterVTag = 160,
    kAllToAllTag = 170,
    kAllToAllVTag = 180,
    kReduceTag = 190,
    kScanTag = 200,
  };

  // `clients`: by rank, something that is equal for processes of one client. `rank`: of this process.
  Clients(int rank, std::span<const int> clients, Limits limits);

  int count() const { return static_cast<int>(members_.size()); }
  int ClientOf(int rank) const { return client_of_[static_cast<size_t>(rank)]; }
  int MasterOf(int client) const { return MembersOf(client).front(); }
  std::span<const int> MembersOf(int client) const { return members_[static_cast<size_t>(client)]; }  // ascending

  // Functions that build this rank's schedule, as in algorithms.h.

  // Within the clients; the masters (linear: master 0 hears from all, then tells all; tree: the parent of a master has its number without
  // the highest bit); within the clients.
  void BuildBarrier(Schedule& schedule) const;
  // From the root to the masters of the other clients (tree as above, with numbers relative to the root's client), then within the clients.
  void BuildBroadcast(Schedule& schedule, void* buffer, MPI_Aint count, const Datatype& type, int root) const;
  // Within the clients, then from the masters to the root (tree: the parent has the number without the lowest bit). If the operation does not
  // commute: from every process to the root, which combines from the last rank to the first.
  void BuildReduce(Schedule& schedule, const Reduction& reduction, int root) const;
  // A reduction to rank 0 and a broadcast from it, with the tags of these.
  void BuildAllReduce(Schedule& schedule, const Reduction& reduction) const;
  // A reduction to rank 0 and a scatter from it (BuildScatterV).
  void BuildReduceScatter(Schedule& schedule, const Reduction& reduction, std::span<const MPI_Aint> counts) const;
  // From each rank to the next: the reduction of all ranks so far.
  void BuildScan(Schedule& schedule, const Reduction& reduction, bool exclusive) const;

  // Short: within the clients to the masters, which send their client's data, in the order of ranks, to the root (tree: to the parent as in a
  // reduction, in the order of relative numbers). Long: from each process to the root.
  void BuildGather(Schedule& schedule, const Uniform& send, const Uniform& receive, int root) const;
  // From each process to the root, also if it has no data.
  void BuildGatherV(Schedule& schedule, const Uniform& send, const Varying& receive, int root) const;
  // The ways of a gather, backwards.
  void BuildScatter(Schedule& schedule, const Uniform& send, const Uniform& receive, int root) const;
  void BuildScatterV(Schedule& schedule, const Varying& send, const Uniform& receive, int root) const;
  // A gather to rank 0 and a broadcast of all data from it.
  void BuildAllGather(Schedule& schedule, const Uniform& send, const Uniform& receive) const;
  void BuildAllGatherV(Schedule& schedule, const Uniform& send, const Varying& receive) const;
  // A message from each process to each other, also if it has no data.
  void BuildAllToAll(Schedule& schedule, const Uniform& send, const Uniform& receive) const;
  void BuildAllToAllV(Schedule& schedule, const Varying& send, const Varying& receive) const;

 private:
  bool IsTree() const { return count() >= limits_.tree_from; }
  bool IsLong(const Uniform& block) const;
  int client() const { return ClientOf(rank_); }
  int size() const { return static_cast<int>(client_of_.size()); }
  Place WithinClient() const { return {place_, static_cast<int>(MembersOf(client()).size())}; }
  Place AmongClients() const { return {client(), count()}; }
  // By client, the rank that speaks for it; the root for its own.
  std::vector<int> SpeakersFor(int root) const;
  // The place among the members of this client of the rank that speaks for it.
  int SpeakerHere(int root) const;
  int Relative(int client, int root) const { return (client - ClientOf(root) + count()) % count(); }
  int Real(int relative, int root) const { return (relative + ClientOf(root)) % count(); }
  // How many processes the clients `first` to `first` + `clients` - 1 have, which are numbers relative to the root's client.
  MPI_Aint ProcessesOf(int first, int clients, int root) const;
  // So many clients send or get their data through the client `relative`, itself included.
  int SubtreeOf(int relative) const;

  void GatherAtRoot(Schedule& schedule, const Uniform& send, const Uniform& receive) const;
  void GatherAtMaster(Schedule& schedule, const Uniform& send, int root) const;
  void ScatterAtRoot(Schedule& schedule, const Uniform& send, const Uniform& receive) const;
  void ScatterAtMaster(Schedule& schedule, const Uniform& receive, int root) const;
  void ReduceInOrder(Schedule& schedule, const Reduction& reduction, int root) const;

  const int rank_;
  const Limits limits_;
  std::vector<int> client_of_;             // by rank
  std::vector<std::vector<int>> members_;  // by client
  int place_ = 0;                          // of this rank among the members of its client
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_CLIENTS_H_
