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

// Partitioned communication (MPI 4.0 chapter 4). Sends match receives in the order of their making among those of the same communicator, pair and
// tag, of which kMostPartitioned may be there at a time. A sender announces once how it divides the data (partition_map.h), and from then on each
// partition is a message of its own, which leaves when it is ready. Those that become ready in a burst leave together: a partition waits for the next where
// that followed at once in the start before, though not for long, whatever the program does (Transport::WriteSoon). The last one waits for nobody.
namespace weft::mpi {

struct PartitionedData {
  void* buffer;  // of sends only read
  int partitions;
  MPI_Aint count;  // of elements in each
  const Datatype* type;
  int peer, tag;

  uint64_t bytes() const { return static_cast<uint64_t>(count * type->size); }  // of a partition
};

class PartitionedRequest : public Request {
 public:
  // Null: another kind of request.
  static PartitionedRequest* Of(Request* request) { return dynamic_cast<PartitionedRequest*>(request); }

  const PartitionedData& data() const { return data_; }
  Error Cancel() override { return {}; }  // not for these (MPI 4.0 section 4.2)

 protected:
  PartitionedRequest(const PartitionedData& data, Channel announcements, Comm& comm);

  void Renew();
  // Takes the caller's reference to a message of this start; Ended(message) follows, perhaps at once. This request lives until then.
  void Follow(Request* message);
  virtual void Ended(Request& message) = 0;
  // The first error is the request's.
  void Note(Error error);
  bool failed() const { return failed_; }
  // Completes the request when no message is under way and nothing else is to come; not while this object is busy with several messages.
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
  // MPI_ERR_ARG, MPI_ERR_OTHER: more partitions than there can be, as many such sends in the communicator.
  static Error Make(const PartitionedData& data, Comm& comm, Request** made);
  ~PartitionedSend() override;

  Error Start() override;
  // MPI_Pready of `partitions`. MPI_ERR_REQUEST: it is not started; MPI_ERR_ARG: one is out of range or ready already; then none is taken. That
  // a message fails is told by the request.
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
  // Of the calls of Ready of a start, in their order: whether the next one came right after it; of the start before, until it is known of this one.
  std::vector<bool> quick_;
  size_t calls_ = 0;  // of Ready, in this start
  std::chrono::steady_clock::time_point last_ready_;
};

class PartitionedReceive final : public PartitionedRequest {
 public:
  static Request* Make(const PartitionedData& data, Comm& comm);

  Error Start() override;
  // MPI_Parrived, in constant time; `partition` is in range. All have arrived in a request that is not active.
  bool HasArrived(int partition) const;

  // For the progress stage. The announcement came, or will not.
  bool heard() const { return announcing_ == nullptr; }
  // Posts the receives, if it came.
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

  Request* announcing_ = nullptr;  // the receive of the announcement; Follow has the reference
  PartitionAnnouncement sender_;
  std::optional<PartitionMap> map_;  // once the announcement was heard
  bool posted_ = false;              // in this start
  bool too_long_ = false;            // what is sent; it is received, and thrown away
  std::unique_ptr<uint8_t[]> packed_;  // where the sender's partitions begin inside of elements that are not contiguous
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_PARTITIONED_H_
