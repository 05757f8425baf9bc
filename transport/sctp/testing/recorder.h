#ifndef TRANSPORT_SCTP_TESTING_RECORDER_H_
#define TRANSPORT_SCTP_TESTING_RECORDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/sctp/sctp.h"

namespace weft::transport::sctp {

// An association keeps its handler alive. An object that owns the association and is its handler passes this instead.
class WeakHandler : public ReadyHandler {
 public:
  explicit WeakHandler(std::weak_ptr<ReadyHandler> handler) : handler_(std::move(handler)) {}
  void OnReady(Interest ready) override {
    if (auto handler = handler_.lock()) handler->OnReady(ready);
  }

 private:
  const std::weak_ptr<ReadyHandler> handler_;
};

// The owner of an association in a test: receives everything, and sends what it is given as far as there is room. Its
// association outlives every call.
class Recorder : public ReadyHandler {
 public:
  struct Message {
    MessageInfo info;  // for its first bytes
    std::vector<uint8_t> bytes;
  };

  static std::shared_ptr<Recorder> Of(std::unique_ptr<Association> association) {
    auto recorder = std::make_shared<Recorder>();
    recorder->association = std::move(association);
    recorder->association->Watch(std::make_shared<WeakHandler>(recorder));
    return recorder;
  }

  void OnReady(Interest ready) override {
    ++wake_ups;
    if (ready.read) Receive();
    if (ready.write) Send();
    if (then) then(*this);
  }

  void Receive() {
    if (association == nullptr) return;
    std::vector<uint8_t> room(65536);
    while (true) {
      const iovec piece{.iov_base = room.data(), .iov_len = room.size()};
      const Received received = association->Receive({&piece, 1});
      switch (received.kind) {
        case Received::Kind::kNothing:
          return;
        case Received::Kind::kEnded:
          ended = true;
          return;
        case Received::Kind::kFailed:
          error = received.error;
          return;
        case Received::Kind::kEvent:
          events.push_back(received.event);
          if (received.event.kind == Event::Kind::kUp) up = received.event;
          if (received.event.kind == Event::Kind::kRecordAborted) partial.reset();
          break;
        case Received::Kind::kMessage:
          bytes_received += received.bytes;
          if (!keep) break;
          if (received.info.begins) partial = Message{.info = received.info};
          if (partial)
            partial->bytes.insert(partial->bytes.end(), room.begin(),
                                  room.begin() + static_cast<ptrdiff_t>(received.bytes));
          if (partial && received.info.end_of_record) messages.push_back(*std::exchange(partial, std::nullopt));
          break;
      }
    }
  }

  void Queue(uint16_t stream, uint32_t ppid, std::vector<uint8_t> bytes, bool unordered = false) {
    waiting.push_back({{.stream = stream, .ppid = ppid, .unordered = unordered}, std::move(bytes)});
    Send();
  }
  void Send() {
    while (association != nullptr && next < waiting.size()) {
      Message& message = waiting[next];
      const iovec piece{.iov_base = message.bytes.data(), .iov_len = message.bytes.size()};
      const IoResult sent = association->Send({.stream = message.info.stream,
                                               .ppid = message.info.ppid,
                                               .unordered = message.info.unordered,
                                               .pieces = {&piece, 1}});
      if (sent.kind == IoResult::Kind::kFailed) send_error = sent.error;
      if (sent.kind != IoResult::Kind::kDone) return;
      ++next;
    }
  }
  bool all_sent() const { return next == waiting.size(); }
  bool over() const { return ended || error != 0; }

  std::unique_ptr<Association> association;
  std::vector<Message> messages;
  std::vector<Event> events;
  std::optional<Event> up;
  std::optional<Message> partial;
  std::vector<Message> waiting;
  size_t next = 0;
  uint64_t bytes_received = 0;
  uint64_t wake_ups = 0;
  bool keep = true;  // keep messages
  bool ended = false;
  int error = 0, send_error = 0;
  std::function<void(Recorder&)> then;  // called after each call
};

// Accepts all associations.
class Acceptor : public ReadyHandler {
 public:
  static std::shared_ptr<Acceptor> Of(std::unique_ptr<Listener> listener) {
    auto acceptor = std::make_shared<Acceptor>();
    acceptor->listener = std::move(listener);
    acceptor->listener->Watch(std::make_shared<WeakHandler>(acceptor));
    return acceptor;
  }
  void OnReady(Interest) override {
    while (true) {
      auto association = listener->Accept();
      if (!association) return;
      accepted.push_back(Recorder::Of(std::move(*association)));
      if (then) then(*accepted.back());
    }
  }

  std::unique_ptr<Listener> listener;
  std::vector<std::shared_ptr<Recorder>> accepted;
  std::function<void(Recorder&)> then;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_TESTING_RECORDER_H_
