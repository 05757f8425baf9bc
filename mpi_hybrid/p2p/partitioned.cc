#include "mpi_hybrid/p2p/partitioned.h"

#include <string>
#include <utility>

namespace weft::mpi {

PartitionedRequest* PartitionedRequest::Make(bool is_send, void* buffer, int partitions, MPI_Aint count, const Datatype& type, int peer,
                                             int tag, Comm& comm) {
  auto* made = new PartitionedRequest;
  made->persistent = true;
  made->active = false;
  made->complete = true;
  made->comm = Ref<Comm>(&comm);
  made->is_send_ = is_send;
  made->buffer_ = buffer;
  made->count_ = count * partitions;
  made->type_ = &type;
  if (!type.builtin) made->type_reference_ = Ref<const Datatype>(&type);
  made->peer_ = peer;
  made->tag_ = tag;
  made->channel_ = PartitionedChannel(comm.partitioned[{is_send, peer, tag}]++);
  made->ready_.resize(static_cast<size_t>(partitions));
  return made;
}

PartitionedRequest* PartitionedRequest::Of(Request* request) { return dynamic_cast<PartitionedRequest*>(request); }

void PartitionedRequest::Drop() {
  if (inner_ == nullptr) return;
  inner_->outer = nullptr;
  inner_->Release();
  inner_ = nullptr;
}

Error PartitionedRequest::Start() {
  Drop();
  active = true;
  complete = false;
  status = {};
  error = {};
  ready_.assign(ready_.size(), false);
  not_ready_ = partitions();
  return is_send_ && not_ready_ != 0 ? Error() : Launch();
}

Error PartitionedRequest::Ready(int partition) {
  if (!active || complete || !is_send_) {
    return Error(MPI_ERR_REQUEST, "the request is not a started partitioned send with partitions that are not ready");
  }
  if (partition < 0 || partition >= partitions()) {
    return Error(MPI_ERR_ARG, "partition " + std::to_string(partition) + " is not one of " + std::to_string(partitions()));
  }
  if (ready_[static_cast<size_t>(partition)]) return Error(MPI_ERR_ARG, "partition " + std::to_string(partition) + " is ready already");
  ready_[static_cast<size_t>(partition)] = true;
  return --not_ready_ == 0 ? Launch() : Error();
}

Error PartitionedRequest::Launch() {
  Request* inner = nullptr;
  Error failed = is_send_
                     ? StartSend(buffer_, count_, *type_, peer_, tag_, *comm, SendMode::kStandard, channel_, &inner)
                     : StartReceive(buffer_, count_, *type_, peer_, tag_, *comm, channel_, &inner);
  if (!failed.ok()) {
    active = false;
    complete = true;
    return failed;
  }
  inner_ = inner;
  if (inner_->complete) {
    InnerDone(*inner_);
  } else {
    inner_->outer = this;
    AddRef();  // until it completes
    held_ = true;
  }
  return {};
}

void PartitionedRequest::InnerDone(Request& inner) {
  status = inner.status;
  error = std::move(inner.error);
  Complete();
  if (std::exchange(held_, false)) Release();
}

}  // namespace weft::mpi
