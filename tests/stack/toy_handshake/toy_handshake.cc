#include "tests/stack/toy_handshake/toy_handshake.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <optional>
#include <utility>

#include "tests/stack/toy_channel/toy_channel.h"

namespace weft::sim {
namespace {

using llp::Progress;
using transport::SocketAddress;
constexpr size_t kMostPrivateData = 300;

struct Session {
  explicit Session(transport::Network& its_network) : network(its_network) {}
  void Tell(const std::shared_ptr<transport::ReadyHandler>& handler) {
    if (handler != nullptr) network.Post([handler] { handler->OnReady({.read = true, .write = true}); });
  }

  transport::Network& network;
  SocketAddress initiator_address, responder_address;
  std::shared_ptr<transport::ReadyHandler> initiator, responder;  // null: it has left
  llp::Proposal request;
  enum class Answer : uint8_t { kNone, kReset, kAccepted, kRejected };
  Answer answer = Answer::kNone;
  llp::Proposal reply;
  std::unique_ptr<llp::Channel> initiator_channel, responder_channel;
};

llp::Agreement Agree(const llp::Proposal& ours, const llp::Proposal& theirs) {
  return {.outcome = {.ird = std::min(ours.ird, theirs.ord), .ord = std::min(ours.ord, theirs.ird)},
          .reads_agreed = true,
          .claims = theirs.claims,
          .private_data = theirs.private_data};
}

class ToyResponder final : public llp::Responder {
 public:
  ToyResponder(std::shared_ptr<Session> session, Random& random) : session_(std::move(session)), random_(random) {}
  ~ToyResponder() override { Abandon(); }

  int Begin(std::shared_ptr<transport::ReadyHandler> handler) override {
    session_->Tell(handler);
    session_->responder = std::move(handler);
    return 0;
  }
  Progress Advance() override {
    if (session_->initiator == nullptr) return {.kind = Progress::Kind::kLost, .error = ECONNRESET, .why = "it left"};
    if (std::exchange(requested_, true)) return {};
    return {.kind = Progress::Kind::kRequested,
            .request = {.reads = {{.ird = session_->request.ord, .ord = session_->request.ird}},
                        .private_data = session_->request.private_data}};
  }
  Result<llp::Agreement, int> Accept(llp::Proposal ours) override {
    if (ours.private_data.size() > kMostPrivateData) return EINVAL;
    auto channels = MakeToyChannels(session_->network, random_);
    session_->initiator_channel = std::move(channels.first);
    session_->responder_channel = std::move(channels.second);
    Answer(Session::Answer::kAccepted, std::move(ours));
    return Agree(session_->reply, session_->request);
  }
  int Reject(const std::vector<uint8_t>& private_data, const llp::Claims*) override {
    if (private_data.size() > kMostPrivateData) return EINVAL;
    Answer(Session::Answer::kRejected, {.private_data = private_data});
    return 0;
  }
  void Abandon() override {
    if (session_->answer == Session::Answer::kNone) Answer(Session::Answer::kReset, {});
    session_->responder = nullptr;
  }
  std::unique_ptr<llp::Channel> TakeChannel() override { return std::move(session_->responder_channel); }
  const char* missing() const override { return "no request"; }
  SocketAddress LocalAddress() const override { return session_->responder_address; }
  SocketAddress PeerAddress() const override { return session_->initiator_address; }

 private:
  void Answer(Session::Answer answer, llp::Proposal reply) {
    session_->answer = answer;
    session_->reply = std::move(reply);
    session_->Tell(session_->initiator);
  }

  const std::shared_ptr<Session> session_;
  Random& random_;
  bool requested_ = false;
};

}  // namespace

class ToyListener final : public llp::Listener {
 public:
  ToyListener(ToySessions& wire, SocketAddress local) : wire_(wire), local_(std::move(local)) { wire_.listeners_[local_.port()] = this; }
  ~ToyListener() override { wire_.listeners_.erase(local_.port()); }

  void Watch(std::shared_ptr<transport::ReadyHandler> handler) override { handler_ = std::move(handler); }
  Result<std::unique_ptr<llp::Responder>, int> Accept() override {
    if (waiting_.empty()) return EAGAIN;
    auto responder = std::make_unique<ToyResponder>(std::move(waiting_.front()), wire_.random_);
    waiting_.pop_front();
    return std::unique_ptr<llp::Responder>(std::move(responder));
  }
  SocketAddress LocalAddress() const override { return local_; }

  void Add(std::shared_ptr<Session> session) {
    session->responder_address = local_;
    session->Tell(handler_);
    waiting_.push_back(std::move(session));
  }

 private:
  ToySessions& wire_;
  const SocketAddress local_;
  std::shared_ptr<transport::ReadyHandler> handler_;
  std::deque<std::shared_ptr<Session>> waiting_;
};

class ToyInitiator final : public llp::Initiator {
 public:
  ToyInitiator(ToySessions& wire, const SocketAddress& local, const SocketAddress& remote, llp::Proposal ours)
      : wire_(wire), local_(local), remote_(remote), ours_(std::move(ours)) {}
  ~ToyInitiator() override { Abandon(); }

  int Begin(std::shared_ptr<transport::ReadyHandler> handler) override {
    ++wire_.attempts;
    session_ = std::make_shared<Session>(wire_.network_);
    session_->initiator_address = local_;
    session_->initiator = std::move(handler);
    session_->request = ours_;
    reached_ = refused_ = false;
    if (wire_.nobody_answers) return 0;
    if (wire_.without_room > 0) {
      --wire_.without_room;
      session_->answer = Session::Answer::kReset;
    } else if (const auto at = wire_.listeners_.find(remote_.port()); at != wire_.listeners_.end()) {
      at->second->Add(session_);
    } else {
      refused_ = true;
    }
    session_->Tell(session_->initiator);
    return 0;
  }
  Progress Advance() override {
    if (session_ == nullptr) return {};
    if (refused_) return {.kind = Progress::Kind::kUnreachable, .error = ECONNREFUSED, .why = "nobody listens"};
    switch (session_->answer) {
      case Session::Answer::kNone:
        return {.kind = std::exchange(reached_, true) ? Progress::Kind::kNothing : Progress::Kind::kReached};
      case Session::Answer::kReset:
        return {.kind = Progress::Kind::kUnanswered, .error = ECONNRESET, .why = "it has no room"};
      case Session::Answer::kAccepted:
        return {.kind = Progress::Kind::kAccepted, .agreement = Agree(ours_, session_->reply)};
      case Session::Answer::kRejected:
        return {.kind = Progress::Kind::kRejected, .agreement = {.private_data = session_->reply.private_data}};
    }
    return {};
  }
  bool FallBack() override { return ++wire_.fallbacks == 1; }
  void Refuse(const std::function<void(llp::UlpduWriter&)>&) override {}
  void Abandon() override {
    if (session_ == nullptr) return;
    session_->initiator = nullptr;
    session_->Tell(session_->responder);
    session_ = nullptr;
  }
  std::unique_ptr<llp::Channel> TakeChannel() override { return std::move(session_->initiator_channel); }
  const char* missing() const override { return "no answer"; }
  SocketAddress LocalAddress() const override { return local_; }
  SocketAddress PeerAddress() const override { return remote_; }

 private:
  ToySessions& wire_;
  const SocketAddress local_, remote_;
  const llp::Proposal ours_;
  std::shared_ptr<Session> session_;
  bool reached_ = false, refused_ = false;
};

Result<std::unique_ptr<llp::Initiator>, int> ToySessions::Connect(const SocketAddress& local, const SocketAddress& remote,
                                                                  llp::Proposal ours) {
  if (ours.private_data.size() > kMostPrivateData) return EINVAL;
  return std::unique_ptr<llp::Initiator>(std::make_unique<ToyInitiator>(*this, local, remote, std::move(ours)));
}

Result<std::unique_ptr<llp::Listener>, int> ToySessions::Listen(const SocketAddress& local, int, bool, bool) {
  SocketAddress at = local;
  if (at.port() == 0) at.set_port(next_port_++);
  if (listeners_.contains(at.port())) return EADDRINUSE;
  return std::unique_ptr<llp::Listener>(std::make_unique<ToyListener>(*this, at));
}

}  // namespace weft::sim
