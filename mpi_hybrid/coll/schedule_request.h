#ifndef MPI_HYBRID_COLL_SCHEDULE_REQUEST_H_
#define MPI_HYBRID_COLL_SCHEDULE_REQUEST_H_

#include <vector>

#include "mpi_hybrid/coll/schedule.h"
#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/p2p/engine/channel.h"
#include "mpi_hybrid/p2p/request/request.h"

namespace weft::mpi {

// A running collective: carries out a schedule over a communicator. It comes from a pool, so that a small collective
// allocates nothing.
//
// An error of a message does not stop the rest of the schedule, because other ranks depend on our messages. (Errors: a
// peer died; or a message is longer or shorter than the schedule expects, because the calls do not match.) The first
// error is the error of the collective. After a failed receive this rank no longer has the data that it should pass on.
// It sends empty messages instead, so that their receivers fail as well. If the cause is a death, the messages are
// marked as excuses (SendMode).
class ScheduleRequest final : public Request {
 public:
  // Returns a request with an empty schedule. The caller owns the reference.
  static ScheduleRequest* Make(Comm& comm);

  Schedule schedule;

  // False: a message that could not be sent is no error of this rank.
  void CountSends(bool count) { sends_count_ = count; }
  // Persistent collectives keep their tag, apart from those of other collectives: ranks may start them in different
  // orders.
  void MakePersistent();
  // Starts the collective, which then completes by itself.
  void Launch();
  // Used instead of Launch: runs the collective to its end.
  Error RunToEnd();

  Error Start() override;

  // For the progress stage: does all that can be done now, and returns whether it did anything. Completes the request
  // at the end.
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
  Channel ChannelOf(const Step& step);
  bool AtEnd() const { return next_ == schedule.steps().size(); }

  int tag_ = 0;
  size_t next_ = 0;  // step
  std::vector<Pending> pending_;
  Error first_error_;
  bool spoiled_ = false;  // a receive has failed
  bool excused_ = false;  // the receive failed because of a death
  bool sends_count_ = true;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_SCHEDULE_REQUEST_H_
