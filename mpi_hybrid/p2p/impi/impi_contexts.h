#ifndef MPI_HYBRID_P2P_IMPI_IMPI_CONTEXTS_H_
#define MPI_HYBRID_P2P_IMPI_IMPI_CONTEXTS_H_

#include <cstdint>
#include <map>
#include <optional>

#include "mpi_hybrid/comm/context_pool.h"
#include "mpi_hybrid/comm/group.h"
#include "mpi_hybrid/p2p/impi/impi_link.h"

namespace weft::mpi {

// The communicators of this process that span clients, by the engine's contexts and by those of the protocol.
//
//   0, 1                      MPI_COMM_WORLD, in the protocol 0 and 1, too
//   below kFirst              other communicators, of one client, and those of the library (ContextPool)
//   kFirst + c                of the protocol's context c
//   from 2^31                 partitioned communication, which IMPI does not have
//
// So all processes of a client have the same context of the engine without another agreement, also for an intercommunicator, whose two directions have one
// context in the protocol. Contexts of the protocol from 2^31 - kFirst on have none: nobody counts so far, unless he means it.
class ImpiContextTable final : public ImpiContexts {
 public:
  static constexpr uint32_t kFirst = ContextPool::kContexts;

  // The context of the engine for a new communicator; nullopt: there is none.
  static std::optional<ContextId> For(uint64_t on_wire);

  // A communicator with that context for messages, and the next one for collectives. Ranks in messages are those of `remote`.
  void Add(ContextId context, uint64_t on_wire, const Ref<Group>& remote);
  void Remove(ContextId context);
  bool empty() const { return here_.empty(); }

  std::optional<uint64_t> OnWire(uint32_t context) const override;
  std::optional<uint32_t> Here(uint64_t context) const override;
  bool HasRank(uint32_t context, int32_t rank, ProcessId process) const override;

 private:
  struct Entry {
    uint64_t on_wire = 0;
    Ref<Group> remote;
  };
  // Both have a communicator's two contexts.
  std::map<ContextId, Entry> here_;
  std::map<uint64_t, ContextId> by_wire_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_IMPI_IMPI_CONTEXTS_H_
