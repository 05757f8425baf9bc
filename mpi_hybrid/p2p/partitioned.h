#ifndef MPI_HYBRID_P2P_PARTITIONED_H_
#define MPI_HYBRID_P2P_PARTITIONED_H_

#include <mpi.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/p2p/engine/channel.h"
#include "mpi_hybrid/p2p/partition_map.h"
#include "mpi_hybrid/p2p/request/request.h"

// Partitioned communication (MPI 4.0 chapter 4). Sends match receives in the order in which they are made, among those
// of the same communicator, pair and tag; at most kMostPartitioned may exist at a time. A sender announces once how it
// divides the data (partition_map.h). From then on each partition is a message of its own, which is sent when it is
// ready. Partitions that become ready in a burst are sent together: a partition waits for the next one if that followed
// at once in the previous start. The wait is short, whatever the program does (Transport::WriteSoon). The last
// partition does not wait.
namespace weft::mpi {

struct PartitionedData {
  void* buffer;  // of sends: only read
  int partitions;
  MPI_Aint count;  // of elements in each
  const Datatype* type;
  int peer, tag;

  uint64_t bytes() const { return static_cast<uint64_t>(count * type->size); }  // of one partition
};

class PartitionedRequest : public Request {
 public:
  // Null: `request` is of another kind.
  static PartitionedRequest* Of(Request* request) { return dynamic_cast<PartitionedRequest*>(request); }

  const PartitionedData& data() const { return data_; }
  Error Cancel() override { return {}; }  // not for these requests (MPI 4.0 section 4.2)

 protected:
  PartitionedRequest(const PartitionedData& data, Channel announcements, Comm& comm);

  void Renew();
  // Takes the caller's reference to a message of this start. Ended(message) follows, perhaps at once; this request
  // lives until then.
  void Follow(Request* message);
  virtual void Ended(Request& message) = 0;
  // The first error becomes the request's error.
  void Note(Error error);
  bool failed() const { return failed_; }
  // Completes the request if no message is pending and no further one will come, unless this object is working on
  // several messages.
  void Settle();
  virtual bool MoreToCome() const = 0;

  const PartitionedData data_;
  const Channel announcements_;
  std::array<uint8_t, PartitionAnnouncement::kLength> announcement_{};
  bool busy_ = false;

 private:
  void InnerDone(Request& message) final;

  Ref<const Datatype> type_reference_;
  uint64_t under_way_ = 0;
  bool failed_ = false;  // in this start
};

class PartitionedSend final : public PartitionedRequest {
 public:
  // MPI_ERR_ARG: too many partitions. MPI_ERR_OTHER: too many such sends in the communicator.
  static Error Make(const PartitionedData& data, Comm& comm, Request** made);
  ~PartitionedSend() override;

  Error Start() override;
  // MPI_Pready of `partitions`. MPI_ERR_REQUEST: the request is not started. MPI_ERR_ARG: a partition is out of range
  // or already ready; then none is sent. The request reports the failure of a message.
  Error Ready(std::span<const int> partitions);

 private:
  PartitionedSend(const PartitionedData& data, Channel announcements, uint32_t stream, Comm& comm)
      : PartitionedRequest(data, announcements, comm), stream_(stream) {}

  void Ended(Request& message) override;
  bool MoreToCome() const override { return not_ready_ != 0 && !failed(); }
  Error Take(std::span<const int> partitions);
  bool NextFollowsAtOnce();
  Error SendOne(int partition, bool others_follow, bool together, Request** message);

  const uint32_t stream_;
  bool announced_ = false;
  std::vector<bool> ready_;
  size_t not_ready_ = 0;
  // By call of Ready in a start: whether the next call followed at once. The values are from the previous start until
  // they are known for the current one.
  std::vector<bool> quick_;
  size_t calls_ = 0;  // calls of Ready in this start
  std::chrono::steady_clock::time_point last_ready_;
};

class PartitionedReceive final : public PartitionedRequest {
 public:
  static Request* Make(const PartitionedData& data, Comm& comm);

  Error Start() override;
  // MPI_Parrived, in constant time; `partition` is in range. In an inactive request all partitions have arrived.
  bool HasArrived(int partition) const;

  // For the progress stage: the announcement has come, or will not come.
  bool heard() const { return announcing_ == nullptr; }
  // Posts the receives if the announcement has come.
  void PostIfAnnounced();

 private:
  PartitionedReceive(const PartitionedData& data, Channel announcements, Comm& comm)
      : PartitionedRequest(data, announcements, comm) {}

  void Ended(Request& message) override;
  void OnAnnouncement(Request& message);
  void OnPartition(const Request& message);
  bool MoreToCome() const override { return !posted_ && !failed(); }
  void Post();
  Error PostOne(uint32_t partition, Request** message);
  uint64_t capacity() const { return static_cast<uint64_t>(data_.partitions) * data_.bytes(); }

  Request* announcing_ = nullptr;  // the receive of the announcement; Follow owns the reference
  PartitionAnnouncement sender_;
  std::optional<PartitionMap> map_;  // set by the announcement
  bool posted_ = false;              // in this start
  bool too_long_ = false;            // the sender has more data than fits; it is received and discarded
  std::unique_ptr<uint8_t[]> packed_;  // for sender's partitions that begin inside elements that are not contiguous
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_PARTITIONED_H_
