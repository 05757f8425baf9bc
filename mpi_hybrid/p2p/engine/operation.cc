#include "mpi_hybrid/p2p/engine/operation.h"

#include <string>

#include "base/check.h"
#include "mpi_hybrid/datatype/external32.h"
#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/engine/pool.h"

namespace weft::mpi {

Error SendRequest::Cancel() {
  if (!complete) engine->CancelSend(*this);
  return {};
}

void SendRequest::PackNext(size_t bytes) {
  if (fine_grained.left() == 0) return;
  if (packed == nullptr) packed.reset(new uint8_t[bytes]);  // the first part is the longest
  fine_grained.Take({packed.get(), bytes});
  payload = Payload(packed.get(), bytes);
}

void SendRequest::Recycle() {
  Reset();
  link = nullptr;
  stage = Stage::kIdle;
  synchronous = excuse = external = eager = cancelling = false;
  id = 0;
  type = nullptr;
  type_reference = nullptr;
  payload = Payload();
  fine_grained = Payload();
  packed.reset();
  self = nullptr;
  Pool<SendRequest>::Give(this);
}

Error ReceiveRequest::Cancel() {
  if (!complete) engine->CancelReceive(*this);
  return {};
}

Error ReceiveRequest::Hindrance() const { return complete ? Error() : engine->Hindrance(*this); }

void ReceiveRequest::NoteUnusual(const MatchKey& envelope, uint8_t flags) {
  if ((flags & kFlagExcuse) != 0) {
    error = Error(MPIX_ERR_PROC_FAILED, "rank " + std::to_string(envelope.source) + " could not send its message, because a process died");
  }
  if ((flags & kFlagExternal) == 0) return;
  capacity = static_cast<uint64_t>(ExternalSize(count, *type));
  const auto bytes = static_cast<size_t>(std::min(length, capacity));
  if (!FitsInPlace(*type)) staged.reset(new uint8_t[bytes]);  // not zeroed: it will be written first
  external = staged != nullptr ? staged.get() : static_cast<uint8_t*>(buffer);
  payload = Payload(external, bytes);
  ends_slowly = true;
}

void ReceiveRequest::Convert() {
  const auto bytes = static_cast<size_t>(std::min(length, capacity));
  const MPI_Count stored = UnpackExternalBytes({external, bytes}, buffer, count, *type);
  external = nullptr;
  staged.reset();
  payload = Payload();
  SetCount(status, stored);
  if (length > capacity) return;
  length = static_cast<uint64_t>(stored);
  capacity = static_cast<uint64_t>(count * type->size);
}

void ReceiveRequest::Recycle() {
  Reset();
  link = nullptr;
  stage = Stage::kIdle;
  id = 0;
  in_body = ends_slowly = false;
  external = nullptr;
  staged.reset();
  type = nullptr;
  type_reference = nullptr;
  payload = Payload();
  Pool<ReceiveRequest>::Give(this);
}

uint8_t* Message::Allocate(size_t bytes) {
  if (bytes <= kInline) return data = inline_;
  large_.reset(new uint8_t[bytes]);  // not zeroed: it will be written first
  return data = large_.get();
}

void Message::Drop() {
  large_.reset();
  link = nullptr;
  kind = FrameKind::kEager;
  synchronous = taken = early = false;
  unusual = 0;
  send_id = 0;
  offer = 0;
  send = nullptr;
  data = nullptr;
  arrived = 0;
  receive = nullptr;
  Pool<Message>::Give(this);
}

DoneRequest* DoneRequest::Make(const MPI_Status& status) {
  DoneRequest* request = Pool<DoneRequest>::Take();
  request->status = status;
  request->complete = true;
  return request;
}

void DoneRequest::Recycle() {
  Reset();
  Pool<DoneRequest>::Give(this);
}

}  // namespace weft::mpi
