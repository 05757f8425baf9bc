#include "mpi_hybrid/io/two_phase.h"

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/io/agreement.h"
#include "mpi_hybrid/io/io_error.h"
#include "mpi_hybrid/io/transfer.h"
#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/p2p/progress.h"

namespace weft::mpi::io {
namespace {

constexpr int64_t kBlock = 4096;               // domains begin at multiples of it
constexpr int64_t kGapWorthReading = 64 << 10;  // between ranges of a window
enum Tag { kList = 1, kData, kGo };

const Datatype& Byte() { return *Datatype::Find(MPI_BYTE); }

// Part `index` of `parts` of `whole`.
FileRange PartOf(const FileRange& whole, int index, int parts) {
  int64_t size = (whole.bytes + parts - 1) / parts;
  size = (size + kBlock - 1) / kBlock * kBlock;
  const int64_t base = whole.offset / kBlock * kBlock;
  const int64_t begin = std::clamp(base + index * size, whole.offset, whole.end());
  const int64_t end = index + 1 == parts ? whole.end() : std::clamp(base + (index + 1) * size, whole.offset, whole.end());
  return {begin, end - begin};
}

// False: there was no memory for what `work` does.
template <typename Work>
bool WithMemory(const Work& work) {
  try {
    work();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

int64_t BytesBefore(int64_t end_of_file, std::span<const RangeRun> runs) {
  int64_t bytes = 0;
  RunReader reader(runs);
  for (FileRange range; reader.Next(&range);) bytes += std::clamp<int64_t>(end_of_file - range.offset, 0, range.bytes);
  return bytes;
}

FileRange Whole(const std::vector<Extent>& extents) {
  int64_t first = INT64_MAX, end = 0;
  for (const Extent& extent : extents) {
    if (extent.bytes == 0) continue;
    first = std::min(first, extent.first);
    end = std::max(end, extent.end);
  }
  return {first, end - first};
}

}  // namespace

TwoPhase::TwoPhase(File& file, Access& access, Aggregators& aggregators, std::vector<Extent> extents)
    : file_(file),
      access_(access),
      comm_(*file.comm),
      aggregators_(aggregators),
      extents_(std::move(extents)),
      memory_(access.memory()),
      sides_(static_cast<size_t>(aggregators.count())) {
  const FileRange whole = Whole(extents_);
  for (int i = 0; i < aggregators_.count(); ++i) {
    Side& side = sides_[static_cast<size_t>(i)];
    side.domain = PartOf(whole, i, aggregators_.count());
    side.start = kNowhere;
    for (int rank = 0; rank < comm_.size(); ++rank) {
      const Extent& extent = extents_[static_cast<size_t>(rank)];
      if (!Sends(extent, side.domain)) continue;
      side.start = std::min(side.start, std::max(extent.first, side.domain.offset));
      if (is_own(i)) senders_.push_back(rank);
    }
    side.sends = Sends(extents_[static_cast<size_t>(comm_.rank)], side.domain);
    side.active = side.start != kNowhere && (side.sends || is_own(i));
  }
  lists_.resize(senders_.size());
}

bool TwoPhase::Sends(const Extent& extent, const FileRange& domain) const {
  return extent.bytes > 0 && domain.bytes > 0 && extent.first < domain.end() && extent.end > domain.offset;
}

FileRange TwoPhase::Window(const Side& side) const {
  return {side.start, std::min(aggregators_.buffer_bytes(), side.domain.end() - side.start)};
}

void TwoPhase::Note(Error error) {
  if (error_.ok()) error_ = std::move(error);
}

// --- messages ---

void TwoPhase::Post(std::vector<uint8_t> message, int rank, int tag) {
  const Posted& posted = posted_.emplace_back(Posted{nullptr, std::move(message), {}});
  Start(posted.message, rank, tag);
}

void TwoPhase::Post(MessageMemory::Piece data, int rank) {
  const Posted& posted = posted_.emplace_back(Posted{nullptr, {}, std::move(data)});
  Start(posted.data.bytes(), rank, kData);
}

void TwoPhase::Start(std::span<const uint8_t> message, int rank, int tag) {
  Error error = StartSend(message.data(), static_cast<MPI_Aint>(message.size()), Byte(), rank, tag, comm_, SendMode::kStandard, Channel::kPointToPoint,
                          &posted_.back().request);
  if (error.ok()) return;
  posted_.pop_back();
  Note(Break(comm_, std::move(error)));
}

// False: it did not come.
bool TwoPhase::Fetch(void* data, int64_t bytes, int rank, int tag) {
  MPI_Status status;
  Error error = Break(comm_, Receive(data, bytes, Byte(), rank, tag, comm_, Channel::kPointToPoint, &status));
  if (error.ok() && GetCount(status) != bytes) {
    error = Error(MPI_ERR_INTERN, file_.name + ": rank " + std::to_string(rank) + " sent " + std::to_string(GetCount(status)) + " bytes, not " +
                                      std::to_string(bytes));
  }
  const bool came = error.ok();
  Note(std::move(error));
  return came;
}

void TwoPhase::Discard(void* head, int64_t bytes, int rank, int tag) {
  Error error = Receive(head, bytes, Byte(), rank, tag, comm_, Channel::kPointToPoint, nullptr);
  if (error.mpi_class() != MPI_ERR_TRUNCATE) Note(Break(comm_, std::move(error)));
}

void TwoPhase::DropSent() {
  while (!posted_.empty() && posted_.front().request->complete) {
    Note(Break(comm_, std::move(posted_.front().request->error)));
    posted_.front().request->Release();
    message_memory_.Give(std::move(posted_.front().data));
    posted_.pop_front();
  }
}

void TwoPhase::AwaitPosted() {
  while (!posted_.empty()) {
    Progress::Wait(*posted_.front().request);
    DropSent();
  }
}

// --- as a rank with data ---

void TwoPhase::FindSlice(Side& side) {
  const View& view = access_.view();
  const FileRange window = Window(side);
  const int64_t begin = access_.position(), end = begin + access_.bytes();
  side.from = std::clamp(view.PositionBefore(window.offset), begin, end);
  side.to = std::clamp(view.PositionBefore(window.end()), side.from, end);
  side.next = side.to < end ? view.OffsetOf(side.to) : kNowhere;
  if (side.next >= side.domain.end()) side.next = kNowhere;
  side.runs.Clear();
  if (side.left_out) return LeaveOut(side);
  if (side.from == side.to) return;
  const bool has_memory = WithMemory([&] {
    RangeCursor ranges(view, side.from, side.to - side.from);
    for (FileRange range; ranges.Next(&range);) side.runs.Add(range);
  });
  if (!has_memory) return LeaveOut(side);
  memory_.Seek(side.from - begin);
}

void TwoPhase::LeaveOut(Side& side) {
  Note(NoMemory(side.to - side.from));
  side.left_out = true;
  side.to = side.from;
  side.next = kNowhere;
  side.runs = {};
}

Error TwoPhase::NoMemory(int64_t bytes) const {
  return Error(MPI_ERR_NO_MEM, file_.name + ": there is no memory to exchange " + std::to_string(bytes) + " bytes of data; a smaller window (hint cb_buffer_size) needs less");
}

void TwoPhase::SendList(int index) {
  Side& side = sides_[static_cast<size_t>(index)];
  WindowList list;
  std::vector<uint8_t> message;
  const auto make = [&] {
    list = {side.next, side.to - side.from, side.runs.runs()};
    if (!is_own(index)) message = list.Serialize();
  };
  if (!WithMemory(make)) {
    LeaveOut(side);
    make();
  }
  if (is_own(index)) {
    ListOf(comm_.rank) = std::move(list);
  } else {
    Post(std::move(message), aggregators_.rank(index), kList);
  }
}

// Its data of the window goes into the buffer, or into a message.
void TwoPhase::PutSlice(int index, int which) {
  Side& side = sides_[static_cast<size_t>(index)];
  FindSlice(side);
  uint8_t* const buffer = aggregators_.Buffer(index, which);
  if (buffer == nullptr) {
    MessageMemory::Piece data;
    if (message_memory_.Take(side.to - side.from, &data)) {
      Pack(memory_, data.bytes());
    } else {
      LeaveOut(side);
    }
    SendList(index);
    if (side.to != side.from) Post(std::move(data), aggregators_.rank(index));
    return;
  }
  RunReader reader(side.runs.runs());
  for (FileRange range; reader.Next(&range);) Pack(memory_, {buffer + (range.offset - side.start), static_cast<size_t>(range.bytes)});
  std::atomic_thread_fence(std::memory_order_release);
  SendList(index);
}

// Its data of a window that was read, up to the end of the file.
void TwoPhase::TakeSlice(int index, int which, int64_t end_of_file) {
  Side& side = sides_[static_cast<size_t>(index)];
  memory_.Seek(side.from - access_.position());
  const uint8_t* const buffer = aggregators_.Buffer(index, which);
  if (buffer == nullptr) {
    const int64_t bytes = BytesBefore(end_of_file, side.runs.runs());
    if (bytes == 0) return;
    MessageMemory::Piece data;
    if (!message_memory_.Take(bytes, &data)) {
      Note(NoMemory(bytes));
      return Discard(nullptr, 0, aggregators_.rank(index), kData);
    }
    if (Fetch(data.data(), bytes, aggregators_.rank(index), kData)) Unpack(memory_, data.bytes());
    return message_memory_.Give(std::move(data));
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  RunReader reader(side.runs.runs());
  for (FileRange range; reader.Next(&range);) {
    const int64_t there = std::clamp<int64_t>(end_of_file - range.offset, 0, range.bytes);
    if (there == 0) break;
    Unpack(memory_, {buffer + (range.offset - side.start), static_cast<size_t>(there)});
  }
}

Go TwoPhase::HearGo(int index) {
  constexpr Go kEnd = {kNowhere, 0};
  if (is_own(index)) return own_go_;
  const Side& side = sides_[static_cast<size_t>(index)];
  const int aggregator = aggregators_.rank(index);
  Go go;
  if (!Fetch(&go, sizeof go, aggregator, kGo)) return kEnd;
  if (go.is_given_up()) return kEnd;
  if (go.MakesSense(Window(side), side.domain.end(), side.next)) return go;
  Note(Error(MPI_ERR_INTERN, file_.name + ": rank " + std::to_string(aggregator) + " announced a window at " + std::to_string(go.next) +
                                 ", which cannot be the next one"));
  return kEnd;
}

// --- as an aggregator ---

void TwoPhase::ReceiveList(int rank, const FileRange& window) {
  ListOf(rank) = {};
  MPI_Status status;
  if (Error error = AwaitMessage(rank, kList, comm_, &status); !error.ok()) return Note(Break(comm_, std::move(error)));
  const int64_t bytes = GetCount(status), data = extents_[static_cast<size_t>(rank)].bytes;
  // Only who reads may have the same bytes twice.
  const int64_t most = access_.writes() ? std::min(window.bytes, data) : data;
  const bool may_be = bytes <= WindowList::MostMessageBytes(most);
  const std::unique_ptr<uint8_t[]> message(may_be ? new (std::nothrow) uint8_t[static_cast<size_t>(bytes)] : nullptr);
  uint8_t head[WindowList::kHeadBytes] = {};
  if (message != nullptr) {
    if (!Fetch(message.get(), bytes, rank, kList)) return;
    std::memcpy(head, message.get(), std::min<size_t>(sizeof head, static_cast<size_t>(bytes)));
  } else {
    Discard(head, sizeof head, rank, kList);
  }
  const std::string who = file_.name + ": rank " + std::to_string(rank);
  const std::string size = std::to_string(bytes) + " bytes of ranges";
  Error error = !may_be ? Error(MPI_ERR_INTERN, who + " sent " + size + ", more than it can have") : Error();
  if (may_be) {
    const bool has_memory = message != nullptr && WithMemory([&] {
      const bool taken = WindowList::Parse({message.get(), static_cast<size_t>(bytes)}, window, most, &ListOf(rank));
      if (!taken) error = Error(MPI_ERR_INTERN, who + " listed data outside of the requested window");
    });
    if (!has_memory) error = Error(MPI_ERR_NO_MEM, who + " sent " + size + ", for which there is no memory; a smaller window (hint cb_buffer_size) needs less");
  }
  if (error.ok()) return;
  Note(std::move(error));
  GiveUp(rank, WindowList::DataBytesOf(head) > 0);
}

void TwoPhase::GiveUp(int rank, bool has_data) {
  const auto place = std::find(senders_.begin(), senders_.end(), rank) - senders_.begin();
  senders_.erase(senders_.begin() + place);
  lists_.erase(lists_.begin() + place);
  const Go go = Go::GivenUp();
  std::vector<uint8_t> message(sizeof go);
  std::memcpy(message.data(), &go, sizeof go);
  Post(std::move(message), rank, kGo);
  if (access_.writes() && has_data && !aggregators_.Shares(rank)) Discard(nullptr, 0, rank, kData);
}

// What another host's rank sent, to where it belongs in the buffer.
void TwoPhase::ReceiveData(int rank, uint8_t* buffer, const FileRange& window) {
  const WindowList& list = ListOf(rank);
  if (list.bytes == 0) return;
  MessageMemory::Piece data;
  if (!message_memory_.Take(list.bytes, &data)) {
    Note(NoMemory(list.bytes));
    return GiveUp(rank, /*has_data=*/true);
  }
  if (!Fetch(data.data(), list.bytes, rank, kData)) return;
  RunReader reader(list.runs);
  const uint8_t* from = data.data();
  for (FileRange range; reader.Next(&range); from += range.bytes) {
    std::memcpy(buffer + (range.offset - window.offset), from, static_cast<size_t>(range.bytes));
  }
  message_memory_.Give(std::move(data));
}

void TwoPhase::GatherLists() {
  const FileRange window = Window(sides_[static_cast<size_t>(aggregators_.own_index())]);
  const std::vector<int> senders = senders_;  // some may be given up
  for (const int rank : senders) {
    if (rank != comm_.rank) ReceiveList(rank, window);
  }
  std::atomic_thread_fence(std::memory_order_acquire);
}

int64_t TwoPhase::NextStart() const {
  int64_t next = kNowhere;
  for (const WindowList& list : lists_) next = std::min(next, list.next);
  return next;
}

std::vector<std::span<const RangeRun>> TwoPhase::ListedRuns() const {
  std::vector<std::span<const RangeRun>> runs;
  for (const WindowList& list : lists_) runs.emplace_back(list.runs);
  return runs;
}

void TwoPhase::WriteWindow(uint8_t* buffer, const FileRange& window) {
  MergedRanges ranges(ListedRuns(), 0);
  int failed = 0;
  {
    const bool locked = file_.writes_locked();
    const UnlockGuard unlocked;
    std::unique_lock alone(file_.locked_mutex, std::defer_lock);
    if (locked) {
      alone.lock();
      failed = file_.raw->Lock(window.offset, window.bytes, true);
    }
    for (FileRange range; failed == 0 && ranges.Next(&range);) {
      iovec piece = {buffer + (range.offset - window.offset), static_cast<size_t>(range.bytes)};
      failed = WriteRange(*file_.raw, {&piece, 1}, range.offset).error;
    }
    if (locked) (void)file_.raw->Unlock(window.offset, window.bytes);
  }
  if (failed != 0) Note(access_.Failure(failed));
}

// Where the file turned out to end, or could not be read further.
int64_t TwoPhase::ReadWindow(uint8_t* buffer, const FileRange& window) {
  int64_t gap = kGapWorthReading;
  if (file_.hints.ds_read == Hints::Choice::kEnable) gap = window.bytes;
  if (file_.hints.ds_read == Hints::Choice::kDisable) gap = 0;
  MergedRanges ranges(ListedRuns(), gap);
  Moved moved;
  int64_t end_of_file = kNowhere;
  {
    const UnlockGuard unlocked;
    for (FileRange range; end_of_file == kNowhere && ranges.Next(&range);) {
      iovec piece = {buffer + (range.offset - window.offset), static_cast<size_t>(range.bytes)};
      moved = ReadRange(*file_.raw, {&piece, 1}, range.offset);
      if (moved.bytes < range.bytes) end_of_file = range.offset + moved.bytes;
    }
  }
  if (moved.error != 0) Note(access_.Failure(moved.error));
  std::atomic_thread_fence(std::memory_order_release);
  return end_of_file;
}

void TwoPhase::SendGo(const Go& go) {
  own_go_ = go;
  for (const int rank : senders_) {
    if (rank == comm_.rank) continue;
    std::vector<uint8_t> message(sizeof go);
    std::memcpy(message.data(), &go, sizeof go);
    Post(std::move(message), rank, kGo);
  }
}

// Whom there is no memory for is given up.
std::vector<MessageMemory::Piece> TwoPhase::RoomForData(int64_t end_of_file) {
  std::vector<MessageMemory::Piece> rooms;
  while (rooms.size() < senders_.size()) {
    const size_t i = rooms.size();
    MessageMemory::Piece& data = rooms.emplace_back();
    if (senders_[i] == comm_.rank || aggregators_.Shares(senders_[i])) continue;
    const int64_t bytes = BytesBefore(end_of_file, lists_[i].runs);
    if (message_memory_.Take(bytes, &data)) continue;
    Note(NoMemory(bytes));
    rooms.pop_back();
    GiveUp(senders_[i], /*has_data=*/false);
  }
  return rooms;
}

// To ranks that do not see the buffer, what they asked for.
void TwoPhase::SendData(std::vector<MessageMemory::Piece> rooms, uint8_t* buffer, const FileRange& window, int64_t end_of_file) {
  for (size_t i = 0; i < senders_.size(); ++i) {
    if (senders_[i] == comm_.rank || aggregators_.Shares(senders_[i])) continue;
    if (rooms[i].empty()) continue;
    uint8_t* to = rooms[i].data();
    RunReader reader(lists_[i].runs);
    for (FileRange range; reader.Next(&range);) {
      const auto there = static_cast<size_t>(std::clamp<int64_t>(end_of_file - range.offset, 0, range.bytes));
      std::memcpy(to, buffer + (range.offset - window.offset), there);
      to += there;
    }
    Post(std::move(rooms[i]), senders_[i]);
  }
}

// --- the two directions ---

Error TwoPhase::Write(int64_t* moved) {
  const int own = aggregators_.own_index();
  for (int round = 0;; ++round) {
    const int which = round % Aggregators::kBuffers;
    bool any = false;
    DropSent();
    for (int i = 0; i < aggregators_.count(); ++i) {
      Side& side = sides_[static_cast<size_t>(i)];
      if (!side.active) continue;
      if (round > 0) {
        side.start = HearGo(i).next;
        side.active = side.start != kNowhere;
        if (!side.active) continue;
      }
      any = true;
      if (side.sends) PutSlice(i, which);
    }
    if (!any) break;
    if (own >= 0 && sides_[static_cast<size_t>(own)].active) {
      const FileRange window = Window(sides_[static_cast<size_t>(own)]);
      uint8_t* const buffer = aggregators_.Buffer(own, which);
      GatherLists();
      for (const int rank : std::vector<int>(senders_)) {  // some may be given up
        if (rank != comm_.rank && !aggregators_.Shares(rank)) ReceiveData(rank, buffer, window);
      }
      // The others fill the other buffer, whose data is written, while this one is.
      SendGo({NextStart(), kNowhere});
      WriteWindow(buffer, window);
    }
  }
  AwaitPosted();
  *moved = error_.ok() ? access_.bytes() : 0;
  return std::move(error_);
}

Error TwoPhase::Read(int64_t* moved) {
  const int own = aggregators_.own_index();
  for (int i = 0; i < aggregators_.count(); ++i) {
    Side& side = sides_[static_cast<size_t>(i)];
    if (!side.active || !side.sends) continue;
    FindSlice(side);
    SendList(i);
  }
  for (int round = 0;; ++round) {
    const int which = round % Aggregators::kBuffers;
    bool any = false;
    DropSent();
    if (own >= 0 && sides_[static_cast<size_t>(own)].active) {
      Side& side = sides_[static_cast<size_t>(own)];
      const FileRange window = Window(side);
      uint8_t* const buffer = aggregators_.Buffer(own, which);
      GatherLists();
      const int64_t end_of_file = ReadWindow(buffer, window);
      std::vector<MessageMemory::Piece> rooms = RoomForData(end_of_file);
      SendGo({NextStart(), end_of_file});
      SendData(std::move(rooms), buffer, window, end_of_file);
      if (!side.sends) {  // its own data is nowhere here
        side.start = own_go_.next;
        side.active = side.start != kNowhere;
        any = side.active;
      }
    }
    for (int i = 0; i < aggregators_.count(); ++i) {
      Side& side = sides_[static_cast<size_t>(i)];
      if (!side.active || !side.sends) continue;
      const Go go = HearGo(i);
      end_of_file_ = std::min(end_of_file_, go.end_of_file);
      // The list of the next window goes first, so that the aggregator reads while this one is copied.
      RunWriter runs;
      std::swap(runs, side.runs);
      Side now = side;
      std::swap(runs, now.runs);
      side.start = go.next;
      side.active = go.next != kNowhere;
      if (side.active) {
        FindSlice(side);
        SendList(i);
        any = true;
      }
      std::swap(now, side);
      TakeSlice(i, which, go.end_of_file);
      std::swap(now, side);
    }
    if (!any) break;
  }
  AwaitPosted();
  const int64_t before_end = end_of_file_ == kNowhere ? INT64_MAX : access_.view().PositionBefore(end_of_file_);
  *moved = std::clamp<int64_t>(before_end - access_.position(), 0, access_.bytes());
  return std::move(error_);
}

}  // namespace weft::mpi::io
