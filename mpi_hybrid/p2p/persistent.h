#ifndef MPI_HYBRID_P2P_PERSISTENT_H_
#define MPI_HYBRID_P2P_PERSISTENT_H_

#include <mpi.h>

#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/p2p/request/compound.h"

namespace weft::mpi {

// A message that can be started repeatedly; each start is an inner request of its own. The types are kept alive.
struct RepeatedMessage {
  bool is_send;
  void* buffer;  // of sends: only read
  MPI_Aint count;
  const Datatype* type;
  int peer, tag;
  SendMode mode = SendMode::kStandard;
};

// A persistent request of one message (MPI 4.0 section 3.9).
class PersistentRequest final : public CompoundRequest {
 public:
  PersistentRequest(const RepeatedMessage& message, Comm& comm);

  Error Start() override {
    Renew();
    return Launch();
  }
  Error Cancel() override { return launched_ != nullptr && !complete ? launched_->Cancel() : Error(); }

  Error Hindrance() const override { return launched_ != nullptr && !complete ? launched_->Hindrance() : Error(); }

 private:
  void Renew();
  // On an error the request is inactive again.
  Error Launch();
  void Ended(Request& inner) override;

  const RepeatedMessage message_;
  Ref<const Datatype> type_reference_;
  Request* launched_ = nullptr;  // of the last start; CompoundRequest owns the reference
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_PERSISTENT_H_
