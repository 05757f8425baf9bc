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

// The end of `local` at which a new intercommunicator is made: its leader talks to the other group's, and tells the
// others. What they tell each other of the groups are names (core/process_table.h): a process's number is another one
// at each process.
//
// Where the groups are not all of one job, processes may be new to one another. The leaders tell where they are, and
// agree on a bond for them, which follows from the leaders' own; to the members of the group it goes sealed. Without
// `peer` and `remote_leader` where it is not the leader's.
//
// A leader who cannot go on says so in the place of what the other waits for, and a member whom a word of its leader did not
// reach goes on to the next step: both are called by all in any case.
class InterEnd {
 public:
  // `tag` is of the library's own (tags.h). `tell`, where given, brings the leader's bytes to the others; else broadcasts on `local` do.
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

  // The remote group, all of whose members are known from now on. `refusal`: the leader does not even try.
  Error LearnMembers(const Error& refusal, Ref<Group>* remote);
  // Gives `context` for the remote group's, kNoContext when there was none to give; and of what both groups call themselves makes what both call
  // the whole.
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
  const uint32_t members_tag_, context_tag_;  // of what the leader tells
  bool talking_ = false;  // the other leader waits for a word of this one
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_INTER_END_H_
