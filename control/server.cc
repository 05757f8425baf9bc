#include "control/server.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <random>
#include <string>
#include <utility>

#include "base/file_limit.h"
#include "base/high_descriptor.h"
#include "control/address.h"

namespace weft::control {
namespace {

using transport::IoResult;

constexpr int kMostClients = 16;
constexpr std::chrono::seconds kClientLimit{5};
constexpr int kMostAtOnce = 16;
// How long nobody is accepted when descriptors have run out.
constexpr std::chrono::milliseconds kPause{100};

// A descriptor as what the network can watch.
class DescriptorStream final : public transport::ByteStream {
 public:
  explicit DescriptorStream(int fd) : fd_(fd) {}
  ~DescriptorStream() override { close(fd_); }

  IoResult Read(std::span<const iovec> into) override { return Result(readv(fd_, into.data(), static_cast<int>(into.size()))); }
  IoResult Write(std::span<const iovec> from) override {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(from.data());
    message.msg_iovlen = from.size();
    return Result(sendmsg(fd_, &message, MSG_NOSIGNAL));
  }
  int ConnectError() override { return 0; }
  void ShutdownWrite() override { shutdown(fd_, SHUT_WR); }
  void Abort() override { shutdown(fd_, SHUT_RDWR); }
  size_t SegmentSize() const override { return 1 << 16; }
  transport::SocketAddress LocalAddress() const override { return {}; }
  transport::SocketAddress PeerAddress() const override { return {}; }
  int fd() const override { return fd_; }

 private:
  static IoResult Result(ssize_t count) {
    if (count > 0) return {IoResult::Kind::kDone, static_cast<size_t>(count)};
    if (count == 0) return {IoResult::Kind::kEndOfStream};
    if (errno == EAGAIN || errno == EINTR) return {};
    return {IoResult::Kind::kFailed, 0, errno};
  }
  const int fd_;
};

bool IsSameUser(int fd) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

// One request.
class Client final : public transport::ReadyHandler, public std::enable_shared_from_this<Client> {
 public:
  Client(transport::Network& network, int fd, const Server::Handler& handler, std::shared_ptr<std::atomic<int>> count)
      : network_(network), handler_(handler), count_(std::move(count)), stream_(std::make_unique<DescriptorStream>(fd)) {
    ++*count_;
  }
  ~Client() override { --*count_; }

  void Start() {
    std::lock_guard lock(mutex_);
    watch_ = network_.Watch(*stream_, {.read = true}, shared_from_this());
    timer_ = network_.RunAt(network_.Now() + kClientLimit, [self = shared_from_this()] {
      std::lock_guard giving_up(self->mutex_);
      self->timer_ = 0;
      self->Finish();
    });
  }

  void OnReady(transport::Interest) override {
    std::lock_guard lock(mutex_);
    if (stream_ == nullptr) return;
    if (!answered_) Receive();
    if (answered_) Send();
  }

 private:
  void Receive() {
    char buffer[4096];
    const iovec piece{buffer, sizeof buffer};
    for (;;) {
      const IoResult result = stream_->Read({&piece, 1});
      if (result.kind == IoResult::Kind::kWouldBlock) return;
      if (result.kind == IoResult::Kind::kEndOfStream) break;
      if (result.kind == IoResult::Kind::kFailed || request_.size() + result.bytes > kLongestRequest) return Finish();
      request_.append(buffer, result.bytes);
    }
    const size_t end = std::min(request_.find('\n'), request_.size());
    Answer answer = handler_(request_.substr(0, end), end == request_.size() ? "" : request_.substr(end + 1));
    reply_ = (answer.ok ? "ok\n" : "error\n") + answer.text;
    then_ = std::move(answer.then);
    answered_ = true;
    network_.SetInterest(watch_, {.read = false, .write = true});
  }

  void Send() {
    while (sent_ < reply_.size()) {
      const iovec piece{reply_.data() + sent_, reply_.size() - sent_};
      const IoResult result = stream_->Write({&piece, 1});
      if (result.kind == IoResult::Kind::kWouldBlock) return;
      if (result.kind != IoResult::Kind::kDone) break;
      sent_ += result.bytes;
    }
    if (then_) then_();
    Finish();
  }

  void Finish() {
    if (stream_ == nullptr) return;
    network_.Unwatch(watch_);
    if (timer_ != 0) network_.Cancel(std::exchange(timer_, 0));
    stream_.reset();
  }

  transport::Network& network_;
  const Server::Handler handler_;
  const std::shared_ptr<std::atomic<int>> count_;
  std::mutex mutex_;  // guards the rest
  std::unique_ptr<DescriptorStream> stream_;
  transport::WatchId watch_ = 0;
  transport::TimerId timer_ = 0;
  std::string request_, reply_;
  std::function<void()> then_;
  size_t sent_ = 0;
  bool answered_ = false;
};

// The listening descriptor of this process, for the child of a fork, which must not keep the parent's name.
std::atomic<int> g_listening{-1};

class ServerImpl final : public Server, public transport::ReadyHandler, public transport::Listener {
 public:
  ServerImpl(transport::Network& network, int fd, Handler handler)
      : network_(network), fd_(fd), handler_(std::move(handler)), clients_(std::make_shared<std::atomic<int>>(0)) {}

  void Watch() { watch_ = network_.Watch(*this, std::shared_ptr<transport::ReadyHandler>(std::shared_ptr<void>(), this)); }

  // transport::Listener, for Watch() only.
  Result<std::unique_ptr<transport::ByteStream>, int> Accept() override { return ENOTSUP; }
  transport::SocketAddress LocalAddress() const override { return {}; }
  int fd() const override { return fd_; }

  void OnReady(transport::Interest) override {
    for (int i = 0; i < kMostAtOnce; ++i) {
      const int fd = AcceptOnListener(fd_);
      if (fd < 0) {
        if (IsShortage(errno)) Pause();
        return;
      }
      if (!IsSameUser(fd) || clients_->load() >= kMostClients) {
        close(fd);
        continue;
      }
      std::make_shared<Client>(network_, fd, handler_, clients_)->Start();
    }
  }

 private:
  // Who waits to be accepted keeps the listener readable, and the thread would do nothing else.
  void Pause() {
    network_.SetInterest(watch_, {});
    network_.RunAt(network_.Now() + kPause, [this] { network_.SetInterest(watch_, {.read = true}); });
  }

  transport::Network& network_;
  const int fd_;
  const Handler handler_;
  const std::shared_ptr<std::atomic<int>> clients_;
  transport::WatchId watch_ = 0;
};

// The process's name, or one that nobody can have guessed where somebody took that, as anybody can.
bool BindToName(int fd) {
  std::random_device random;
  for (const std::string& suffix : {std::string(), "." + std::to_string(random()), "." + std::to_string(random())}) {
    socklen_t length = 0;
    const sockaddr_un address = AddressOf(getpid(), &length, suffix);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0) return true;
    if (errno != EADDRINUSE) return false;
  }
  return false;
}

}  // namespace

std::unique_ptr<Server> Server::Start(transport::Network& network, Handler handler) {
  static const int at_fork = pthread_atfork(nullptr, nullptr, [] {
    if (const int fd = g_listening.exchange(-1); fd >= 0) close(fd);
  });
  if (at_fork != 0) return nullptr;
  if (g_listening.load() >= 0) return nullptr;
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return nullptr;
  if (!BindToName(fd) || listen(fd, 8) != 0) {
    close(fd);
    return nullptr;
  }
  g_listening.store(fd);
  auto server = std::make_unique<ServerImpl>(network, fd, std::move(handler));
  server->Watch();
  return server;
}

}  // namespace weft::control
