#ifndef MPI_HYBRID_COLL_INTER_END_H_
#define MPI_HYBRID_COLL_INTER_END_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "mpi_hybrid/comm/communicator.h"

namespace weft::mpi {

// One side of the making of an intercommunicator: `local` and its leader. The leader talks to the leader of the other
// group and passes the results on to its group. Members are described by names (core/process_table.h), because each
// process numbers processes in its own way.
//
// If the groups are not all of one job, processes may not know each other. The leaders then exchange the addresses of
// their groups and agree on a bond for them, derived from the leaders' own bond. The members of a group get that bond
// encrypted. `peer` and `remote_leader` are used only at the leader.
//
// A leader that cannot go on says so instead of sending what the other leader waits for. A member that does not receive
// its leader's message goes on to the next step. In any case all processes call both steps.
class InterEnd {
 public:
  // `tag` is one of the library's own (tags.h). `tell`, if given, sends the leader's bytes to the other members; else
  // broadcasts on `local` do.
  using TellAll = std::function<Error(void* data, size_t bytes)>;
  InterEnd(Comm& local, int leader, Comm* peer, int remote_leader, int tag, TellAll tell = {})
      : local_(local),
        leader_(leader),
        peer_(peer),
        remote_leader_(remote_leader),
        tag_(tag),
        tell_(std::move(tell)),
        members_tag_(local.next_collective++),
        context_tag_(local.next_collective++) {}

  // Gets the remote group; this process knows all of its members from then on. `refusal`: the leader does not take
  // part.
  Error LearnMembers(const Error& refusal, Ref<Group>* remote);
  // Exchanges `context` for the context of the remote group; kNoContext: a group had none. Makes the identity of the
  // whole communicator from the identities of both groups.
  Error LearnContext(ContextId context, uint64_t own_identity, ContextId* remote, uint64_t* identity);

 private:
  bool is_leader() const { return local_.rank == leader_; }
  Error Swap(const void* mine, size_t mine_bytes, void* theirs, size_t theirs_bytes);
  Error SwapWord(uint64_t mine, uint64_t* theirs);
  Error Swap(const std::string& mine, std::string* theirs, size_t most);
  void GiveUp();
  Error Tell(void* data, size_t bytes, uint32_t tag);
  Error TellText(std::string* text);
  Error TalkToLeader(std::string* description);
  Error FindCommonBond(ProcessId leader, JobSecret* secret);
  Error Describe(const std::vector<ProcessName>& theirs, std::string* cards);
  std::string Seals(const JobSecret& secret) const;
  Error Learn(const std::string& description, std::vector<ProcessId>* members) const;

  Comm& local_;
  const int leader_;
  Comm* const peer_;
  const int remote_leader_, tag_;
  const TellAll tell_;
  const uint32_t members_tag_, context_tag_;  // of the leader's messages to its group
  bool talking_ = false;  // the other leader waits for a message of this one
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_INTER_END_H_
