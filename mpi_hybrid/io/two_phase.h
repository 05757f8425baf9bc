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

// A collective access in two phases (collective buffering). The stretch of the file that all ranks together access is divided among the
// aggregators. Each goes through its part in windows of the size of its buffer: the ranks put what they have in a window into the buffer
// (on one host that is a copy, from elsewhere a message), tell what they put, and the aggregator writes it with few calls, while the
// ranks fill its other buffer. Reading is the same the other way round.
//
// Which windows there are the aggregator says, since it learns from each rank where that one goes on: gaps that nobody accesses cost
// nothing, however large they are. What fails is noted, and the exchange goes on to its end, so that nobody waits. So it does where there is no memory for lists or
// data; there always is for messages of a few bytes.
//
// With the library's lock, which files' calls let go of.
class TwoPhase {
 public:
  // `extents` of all ranks, which make sense, and one of which has data at least.
  TwoPhase(File& file, Access& access, Aggregators& aggregators, std::vector<Extent> extents);

  // `*moved`: bytes of the view's stream. The access's memory has begun.
  Error Write(int64_t* moved);
  Error Read(int64_t* moved);

 private:
  // One aggregator as this rank sees it.
  struct Side {
    FileRange domain;
    bool active = false;       // it has windows to come, and this rank takes part
    bool sends = false;        // this rank has data in its domain
    bool left_out = false;     // ... and no memory for what is to be told of it: it tells of none
    int64_t start = 0;         // of the window
    int64_t from = 0, to = 0;  // positions of this rank's data in the window
    int64_t next = 0;          // behind it
    RunWriter runs;
  };

  bool Sends(const Extent& extent, const FileRange& domain) const;
  FileRange Window(const Side& side) const;
  bool is_own(int index) const { return index == aggregators_.own_index(); }

  // This rank's part of the window of aggregator `index`.
  void FindSlice(Side& side);
  // There is no memory for it. The error is noted, and this rank goes on as one that has no more data there, so that nobody waits.
  void LeaveOut(Side& side);
  Error NoMemory(int64_t bytes) const;
  void PutSlice(int index, int which);
  void TakeSlice(int index, int which, int64_t end_of_file);
  void SendList(int index);

  // What it says of the next window; where nothing comes, or nonsense, there is none.
  Go HearGo(int index);

  // As the aggregator.
  void GatherLists();
  WindowList& ListOf(int rank) { return lists_[static_cast<size_t>(std::find(senders_.begin(), senders_.end(), rank) - senders_.begin())]; }
  void ReceiveList(int rank, const FileRange& window);
  // What it told cannot be taken: it takes no further part in this aggregator's windows, nor hears more than that.
  // `has_data`: a message with data is behind it, where there is one at all.
  void GiveUp(int rank, bool has_data);
  void ReceiveData(int rank, uint8_t* buffer, const FileRange& window);
  int64_t NextStart() const;
  std::vector<std::span<const RangeRun>> ListedRuns() const;
  void WriteWindow(uint8_t* buffer, const FileRange& window);
  int64_t ReadWindow(uint8_t* buffer, const FileRange& window);
  void SendGo(const Go& go);
  // Room for what each of `senders_` that does not see the buffer asked for, before it is told that it comes.
  std::vector<MessageMemory::Piece> RoomForData(int64_t end_of_file);
  void SendData(std::vector<MessageMemory::Piece> rooms, uint8_t* buffer, const FileRange& window, int64_t end_of_file);

  // Something short, and data.
  void Post(std::vector<uint8_t> message, int rank, int tag);
  void Post(MessageMemory::Piece data, int rank);
  void Start(std::span<const uint8_t> message, int rank, int tag);  // of the last of posted_
  bool Fetch(void* data, int64_t bytes, int rank, int tag);
  // Receives a message for which there is no room, but for its first bytes, so that its sender goes on.
  void Discard(void* head, int64_t bytes, int rank, int tag);
  void DropSent();  // messages that are on their way
  void AwaitPosted();
  void Note(Error error);

  File& file_;
  Access& access_;
  Comm& comm_;
  Aggregators& aggregators_;
  const std::vector<Extent> extents_;
  TypeCursor memory_;
  std::vector<Side> sides_;   // by aggregator
  std::vector<int> senders_;  // ranks with data in this aggregator's domain, but those that it gave up
  std::vector<WindowList> lists_;  // what they have in its window
  Go own_go_ = {};            // what this aggregator says to itself

  struct Posted {
    Request* request;
    std::vector<uint8_t> message;
    MessageMemory::Piece data;
  };
  MessageMemory message_memory_;
  std::deque<Posted> posted_;  // under way
  Error error_;  // the first
  int64_t end_of_file_ = INT64_MAX;
};

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_TWO_PHASE_H_
