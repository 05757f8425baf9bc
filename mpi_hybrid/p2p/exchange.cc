#include "mpi_hybrid/p2p/exchange.h"

#include <memory>
#include <utility>

#include "mpi_hybrid/datatype/external32.h"
#include "mpi_hybrid/p2p/engine/packed.h"
#include "mpi_hybrid/p2p/engine/payload.h"
#include "mpi_hybrid/p2p/foreign.h"
#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/p2p/process_device.h"
#include "mpi_hybrid/p2p/progress.h"
#include "mpi_hybrid/p2p/request/compound.h"

namespace weft::mpi {
namespace {

class ExchangeRequest : public CompoundRequest {
 public:
  explicit ExchangeRequest(Comm& of) : CompoundRequest(Kind::kSend) { comm = Ref<Comm>(&of); }

  // Takes the caller's references.
  void FollowBoth(Request* send, Request* receive) {
    send_ = send;
    receive_ = receive;
    Follow(send);
    Follow(receive);
  }

  Error Cancel() override {
    if (!receive_->complete) WEFT_MPI_TRY(receive_->Cancel());
    return send_->complete ? Error() : send_->Cancel();
  }

  Error Hindrance() const override { return receive_ != nullptr && !receive_->complete ? receive_->Hindrance() : Error(); }

  std::unique_ptr<uint8_t[]> copy;

 private:
  void Ended(Request& inner) override {
    if (&inner == receive_) status = inner.status;
    if (error.ok()) error = std::move(inner.error);
    if (--under_way_ == 0) Complete();
  }

  Request* send_ = nullptr;  // CompoundRequest has the references
  Request* receive_ = nullptr;
  int under_way_ = 2;
};

// Takes the reference to `exchange`, which becomes `*request` where both could be started.
Error Start(ExchangeRequest* exchange, const ExchangeSend& send, const ExchangeReceive& receive, Comm& comm, Request** request) {
  Request *receiving = nullptr, *sending;
  Error error = StartReceive(receive.buffer, receive.count, *receive.type, receive.source, receive.tag, comm, Channel::kPointToPoint,
                             &receiving);
  if (error.ok()) {
    error = StartSend(send.buffer, send.count, *send.type, send.destination, send.tag, comm, SendMode::kStandard, Channel::kPointToPoint,
                      &sending);
  }
  if (error.ok()) {
    exchange->FollowBoth(sending, receiving);
    *request = exchange;
    return {};
  }
  if (receiving != nullptr) {
    if (!receiving->complete) (void)receiving->Cancel();
    receiving->Release();
  }
  exchange->Release();
  return error;
}

}  // namespace

Error Exchange(const ExchangeSend& send, const ExchangeReceive& receive, Comm& comm, MPI_Status* status) {
  Request* sending = nullptr;
  const bool begun =
      SendAtOnce(send.buffer, send.count, *send.type, send.destination, send.tag, comm, Channel::kPointToPoint, &sending);
  if (begun && sending == nullptr) {
    return Receive(receive.buffer, receive.count, *receive.type, receive.source, receive.tag, comm, Channel::kPointToPoint, status);
  }
  // The send first: a long message that is there already is copied when its receive is posted, and the other should not wait for ours so long. But
  // nothing is sent where nothing can be received.
  if (!begun) {
    if (receive.source != MPI_PROC_NULL) {
      WEFT_MPI_TRY(ProcessEngine()->MayReceive(receive.source, receive.tag, comm, Channel::kPointToPoint));
    }
    WEFT_MPI_TRY(StartSend(send.buffer, send.count, *send.type, send.destination, send.tag, comm, SendMode::kStandard, Channel::kPointToPoint,
                           &sending));
  }
  Request* receiving = nullptr;
  Error error = StartReceive(receive.buffer, receive.count, *receive.type, receive.source, receive.tag, comm, Channel::kPointToPoint,
                             &receiving);
  Error sent = WaitFor(sending, nullptr);
  if (error.ok()) error = std::move(sent);
  if (receiving == nullptr) return error;
  if (!error.ok() && !receiving->complete) (void)receiving->Cancel();
  Error received = WaitFor(receiving, status);
  return error.ok() ? std::move(received) : std::move(error);
}

Error StartExchange(const ExchangeSend& send, const ExchangeReceive& receive, Comm& comm, Request** request) {
  return Start(new ExchangeRequest(comm), send, receive, comm, request);
}

Error StartExchangeInPlace(const ExchangeReceive& receive, int destination, int send_tag, Comm& comm, Request** request) {
  const bool foreign = destination != MPI_PROC_NULL && IsForeign(comm.peer(destination));
  const size_t length = static_cast<size_t>(foreign ? ExternalSize(receive.count, *receive.type) : receive.count * receive.type->size);
  auto* exchange = new ExchangeRequest(comm);
  exchange->copy.reset(new uint8_t[length]);
  if (foreign && length != 0) {
    PackExternal(receive.buffer, receive.count, *receive.type, exchange->copy.get());
  } else {
    Payload(receive.buffer, receive.count, *receive.type).Take({exchange->copy.get(), length});
  }
  const MPI_Datatype copied = IsPackedForClients(*receive.type, comm) ? MPI_PACKED : MPI_BYTE;
  const ExchangeSend send = {exchange->copy.get(), static_cast<MPI_Aint>(length), Datatype::Find(copied), destination, send_tag};
  return Start(exchange, send, receive, comm, request);
}

}  // namespace weft::mpi
