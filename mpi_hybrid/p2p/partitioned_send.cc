#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/p2p/partitioned.h"
#include "mpi_hybrid/p2p/process_device.h"

namespace weft::mpi {
namespace {

// Two that become ready within this time make a burst. A system call that wakes the receiver takes a third of it.
constexpr std::chrono::microseconds kBurst{20};

// Which streams (PartitionChannel) this process sends on. One that was given back is taken again as late as possible.
class Streams {
 public:
  std::optional<uint32_t> Take(const Comm& comm) {
    for (uint32_t tried = 0; tried < kMostPartitioned; ++tried) {
      const uint32_t stream = next_++ % kMostPartitioned;
      if (taken_.insert({&comm, stream}).second) return stream;
    }
    return std::nullopt;
  }
  void GiveBack(const Comm& comm, uint32_t stream) { taken_.erase({&comm, stream}); }

 private:
  std::set<std::pair<const Comm*, uint32_t>> taken_;
  uint32_t next_ = 0;
};

Streams& TheStreams() {
  static auto* streams = new Streams;  // guarded by the library's lock; outlives the program's exit handlers
  return *streams;
}

}  // namespace

Error PartitionedSend::Make(const PartitionedData& data, Comm& comm, Request** made) {
  if (static_cast<uint32_t>(data.partitions) > PartitionAnnouncement::kMostPartitions) {
    return Error(MPI_ERR_ARG, "partitions " + std::to_string(data.partitions) + " is more than a send can have, " +
                                  std::to_string(PartitionAnnouncement::kMostPartitions));
  }
  const std::optional<uint32_t> stream = TheStreams().Take(comm);
  if (!stream) {
    return Error(MPI_ERR_OTHER, "the communicator has " + std::to_string(kMostPartitioned) +
                                    " partitioned sends already, which is all that it can have; free some");
  }
  const Channel announcements = PartitionedChannel(comm.partitioned[{true, data.peer, data.tag}]++);
  *made = new PartitionedSend(data, announcements, *stream, comm);
  return {};
}

PartitionedSend::~PartitionedSend() { TheStreams().GiveBack(*comm, stream_); }

Error PartitionedSend::Start() {
  Renew();
  ready_.assign(static_cast<size_t>(data_.partitions), false);
  not_ready_ = ready_.size();
  calls_ = 0;
  if (!announced_ && data_.peer != MPI_PROC_NULL) {
    PartitionAnnouncement{static_cast<uint32_t>(data_.partitions), stream_, data_.bytes()}.SerializeTo(announcement_);
    Request* message = nullptr;
    Error failed = StartSend(announcement_.data(), announcement_.size(), *Datatype::Find(MPI_BYTE), data_.peer, data_.tag, *comm,
                             SendMode::kStandard, announcements_, &message);
    if (!failed.ok()) {
      active = false;
      complete = true;
      return failed;
    }
    announced_ = true;
    Follow(message);
  }
  Settle();
  return {};
}

Error PartitionedSend::Ready(std::span<const int> partitions) {
  if (!active) return Error(MPI_ERR_REQUEST, "the partitioned send is not started");
  WEFT_MPI_TRY(Take(partitions));
  not_ready_ -= partitions.size();
  const bool waits = NextFollowsAtOnce() && not_ready_ != 0, together = partitions.size() > 1;
  busy_ = true;
  for (const int partition : partitions) {
    if (failed() || data_.peer == MPI_PROC_NULL) break;
    Request* message = nullptr;
    if (Error error = SendOne(partition, waits, together, &message); error.ok()) {
      Follow(message);
    } else {
      Note(std::move(error));
    }
  }
  if (data_.peer != MPI_PROC_NULL) ProcessDevice()->Flush();
  busy_ = false;
  Settle();
  return {};
}

// Marks them as ready, all or none.
Error PartitionedSend::Take(std::span<const int> partitions) {
  for (size_t taken = 0; taken < partitions.size(); ++taken) {
    const int partition = partitions[taken];
    const bool in_range = partition >= 0 && partition < data_.partitions;
    if (in_range && !ready_[static_cast<size_t>(partition)]) {
      ready_[static_cast<size_t>(partition)] = true;
      continue;
    }
    while (taken != 0) ready_[static_cast<size_t>(partitions[--taken])] = false;
    return Error(MPI_ERR_ARG, "partition " + std::to_string(partition) +
                                  (in_range ? " is ready already" : " is not one of " + std::to_string(data_.partitions)));
  }
  return {};
}

bool PartitionedSend::NextFollowsAtOnce() {
  const auto now = std::chrono::steady_clock::now();
  if (calls_ != 0) quick_[calls_ - 1] = now - last_ready_ < kBurst;
  last_ready_ = now;
  if (calls_ == quick_.size()) quick_.push_back(false);
  return quick_[calls_++];
}

// Those of one call leave together, by one system call for many frames, also where they are long.
Error PartitionedSend::SendOne(int partition, bool others_follow, bool together, Request** message) {
  const void* from = static_cast<const uint8_t*>(data_.buffer) + partition * data_.count * data_.type->extent;
  const Channel channel = PartitionChannel(stream_);
  if (together) return ProcessEngine()->StartSend(from, data_.count, *data_.type, data_.peer, partition, *comm, SendMode::kStandard, channel, message);
  if (others_follow) return StartSendSoon(from, data_.count, *data_.type, data_.peer, partition, *comm, channel, message);
  return StartSend(from, data_.count, *data_.type, data_.peer, partition, *comm, SendMode::kStandard, channel, message);
}

void PartitionedSend::Ended(Request& message) { Note(std::move(message.error)); }

}  // namespace weft::mpi
