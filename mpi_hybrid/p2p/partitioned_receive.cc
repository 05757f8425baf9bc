#include <string>
#include <utility>
#include <vector>

#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/p2p/partitioned.h"
#include "mpi_hybrid/p2p/progress.h"

namespace weft::mpi {
namespace {

// Posts the receives of those that heard the announcement: who hears it may not communicate. Registered while any waits for one.
class PartitionedStage final : public ProgressStage {
 public:
  void Add(PartitionedReceive& receive) {
    receive.AddRef();
    waiting_.push_back(&receive);
    if (registered_) return;
    registered_ = true;
    Progress::AddStage(this);
  }
  void Tell() { news_ = true; }

  bool Poll() override {
    if (!std::exchange(news_, false)) return false;
    std::vector<PartitionedReceive*> heard;
    std::erase_if(waiting_, [&](PartitionedReceive* receive) {
      if (receive->heard()) heard.push_back(receive);
      return receive->heard();
    });
    for (PartitionedReceive* receive : heard) {
      receive->PostIfAnnounced();
      receive->Release();
    }
    if (waiting_.empty() && std::exchange(registered_, false)) Progress::RemoveStage(this);
    return true;
  }
  bool Arm() override { return !news_; }
  int fd() const override { return -1; }

 private:
  std::vector<PartitionedReceive*> waiting_;  // a reference each
  bool registered_ = false;
  bool news_ = false;
};

PartitionedStage& TheStage() {
  static auto* stage = new PartitionedStage;
  return *stage;
}

}  // namespace

Request* PartitionedReceive::Make(const PartitionedData& data, Comm& comm) {
  return new PartitionedReceive(data, PartitionedChannel(comm.partitioned[{false, data.peer, data.tag}]++), comm);
}

Error PartitionedReceive::Start() {
  Renew();
  posted_ = false;
  if (data_.peer == MPI_PROC_NULL) {
    status = ProcNullStatus();
    posted_ = true;
    Settle();
    return {};
  }
  if (!map_) {
    Request* message = nullptr;
    Error failed = StartReceive(announcement_.data(), announcement_.size(), *Datatype::Find(MPI_BYTE), data_.peer, data_.tag, *comm,
                                announcements_, &message);
    if (!failed.ok()) {
      active = false;
      complete = true;
      return failed;
    }
    announcing_ = message;
    Follow(message);
    if (!heard()) TheStage().Add(*this);
  }
  if (heard()) PostIfAnnounced();
  return {};
}

bool PartitionedReceive::HasArrived(int partition) const {
  if (!active || complete) return true;
  return posted_ && !too_long_ && map_->IsComplete(static_cast<size_t>(partition));
}

void PartitionedReceive::Ended(Request& message) { return &message == announcing_ ? OnAnnouncement(message) : OnPartition(message); }

void PartitionedReceive::OnAnnouncement(Request& message) {
  announcing_ = nullptr;
  TheStage().Tell();
  if (!message.error.ok()) return Note(std::move(message.error));
  const auto parsed = PartitionAnnouncement::Parse(announcement_);
  if (GetCount(message.status) != PartitionAnnouncement::kLength || !parsed) {
    return Note(Error(MPI_ERR_OTHER, "the announcement of rank " + std::to_string(data_.peer) + " of its partitions is invalid"));
  }
  sender_ = *parsed;
  too_long_ = sender_.total() > capacity();
  map_.emplace(sender_.partitions, sender_.bytes, static_cast<size_t>(data_.partitions), data_.bytes());
  const auto element = static_cast<uint64_t>(data_.type->size);
  if (!data_.type->dense && element != 0 && sender_.bytes % element != 0 && !too_long_) packed_.reset(new uint8_t[sender_.total()]);
}

void PartitionedReceive::PostIfAnnounced() {
  if (!complete && !posted_ && map_) Post();
  Settle();
}

void PartitionedReceive::Post() {
  posted_ = true;
  map_->Restart();
  status.MPI_SOURCE = data_.peer;
  status.MPI_TAG = data_.tag;
  SetCount(status, static_cast<MPI_Count>(too_long_ ? 0 : sender_.total()));
  if (too_long_) {
    Note(Error(MPI_ERR_TRUNCATE, "rank " + std::to_string(data_.peer) + " sends " + std::to_string(sender_.partitions) + " partitions of " +
                                     std::to_string(sender_.bytes) + " bytes with tag " + std::to_string(data_.tag) +
                                     ", the receive has room for " + std::to_string(capacity()) + " bytes"));
  }
  busy_ = true;
  for (uint32_t partition = 0; partition < sender_.partitions; ++partition) {
    Request* message = nullptr;
    if (Error failed = PostOne(partition, &message); !failed.ok()) {
      Note(std::move(failed));
      break;  // of a sender that is gone; all others have failed, too
    }
    Follow(message);
  }
  busy_ = false;
}

Error PartitionedReceive::PostOne(uint32_t partition, Request** message) {
  const Datatype& bytes = *Datatype::Find(MPI_BYTE);
  const Channel channel = PartitionChannel(sender_.stream);
  const int tag = static_cast<int>(partition);
  const auto offset = static_cast<MPI_Aint>(partition * sender_.bytes), length = static_cast<MPI_Aint>(sender_.bytes);
  auto* const buffer = static_cast<uint8_t*>(data_.buffer);
  if (too_long_) return StartReceive(nullptr, 0, bytes, data_.peer, tag, *comm, channel, message);
  if (packed_ != nullptr) return StartReceive(packed_.get() + offset, length, bytes, data_.peer, tag, *comm, channel, message);
  if (data_.type->dense) return StartReceive(buffer + offset, length, bytes, data_.peer, tag, *comm, channel, message);
  const MPI_Aint size = data_.type->size, elements = size == 0 ? 0 : length / size;
  return StartReceive(buffer + partition * elements * data_.type->extent, elements, *data_.type, data_.peer, tag, *comm, channel, message);
}

void PartitionedReceive::OnPartition(const Request& message) {
  if (too_long_) return;
  if (!message.error.ok()) return Note(Error(message.error));
  const auto partition = static_cast<uint32_t>(message.status.MPI_TAG);
  if (const auto length = static_cast<uint64_t>(GetCount(message.status)); length != sender_.bytes) {
    return Note(Error(MPI_ERR_TRUNCATE, "partition " + std::to_string(partition) + " of rank " + std::to_string(data_.peer) + " has " +
                                            std::to_string(length) + " bytes, not the " + std::to_string(sender_.bytes) + " that it announced"));
  }
  if (packed_ != nullptr) {
    const size_t offset = partition * sender_.bytes;
    TypeCursor cursor(data_.buffer, data_.partitions * data_.count, *data_.type);
    cursor.Seek(static_cast<MPI_Aint>(offset));
    Unpack(cursor, {packed_.get() + offset, sender_.bytes});
  }
  map_->Arrived(partition);
}

}  // namespace weft::mpi
