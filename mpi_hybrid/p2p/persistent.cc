#include "mpi_hybrid/p2p/persistent.h"

#include <utility>

namespace weft::mpi {

PersistentRequest::PersistentRequest(const RepeatedMessage& message, Comm& of) : CompoundRequest(Kind::kPersistent), message_(message) {
  persistent = true;
  active = false;
  complete = true;
  comm = Ref<Comm>(&of);
  if (!message.type->builtin) type_reference_ = Ref<const Datatype>(message.type);
}

void PersistentRequest::Renew() {
  Drop();
  launched_ = nullptr;
  active = true;
  complete = false;
  status = {};
  error = {};
}

Error PersistentRequest::Launch() {
  const RepeatedMessage& m = message_;
  Request* inner = nullptr;
  Error failed = m.is_send ? StartSend(m.buffer, m.count, *m.type, m.peer, m.tag, *comm, m.mode, Channel::kPointToPoint, &inner)
                           : StartReceive(m.buffer, m.count, *m.type, m.peer, m.tag, *comm, Channel::kPointToPoint, &inner);
  if (!failed.ok()) {
    active = false;
    complete = true;
    return failed;
  }
  launched_ = inner;
  Follow(inner);
  return {};
}

void PersistentRequest::Ended(Request& inner) {
  status = inner.status;
  error = std::move(inner.error);
  Complete();
}

Error MakePersistentSend(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm, SendMode mode,
                         Request** request) {
  *request = new PersistentRequest({true, const_cast<void*>(buffer), count, &type, destination, tag, mode}, comm);
  return {};
}

Error MakePersistentReceive(void* buffer, MPI_Aint count, const Datatype& type, int source, int tag, Comm& comm, Request** request) {
  *request = new PersistentRequest({false, buffer, count, &type, source, tag}, comm);
  return {};
}

}  // namespace weft::mpi
