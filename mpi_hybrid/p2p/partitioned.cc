#include "mpi_hybrid/p2p/partitioned.h"

#include <utility>

namespace weft::mpi {

PartitionedRequest::PartitionedRequest(const PartitionedData& data, Channel announcements, Comm& of)
    : Request(Kind::kPersistent), data_(data), announcements_(announcements) {
  persistent = true;
  active = false;
  complete = true;
  comm = Ref<Comm>(&of);
  if (!data.type->builtin) type_reference_ = Ref<const Datatype>(data.type);
}

void PartitionedRequest::Renew() {
  active = true;
  complete = false;
  status = {};
  error = {};
  failed_ = false;
}

void PartitionedRequest::Follow(Request* message) {
  if (!message->complete) {
    ++under_way_;
    AddRef();
    message->outer = this;
    return;
  }
  Ended(*message);
  message->Release();
}

void PartitionedRequest::InnerDone(Request& message) {
  --under_way_;
  Ended(message);
  message.Release();
  Settle();
  Release();
}

void PartitionedRequest::Note(Error noted) {
  if (noted.ok() || failed_) return;
  failed_ = true;
  error = std::move(noted);
}

void PartitionedRequest::Settle() {
  if (complete || busy_ || under_way_ != 0 || MoreToCome()) return;
  Complete();
}

}  // namespace weft::mpi
