#include "mpi_hybrid/p2p/message.h"

namespace weft::mpi {
namespace {

// A send or receive that can be started again and again; each start is a request of its own.
class PersistentRequest : public Request {
 public:
  PersistentRequest(const void* buffer, MPI_Aint count, const Datatype& type, int peer, int tag, Comm& user_comm)
      : Request(Kind::kPersistent), buffer_(buffer), count_(count), type_(&type), peer_(peer), tag_(tag) {
    persistent = true;
    active = false;
    complete = true;
    comm = Ref<Comm>(&user_comm);
    if (!type.builtin) type_reference_ = Ref<const Datatype>(&type);
  }
  ~PersistentRequest() override { Drop(); }

  bool is_send = false;
  SendMode mode = SendMode::kStandard;

  Error Start() override {
    Drop();
    active = true;
    complete = false;
    status = {};
    error = {};
    Request* inner = nullptr;
    Error failed = is_send ? StartSend(buffer_, count_, *type_, peer_, tag_, *comm, mode, Channel::kPointToPoint, &inner)
                           : StartReceive(const_cast<void*>(buffer_), count_, *type_, peer_, tag_, *comm, Channel::kPointToPoint, &inner);
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
  Error Cancel() override { return inner_ != nullptr && !complete ? inner_->Cancel() : Error(); }

  void InnerDone(Request& inner) override {
    status = inner.status;
    error = std::move(inner.error);
    Complete();
    if (std::exchange(held_, false)) Release();
  }

 private:
  void Drop() {
    if (inner_ == nullptr) return;
    inner_->outer = nullptr;
    inner_->Release();
    inner_ = nullptr;
  }

  const void* const buffer_;
  const MPI_Aint count_;
  const Datatype* const type_;
  Ref<const Datatype> type_reference_;
  const int peer_, tag_;
  Request* inner_ = nullptr;  // of the last start
  bool held_ = false;
};

}  // namespace

Error MakePersistentSend(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm, SendMode mode,
                         Request** request) {
  auto* made = new PersistentRequest(buffer, count, type, destination, tag, comm);
  made->is_send = true;
  made->mode = mode;
  *request = made;
  return {};
}

Error MakePersistentReceive(void* buffer, MPI_Aint count, const Datatype& type, int source, int tag, Comm& comm, Request** request) {
  *request = new PersistentRequest(buffer, count, type, source, tag, comm);
  return {};
}

}  // namespace weft::mpi
