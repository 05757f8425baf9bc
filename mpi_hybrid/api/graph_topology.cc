#include <mpi.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "mpi_hybrid/api/comm_arguments.h"
#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/group_arguments.h"
#include "mpi_hybrid/api/topology_arguments.h"
#include "mpi_hybrid/coll/collectives.h"
#include "mpi_hybrid/coll/make_comm.h"
#include "mpi_hybrid/comm/topology.h"

// Graph and distributed graph topologies (MPI 4.0 sections 8.5.3, 8.5.4 and 8.5.5).
using namespace weft::mpi;

namespace {

std::string ElementWithValue(const char* array, int index, int value) {
  return std::string(array) + "[" + std::to_string(index) + "], " + std::to_string(value) + ",";
}

Error CheckGraph(int nnodes, const int indx[], const int edges[], int available) {
  WEFT_MPI_TRY(CheckArgumentNotNegative(nnodes, "nnodes"));
  if (nnodes > available) {
    return Error(MPI_ERR_ARG, "nnodes " + std::to_string(nnodes) + " is more than the communicator has, " +
                                  std::to_string(available));
  }
  if (nnodes == 0) return {};
  WEFT_MPI_TRY(CheckNotNull(indx, "index"));
  for (int i = 0; i < nnodes; ++i) {
    const int before = i == 0 ? 0 : indx[i - 1];
    if (indx[i] < before)
      return Error(MPI_ERR_ARG,
                   ElementWithValue("index", i, indx[i]) + " is less than the one before it, " + std::to_string(before));
  }
  const int count = indx[nnodes - 1];
  if (count > 0) WEFT_MPI_TRY(CheckNotNull(edges, "edges"));
  for (int i = 0; i < count; ++i) {
    if (edges[i] >= 0 && edges[i] < nnodes) continue;
    return Error(MPI_ERR_ARG, ElementWithValue("edges", i, edges[i]) + " is not a node of the graph (0 to " +
                                  std::to_string(nnodes - 1) + ")");
  }
  return {};
}

// `room`: elements that the caller's array has.
Error CopyNumbers(const std::vector<int>& from, int room, int to[], const char* argument, const char* room_argument) {
  if (room < 0 || static_cast<size_t>(room) < from.size()) {
    return Error(MPI_ERR_ARG, std::string(room_argument) + " " + std::to_string(room) +
                                  " is less than the number of elements, " + std::to_string(from.size()));
  }
  if (from.empty()) return {};
  WEFT_MPI_TRY(CheckNotNull(to, argument));
  std::copy(from.begin(), from.end(), to);
  return {};
}

}  // namespace

int PMPI_Graph_create(MPI_Comm comm_old, int nnodes, const int indx[], const int edges[], int /*reorder*/,
                      MPI_Comm* comm_graph) {
  return OnComm("MPI_Graph_create", comm_old, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckIntra(c));
    WEFT_MPI_TRY(CheckNotNull(comm_graph, "comm_graph"));
    *comm_graph = MPI_COMM_NULL;
    WEFT_MPI_TRY(CheckGraph(nnodes, indx, edges, c.size()));
    auto graph = std::make_unique<Topology>();
    graph->kind = MPI_GRAPH;
    if (nnodes > 0) {
      graph->index.assign(indx, indx + nnodes);
      graph->edges.assign(edges, edges + indx[nnodes - 1]);
    }
    return MakeWithTopology(c, nnodes, std::move(graph), comm_graph);
  });
}
WEFT_MPI_ALIAS(Graph_create)

int PMPI_Graph_map(MPI_Comm comm, int nnodes, const int indx[], const int edges[], int* newrank) {
  return OnComm("MPI_Graph_map", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckIntra(c));
    WEFT_MPI_TRY(CheckNotNull(newrank, "newrank"));
    WEFT_MPI_TRY(CheckGraph(nnodes, indx, edges, c.size()));
    *newrank = c.rank < nnodes ? c.rank : MPI_UNDEFINED;
    return {};
  });
}
WEFT_MPI_ALIAS(Graph_map)

int PMPI_Graphdims_get(MPI_Comm comm, int* nnodes, int* nedges) {
  return OnComm("MPI_Graphdims_get", comm, [&](Comm& c) -> Error {
    const Topology* graph;
    WEFT_MPI_TRY(FindTopology(c, MPI_GRAPH, &graph));
    WEFT_MPI_TRY(CheckNotNull(nnodes, "nnodes"));
    WEFT_MPI_TRY(CheckNotNull(nedges, "nedges"));
    *nnodes = static_cast<int>(graph->index.size());
    *nedges = static_cast<int>(graph->edges.size());
    return {};
  });
}
WEFT_MPI_ALIAS(Graphdims_get)

int PMPI_Graph_get(MPI_Comm comm, int maxindex, int maxedges, int indx[], int edges[]) {
  return OnComm("MPI_Graph_get", comm, [&](Comm& c) -> Error {
    const Topology* graph;
    WEFT_MPI_TRY(FindTopology(c, MPI_GRAPH, &graph));
    WEFT_MPI_TRY(CopyNumbers(graph->index, maxindex, indx, "index", "maxindex"));
    return CopyNumbers(graph->edges, maxedges, edges, "edges", "maxedges");
  });
}
WEFT_MPI_ALIAS(Graph_get)

int PMPI_Graph_neighbors_count(MPI_Comm comm, int rank, int* nneighbors) {
  return OnComm("MPI_Graph_neighbors_count", comm, [&](Comm& c) -> Error {
    const Topology* graph;
    WEFT_MPI_TRY(FindTopology(c, MPI_GRAPH, &graph));
    WEFT_MPI_TRY(CheckRank(rank, c));
    WEFT_MPI_TRY(CheckNotNull(nneighbors, "nneighbors"));
    *nneighbors = static_cast<int>(graph->GraphNeighbours(rank).size());
    return {};
  });
}
WEFT_MPI_ALIAS(Graph_neighbors_count)

int PMPI_Graph_neighbors(MPI_Comm comm, int rank, int maxneighbors, int neighbors[]) {
  return OnComm("MPI_Graph_neighbors", comm, [&](Comm& c) -> Error {
    const Topology* graph;
    WEFT_MPI_TRY(FindTopology(c, MPI_GRAPH, &graph));
    WEFT_MPI_TRY(CheckRank(rank, c));
    WEFT_MPI_TRY(CheckArgumentNotNegative(maxneighbors, "maxneighbors"));
    std::vector<int> found = graph->OutNeighbours(rank);
    if (found.size() > static_cast<size_t>(maxneighbors)) found.resize(static_cast<size_t>(maxneighbors));
    return CopyNumbers(found, maxneighbors, neighbors, "neighbors", "maxneighbors");
  });
}
WEFT_MPI_ALIAS(Graph_neighbors)

// --- distributed graphs ---

namespace {

Error CheckNodes(int count, const int nodes[], const char* argument, int size) {
  if (count > 0) WEFT_MPI_TRY(CheckNotNull(nodes, argument));
  for (int i = 0; i < count; ++i) {
    if (nodes[i] >= 0 && nodes[i] < size) continue;
    return Error(MPI_ERR_ARG, ElementWithValue(argument, i, nodes[i]) + " is not a rank of the communicator (0 to " +
                                  std::to_string(size - 1) + ")");
  }
  return {};
}

Error CheckWeights(int count, const int weights[], const char* argument) {
  if (weights == MPI_UNWEIGHTED || weights == MPI_WEIGHTS_EMPTY || count == 0) return {};
  WEFT_MPI_TRY(CheckNotNull(weights, argument));
  for (int i = 0; i < count; ++i) {
    if (weights[i] < 0) return Error(MPI_ERR_ARG, ElementWithValue(argument, i, weights[i]) + " is negative");
  }
  return {};
}

// `count` weights; none for MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY.
std::vector<int> TakeWeights(int count, const int weights[]) {
  if (weights == MPI_UNWEIGHTED || weights == MPI_WEIGHTS_EMPTY || count == 0) return {};
  return std::vector<int>(weights, weights + count);
}

// The whole communicator with its distributed graph.
Error MakeDistributed(Comm& comm, std::unique_ptr<Topology> graph, const Info* hints, MPI_Comm* given) {
  Ref<Comm> made;
  WEFT_MPI_TRY(Duplicate(comm, &made));
  made->topology = std::move(graph);
  SetHintsOfNew(*made, hints);
  *given = Comm::Give(made);
  return {};
}

// Edges on their way to the processes at their ends: (other end, weight) pairs for each rank.
using EdgeLists = std::vector<std::vector<int>>;

// Sends each rank its list; `received`: the lists of all ranks for this one, in order of rank.
Error Distribute(Comm& comm, const EdgeLists& lists, std::vector<int>* received) {
  const Datatype* type = Datatype::Find(MPI_INT);
  const auto ranks = static_cast<size_t>(comm.size());
  std::vector<MPI_Aint> counts(ranks), offsets(ranks), their_counts(ranks), their_offsets(ranks);
  std::vector<int> sent;
  for (size_t rank = 0; rank < ranks; ++rank) {
    counts[rank] = static_cast<MPI_Aint>(lists[rank].size());
    offsets[rank] = static_cast<MPI_Aint>(sent.size());
    sent.insert(sent.end(), lists[rank].begin(), lists[rank].end());
  }
  const Datatype* count_type = Datatype::Find(MPI_AINT);
  WEFT_MPI_TRY(AllToAll(Uniform{counts.data(), 1, count_type}, Uniform{their_counts.data(), 1, count_type}, comm));
  MPI_Aint total = 0;
  for (size_t rank = 0; rank < ranks; ++rank) {
    their_offsets[rank] = total;
    total += their_counts[rank];
  }
  received->resize(static_cast<size_t>(total));
  const Varying send{sent.data(), counts, offsets, type, {}};
  const Varying receive{received->data(), their_counts, their_offsets, type, {}};
  return AllToAll(send, receive, comm);
}

void Split(const std::vector<int>& pairs, bool weighted, std::vector<int>* nodes, std::vector<int>* weights) {
  for (size_t i = 0; i < pairs.size(); i += 2) {
    nodes->push_back(pairs[i]);
    if (weighted) weights->push_back(pairs[i + 1]);
  }
}

}  // namespace

int PMPI_Dist_graph_create_adjacent(MPI_Comm comm_old, int indegree, const int sources[], const int sourceweights[],
                                    int outdegree, const int destinations[], const int destweights[], MPI_Info info,
                                    int /*reorder*/, MPI_Comm* comm_dist_graph) {
  return OnComm("MPI_Dist_graph_create_adjacent", comm_old, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckIntra(c));
    Info* hints;
    WEFT_MPI_TRY(FindInfo(info, &hints));
    WEFT_MPI_TRY(CheckArgumentNotNegative(indegree, "indegree"));
    WEFT_MPI_TRY(CheckArgumentNotNegative(outdegree, "outdegree"));
    WEFT_MPI_TRY(CheckNodes(indegree, sources, "sources", c.size()));
    WEFT_MPI_TRY(CheckNodes(outdegree, destinations, "destinations", c.size()));
    WEFT_MPI_TRY(CheckWeights(indegree, sourceweights, "sourceweights"));
    WEFT_MPI_TRY(CheckWeights(outdegree, destweights, "destweights"));
    if ((sourceweights == MPI_UNWEIGHTED) != (destweights == MPI_UNWEIGHTED)) {
      return Error(MPI_ERR_TOPOLOGY, "one of sourceweights and destweights is MPI_UNWEIGHTED, the other is not");
    }
    WEFT_MPI_TRY(CheckNotNull(comm_dist_graph, "comm_dist_graph"));
    *comm_dist_graph = MPI_COMM_NULL;
    auto graph = std::make_unique<Topology>();
    graph->kind = MPI_DIST_GRAPH;
    graph->weighted = sourceweights != MPI_UNWEIGHTED;
    graph->sources.assign(sources, sources + indegree);
    graph->destinations.assign(destinations, destinations + outdegree);
    graph->source_weights = TakeWeights(indegree, sourceweights);
    graph->destination_weights = TakeWeights(outdegree, destweights);
    const Ref<Comm> alive(&c);
    return MakeDistributed(c, std::move(graph), hints, comm_dist_graph);
  });
}
WEFT_MPI_ALIAS(Dist_graph_create_adjacent)

int PMPI_Dist_graph_create(MPI_Comm comm_old, int n, const int sources[], const int degrees[], const int destinations[],
                           const int weights[], MPI_Info info, int /*reorder*/, MPI_Comm* comm_dist_graph) {
  return OnComm("MPI_Dist_graph_create", comm_old, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckIntra(c));
    Info* hints;
    WEFT_MPI_TRY(FindInfo(info, &hints));
    WEFT_MPI_TRY(CheckArgumentNotNegative(n, "n"));
    WEFT_MPI_TRY(CheckNodes(n, sources, "sources", c.size()));
    if (n > 0) WEFT_MPI_TRY(CheckNotNull(degrees, "degrees"));
    int count = 0;
    for (int i = 0; i < n; ++i) {
      if (degrees[i] < 0) return Error(MPI_ERR_ARG, ElementWithValue("degrees", i, degrees[i]) + " is negative");
      if (__builtin_add_overflow(count, degrees[i], &count))
        return Error(MPI_ERR_ARG, "the sum of degrees is more than an int can hold");
    }
    WEFT_MPI_TRY(CheckNodes(count, destinations, "destinations", c.size()));
    WEFT_MPI_TRY(CheckWeights(count, weights, "weights"));
    WEFT_MPI_TRY(CheckNotNull(comm_dist_graph, "comm_dist_graph"));
    *comm_dist_graph = MPI_COMM_NULL;
    const bool weighted = weights != MPI_UNWEIGHTED;
    const std::vector<int> values = TakeWeights(count, weights);
    if (count > 0 && weighted && values.empty()) return Error(MPI_ERR_ARG, "weights is MPI_WEIGHTS_EMPTY, with edges");
    // To the source of each edge its destination, and the other way round.
    const auto ranks = static_cast<size_t>(c.size());
    EdgeLists to_sources(ranks), to_destinations(ranks);
    for (int i = 0, edge = 0; i < n; ++i) {
      for (int j = 0; j < degrees[i]; ++j, ++edge) {
        const int weight = values.empty() ? 0 : values[static_cast<size_t>(edge)];
        auto& at_source = to_sources[static_cast<size_t>(sources[i])];
        at_source.insert(at_source.end(), {destinations[edge], weight});
        auto& at_destination = to_destinations[static_cast<size_t>(destinations[edge])];
        at_destination.insert(at_destination.end(), {sources[i], weight});
      }
    }
    const Ref<Comm> alive(&c);
    std::vector<int> out, in;
    WEFT_MPI_TRY(Distribute(c, to_sources, &out));
    WEFT_MPI_TRY(Distribute(c, to_destinations, &in));
    auto graph = std::make_unique<Topology>();
    graph->kind = MPI_DIST_GRAPH;
    graph->weighted = weighted;
    Split(in, weighted, &graph->sources, &graph->source_weights);
    Split(out, weighted, &graph->destinations, &graph->destination_weights);
    return MakeDistributed(c, std::move(graph), hints, comm_dist_graph);
  });
}
WEFT_MPI_ALIAS(Dist_graph_create)

int PMPI_Dist_graph_neighbors_count(MPI_Comm comm, int* indegree, int* outdegree, int* weighted) {
  return OnComm("MPI_Dist_graph_neighbors_count", comm, [&](Comm& c) -> Error {
    const Topology* graph;
    WEFT_MPI_TRY(FindTopology(c, MPI_DIST_GRAPH, &graph));
    WEFT_MPI_TRY(CheckNotNull(indegree, "indegree"));
    WEFT_MPI_TRY(CheckNotNull(outdegree, "outdegree"));
    WEFT_MPI_TRY(CheckNotNull(weighted, "weighted"));
    *indegree = static_cast<int>(graph->sources.size());
    *outdegree = static_cast<int>(graph->destinations.size());
    *weighted = graph->weighted ? 1 : 0;
    return {};
  });
}
WEFT_MPI_ALIAS(Dist_graph_neighbors_count)

namespace {

// The first `room` neighbours, or as many as there are; weights too unless the graph has none or the program wants
// none.
Error CopyNeighbours(const Topology& graph, int room, const std::vector<int>& nodes, const std::vector<int>& weights,
                     int to[], int to_weights[], const char* argument, const char* weights_argument) {
  const size_t count = std::min(nodes.size(), static_cast<size_t>(room));
  if (count == 0) return {};
  WEFT_MPI_TRY(CheckNotNull(to, argument));
  std::copy_n(nodes.begin(), count, to);
  if (!graph.weighted || to_weights == MPI_UNWEIGHTED || to_weights == MPI_WEIGHTS_EMPTY) return {};
  WEFT_MPI_TRY(CheckNotNull(to_weights, weights_argument));
  std::copy_n(weights.begin(), std::min(count, weights.size()), to_weights);
  return {};
}

}  // namespace

int PMPI_Dist_graph_neighbors(MPI_Comm comm, int maxindegree, int sources[], int sourceweights[], int maxoutdegree,
                              int destinations[], int destweights[]) {
  return OnComm("MPI_Dist_graph_neighbors", comm, [&](Comm& c) -> Error {
    const Topology* graph;
    WEFT_MPI_TRY(FindTopology(c, MPI_DIST_GRAPH, &graph));
    WEFT_MPI_TRY(CheckArgumentNotNegative(maxindegree, "maxindegree"));
    WEFT_MPI_TRY(CheckArgumentNotNegative(maxoutdegree, "maxoutdegree"));
    WEFT_MPI_TRY(CopyNeighbours(*graph, maxindegree, graph->sources, graph->source_weights, sources, sourceweights,
                                "sources", "sourceweights"));
    return CopyNeighbours(*graph, maxoutdegree, graph->destinations, graph->destination_weights, destinations,
                          destweights, "destinations", "destweights");
  });
}
WEFT_MPI_ALIAS(Dist_graph_neighbors)
