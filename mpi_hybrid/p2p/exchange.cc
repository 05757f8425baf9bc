#include "mpi_hybrid/p2p/exchange.h"

#include <memory>
#include <utility>

#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/p2p/engine/payload.h"
#include "mpi_hybrid/p2p/progress.h"

namespace weft::mpi {
namespace {

class ExchangeRequest : public Request {
 public:
  explicit ExchangeRequest(Comm& of) : Request(Kind::kSend) { comm = Ref<Comm>(&of); }
  ~ExchangeRequest() override {
    for (Request* inner : {send_, receive_}) {
      if (inner == nullptr) continue;
      inner->outer = nullptr;
      inner->Release();
    }
  }

  // Takes the caller's references.
  void Follow(Request* send, Request* receive) {
    send_ = send;
    receive_ = receive;
    AddRef();  // until it completes
    for (Request* inner : {send_, receive_}) {
      if (inner->complete) {
        InnerDone(*inner);
      } else {
        inner->outer = this;
      }
    }
  }

  void InnerDone(Request& inner) override {
    if (&inner == receive_) status = inner.status;
    if (error.ok()) error = std::move(inner.error);
    if (--under_way_ != 0) return;
    Complete();
    Release();
  }

  Error Cancel() override {
    if (!receive_->complete) WEFT_MPI_TRY(receive_->Cancel());
    return send_->complete ? Error() : send_->Cancel();
  }

  std::unique_ptr<uint8_t[]> copy;

 private:
  Request* send_ = nullptr;
  Request* receive_ = nullptr;
  int under_way_ = 2;
};

Error Start(ExchangeRequest* exchange, const ExchangeSend& send, const ExchangeReceive& receive, Comm& comm) {
  Request *receiving, *sending;
  WEFT_MPI_TRY(StartReceive(receive.buffer, receive.count, *receive.type, receive.source, receive.tag, comm, Channel::kPointToPoint,
                            &receiving));
  Error error = StartSend(send.buffer, send.count, *send.type, send.destination, send.tag, comm, SendMode::kStandard,
                          Channel::kPointToPoint, &sending);
  if (!error.ok()) {
    if (!receiving->complete) (void)receiving->Cancel();
    receiving->Release();
    return error;
  }
  exchange->Follow(sending, receiving);
  return {};
}

}  // namespace

Error Exchange(const ExchangeSend& send, const ExchangeReceive& receive, Comm& comm, MPI_Status* status) {
  Request* receiving;
  WEFT_MPI_TRY(StartReceive(receive.buffer, receive.count, *receive.type, receive.source, receive.tag, comm, Channel::kPointToPoint,
                            &receiving));
  Error error = Send(send.buffer, send.count, *send.type, send.destination, send.tag, comm, SendMode::kStandard, Channel::kPointToPoint);
  if (!error.ok() && !receiving->complete) (void)receiving->Cancel();
  Progress::Wait(*receiving);
  *status = receiving->status;
  if (error.ok()) error = std::move(receiving->error);
  receiving->Release();
  return error;
}

Error StartExchange(const ExchangeSend& send, const ExchangeReceive& receive, Comm& comm, Request** request) {
  auto* exchange = new ExchangeRequest(comm);
  Error error = Start(exchange, send, receive, comm);
  if (!error.ok()) {
    exchange->Release();
    return error;
  }
  *request = exchange;
  return {};
}

Error StartExchangeInPlace(const ExchangeReceive& receive, int destination, int send_tag, Comm& comm, Request** request) {
  Payload payload(receive.buffer, receive.count, *receive.type);
  const size_t length = payload.left();
  auto* exchange = new ExchangeRequest(comm);
  exchange->copy.reset(new uint8_t[length]);
  payload.Take({exchange->copy.get(), length});
  Error error = Start(exchange, {exchange->copy.get(), static_cast<MPI_Aint>(length), Datatype::Find(MPI_BYTE), destination, send_tag},
                      receive, comm);
  if (!error.ok()) {
    exchange->Release();
    return error;
  }
  *request = exchange;
  return {};
}

}  // namespace weft::mpi
