#ifndef MPI_HYBRID_COLL_SCHEDULE_REQUEST_H_
#define MPI_HYBRID_COLL_SCHEDULE_REQUEST_H_

#include <vector>

#include "mpi_hybrid/coll/schedule.h"
#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/p2p/engine/channel.h"
#include "mpi_hybrid/p2p/request/request.h"

namespace weft::mpi {

// A collective under way: carries out a schedule over a communicator. From a pool, so that a small collective allocates
// nothing.
//
// An error of a message (a peer died, a message is longer or shorter than the schedule expects because the calls do not
// match) does not stop the rest: the others depend on our messages. The first one is the collective's. After a receive
// that failed, what this rank would pass on is not what it should be: it sends empty messages, so that those who get
// them, and those who get theirs, fail as well. Where a death is why they are excuses (SendMode), which say so.
class ScheduleRequest final : public Request {
 public:
  // With the caller's reference. The schedule is empty.
  static ScheduleRequest* Make(Comm& comm);

  Schedule schedule;

  // False: that a message could not be sent is no error of this rank's.
  void CountSends(bool count) { sends_count_ = count; }
  // Persistent ones keep their tag, apart from those of the others: their starts need not be in the same order
  // everywhere.
  void MakePersistent();
  // Starts; completes on its own from then on.
  void Launch();
  // Instead of Launch: until it is done.
  Error RunToEnd();

  Error Start() override;

  // For the progress stage: does what can be done; whether anything was. Completes the request at the end.
  bool Advance();
  bool CanAdvance() const { return pending_.empty() || pending_.back().request->complete; }

 private:
  struct Pending {
    Request* request;
    const Step* step;
  };

  ScheduleRequest() : Request(Kind::kCollective) {}
  void Recycle() override;

  // Starts steps up to the end of the round.
  void StartRound();
  void WaitForRound();
  void Begin(const Step& step);
  void Direct(const Step& step);  // a message without a request
  void Local(const Step& step);
  void Collect(const Pending& pending);
  void Note(Error error);
  void NoteSend(Error error);
  void NoteReceive(Error error);
  MPI_Aint CountToSend(const Step& step) const;
  SendMode ModeToSend() const;
  void CheckLength(const Step& step, const MPI_Status& message);
  Comm& CommOf(const Step& step) { return step.local ? *comm->local_comm : *comm; }
  int TagOf(const Step& step) const;
  bool AtEnd() const { return next_ == schedule.steps().size(); }

  int tag_ = 0;
  size_t next_ = 0;  // step
  std::vector<Pending> pending_;
  Error first_error_;
  bool spoiled_ = false;  // a receive failed
  bool excused_ = false;  // because of a death
  bool sends_count_ = true;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_SCHEDULE_REQUEST_H_
