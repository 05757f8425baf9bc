#ifndef MPI_HYBRID_IO_TWO_PHASE_H_
#define MPI_HYBRID_IO_TWO_PHASE_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "mpi_hybrid/io/access.h"
#include "mpi_hybrid/io/aggregators.h"
#include "mpi_hybrid/io/message_memory.h"
#include "mpi_hybrid/io/range_runs.h"
#include "mpi_hybrid/io/two_phase_messages.h"
#include "mpi_hybrid/p2p/request/request.h"

namespace weft::mpi::io {

// A collective access in two phases (collective buffering). The stretch of the file that all ranks together access is
// divided among the aggregators. Each aggregator goes through its part in windows of the size of its buffer. The ranks
// put their data of a window into the buffer (a copy on the same host, a message from other hosts) and send a list of
// what they put there. The aggregator writes the buffer with few calls while the ranks fill its other buffer. Reading
// works the same way in the other direction.
//
// The aggregator chooses the windows, because each rank tells it where the rank's data continues. Gaps that no rank
// accesses cost nothing, however large they are. An error is recorded and the exchange goes on to its end, so that no
// rank waits forever. This also holds if there is no memory for lists or data; messages of a few bytes need none.
//
// Call with the library's lock held; calls on files release it.
class TwoPhase {
 public:
  // `extents` of all ranks. They have been checked, and at least one has data.
  TwoPhase(File& file, Access& access, Aggregators& aggregators, std::vector<Extent> extents);

  // `*moved`: bytes of the view's stream. BeginMemory of the access has been called.
  Error Write(int64_t* moved);
  Error Read(int64_t* moved);

 private:
  // The state of one aggregator as this rank sees it.
  struct Side {
    FileRange domain;
    bool active = false;       // it has more windows, and this rank takes part
    bool sends = false;        // this rank has data in the aggregator's domain
    bool left_out = false;     // this rank has data but no memory for the list, and sends an empty list
    int64_t start = 0;         // of the window
    int64_t from = 0, to = 0;  // positions of this rank's data in the window
    int64_t next = 0;          // offset in the file of this rank's next data behind the window
    RunWriter runs;
  };

  bool Sends(const Extent& extent, const FileRange& domain) const;
  FileRange Window(const Side& side) const;
  bool is_own(int index) const { return index == aggregators_.own_index(); }

  // Finds this rank's part of the window.
  void FindSlice(Side& side);
  // There is no memory for the part. Records the error; this rank goes on like one that has no more data there, so that
  // no rank waits.
  void LeaveOut(Side& side);
  Error NoMemory(int64_t bytes) const;
  void PutSlice(int index, int which);
  void TakeSlice(int index, int which, int64_t end_of_file);
  void SendList(int index);

  // Receives the aggregator's message about the next window. If none comes, or an invalid one, there is no next window.
  Go HearGo(int index);

  // The functions of the aggregator.
  void GatherLists();
  WindowList& ListOf(int rank) { return lists_[static_cast<size_t>(std::find(senders_.begin(), senders_.end(), rank) - senders_.begin())]; }
  void ReceiveList(int rank, const FileRange& window);
  // The rank's list is invalid. The rank takes no further part in this aggregator's windows, and gets no further
  // message about them. `has_data`: a message with data follows the list, if the rank sends messages at all.
  void GiveUp(int rank, bool has_data);
  void ReceiveData(int rank, uint8_t* buffer, const FileRange& window);
  int64_t NextStart() const;
  std::vector<std::span<const RangeRun>> ListedRuns() const;
  void WriteWindow(uint8_t* buffer, const FileRange& window);
  int64_t ReadWindow(uint8_t* buffer, const FileRange& window);
  void SendGo(const Go& go);
  // Allocates memory for the data of each of `senders_` that has no access to the buffer, before that rank is told that
  // the data will come.
  std::vector<MessageMemory::Piece> RoomForData(int64_t end_of_file);
  void SendData(std::vector<MessageMemory::Piece> rooms, uint8_t* buffer, const FileRange& window, int64_t end_of_file);

  // Sends a short message; sends data.
  void Post(std::vector<uint8_t> message, int rank, int tag);
  void Post(MessageMemory::Piece data, int rank);
  void Start(std::span<const uint8_t> message, int rank, int tag);  // sends the last of posted_
  bool Fetch(void* data, int64_t bytes, int rank, int tag);
  // Receives a message for which there is no memory, except its first bytes, so that its sender can go on.
  void Discard(void* head, int64_t bytes, int rank, int tag);
  void DropSent();  // releases the messages that have been sent
  void AwaitPosted();
  void Note(Error error);

  File& file_;
  Access& access_;
  Comm& comm_;
  Aggregators& aggregators_;
  const std::vector<Extent> extents_;
  TypeCursor memory_;
  std::vector<Side> sides_;   // by aggregator
  std::vector<int> senders_;  // ranks with data in this aggregator's domain, except those that it gave up
  std::vector<WindowList> lists_;  // what they have in the window
  Go own_go_ = {};            // this aggregator's message to itself

  struct Posted {
    Request* request;
    std::vector<uint8_t> message;
    MessageMemory::Piece data;
  };
  MessageMemory message_memory_;
  std::deque<Posted> posted_;  // messages in flight
  Error error_;  // the first error
  int64_t end_of_file_ = INT64_MAX;
};

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_TWO_PHASE_H_
