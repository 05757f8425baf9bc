#include "pmi/launch/name_server.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <list>
#include <utility>
#include <vector>

#include "base/file_limit.h"
#include "base/high_descriptor.h"
#include "base/job_secret.h"
#include "pmi/launch/connection.h"
#include "pmi/launch/name_file.h"
#include "pmi/launch/poller.h"
#include "pmi/launch/remote_start.h"
#include "pmi/server/names.h"
#include "pmi/server/server.h"

namespace weft::pmi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostSessions = 1024;
constexpr size_t kMostUnsent = 1 << 20;           // bytes for one that does not read
constexpr std::chrono::seconds kGreetingLimit{5};  // to prove that it may speak
constexpr std::chrono::milliseconds kLook{1000};   // at sessions that say nothing
constexpr std::chrono::milliseconds kPause{100};   // until the listener is looked at again when there was no descriptor

// One mpiexec: to the server a job of one rank.
class Session final : public Server::Owner {
 public:
  Session(int number, int fd, const std::string& secret, NameService* names)
      : number_(number), fd_(fd), names_(names), server_({"names", 1, -1, {{0, 0}}, {}, {}, secret}, this) {}
  ~Session() override {
    names_->Forget(number_);
    close(fd_);
  }

  int fd() const { return fd_; }
  bool open() const { return open_; }
  short events() const { return static_cast<short>(POLLIN | (out_.empty() ? 0 : POLLOUT)); }
  void OnReady(short events) {
    if (events & POLLOUT) open_ = out_.WriteTo(fd_) == 0;
    if (open_ && (events & ~POLLOUT)) Read();
  }
  // One that has said nothing good for long gives way.
  void Tick() {
    if (server_.state(0) != Server::State::kInitialised && Clock::now() - since_ > kGreetingLimit) open_ = false;
  }

  // Server::Owner
  void Send(int, const std::string& bytes) override {
    out_.Add(bytes);
    if (out_.WriteTo(fd_) != 0 || out_.size() > kMostUnsent) open_ = false;
  }
  bool HasRoom(int) const override { return open_; }
  void OnAbort(int, int, const std::string&) override { open_ = false; }
  void OnMisuse(int, const std::string&) override { open_ = false; }
  void OnFence(KeyValues) override { open_ = false; }
  void OnQuestion(int, const std::string& ticket, const Request& request) override { questions_.emplace_back(ticket, request); }
  const Server::Space* SpaceOf(const std::string&) override { return nullptr; }
  void Signal(int, const std::string&) override {}

 private:
  void Read() {
    char block[65536];
    const long count = ReadSome(fd_, block, sizeof(block));
    if (count == -EAGAIN) return;
    if (count <= 0) {
      open_ = false;
      return;
    }
    server_.Receive(0, {block, static_cast<size_t>(count)});
    for (const auto& [ticket, request] : std::exchange(questions_, {})) server_.TakeAnswer(0, ticket, names_->Do(request, number_));
  }

  const int number_;
  const int fd_;
  NameService* const names_;
  Outbox out_;
  Server server_;
  std::vector<std::pair<std::string, Request>> questions_;
  const Clock::time_point since_ = Clock::now();
  bool open_ = true;
};

int Signals() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&taken, number);
  sigprocmask(SIG_SETMASK, &taken, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC);
}

void Serve(int listener, int signals, const std::string& secret) {
  NameService names;
  std::list<Session> sessions;  // after the service that they use
  int next = 0;
  Poller poller;
  bool starved = false;
  for (bool ended = false; !ended;) {
    poller.Watch(signals, POLLIN, [&](short) { ended = true; });
    // Who finds no room waits in the kernel's backlog. A listener that is watched and not accepted from would end each wait at once.
    const bool listens = sessions.size() < kMostSessions && !std::exchange(starved, false);
    if (listens) {
      poller.Watch(listener, POLLIN, [&](short) {
        const int fd = AcceptOnListener(listener);
        if (fd >= 0) sessions.emplace_back(next++, fd, secret, &names);
        starved = fd < 0 && IsShortage(errno);
      });
    }
    for (Session& session : sessions) poller.Watch(session.fd(), session.events(), [&session](short events) { session.OnReady(events); });
    poller.Wait(static_cast<int>((listens ? kLook : kPause).count()));
    for (Session& session : sessions) session.Tick();
    sessions.remove_if([](const Session& session) { return !session.open(); });
  }
}

}  // namespace

int NameServerMain(const std::string& file) {
  RaiseFileLimit();
  const int signals = Signals();
  int port = 0;
  const int listener = Listen(&port);
  if (listener < 0 || signals < 0) {
    std::fprintf(stderr, "mpiexec: the name server cannot listen: %s\n", std::strerror(errno));
    return 1;
  }
  const std::string secret = JobSecret::Random().ToHex();
  const NameFile place{std::to_string(port), secret, AddressesFor({}, {})};
  if (const std::string problem = place.Write(file); !problem.empty()) {
    std::fprintf(stderr, "mpiexec: %s\n", problem.c_str());
    return 1;
  }
  Serve(listener, signals, secret);
  unlink(file.c_str());
  return 0;
}

}  // namespace weft::pmi
