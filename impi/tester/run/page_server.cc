#include "impi/tester/run/page_server.h"

#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>
#include <mutex>
#include <optional>
#include <thread>

#include "base/descriptor.h"
#include "base/hex.h"
#include "impi/tester/board.h"
#include "impi/tester/page.h"
#include "impi/tester/run/stage.h"
#include "pmi/launch/outbox.h"
#include "pmi/launch/poller.h"
#include "pmi/launch/sockets.h"

namespace weft::impi::tester {
namespace {

using Clock = std::chrono::steady_clock;
using State = Board::State;

constexpr size_t kMostConnections = 32;
constexpr std::chrono::seconds kConnectionLimit{10};  // for a request and its answer
constexpr int kRound = 200;                           // milliseconds, until `stopped` is asked again

class PageServer {
 public:
  PageServer(const std::vector<Script>& scripts, const Subject& subject, Descriptor listener, std::string secret,
             const std::function<bool()>& stopped)
      : scripts_(scripts),
        subject_(subject),
        listener_(std::move(listener)),
        secret_(std::move(secret)),
        stopped_(stopped),
        board_(scripts) {}
  ~PageServer() {
    if (runner_.joinable()) runner_.join();
  }

  void Run() {
    while (!stopped_()) {
      pmi::Poller poller;
      if (connections_.size() < kMostConnections) poller.Watch(listener_.get(), POLLIN, [this](short) { Accept(); });
      for (Connection& connection : connections_) {
        const short events = connection.answered ? POLLOUT : POLLIN;
        poller.Watch(connection.fd.get(), events,
                     [this, &connection](short) { connection.answered ? Write(connection) : Read(connection); });
      }
      poller.Wait(kRound);
      connections_.remove_if(
          [now = Clock::now()](const Connection& connection) { return connection.over || connection.ends_by <= now; });
    }
  }

 private:
  struct Connection {
    Descriptor fd;
    Clock::time_point ends_by;
    HttpReader reader;
    pmi::Outbox out;
    bool answered = false, over = false;
  };

  void Accept() {
    Descriptor fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    connections_.emplace_back();
    connections_.back().fd = std::move(fd);
    connections_.back().ends_by = Clock::now() + kConnectionLimit;
  }

  void Read(Connection& connection) {
    char block[4096];
    const long count = pmi::ReadSome(connection.fd.get(), block, sizeof block);
    if (count == -EAGAIN) return;
    connection.over = count <= 0;
    if (connection.over) return;
    if (!connection.reader.Append({block, static_cast<size_t>(count)})) {
      connection.out.Add(HttpAnswer(400, "text/plain", "this is no request of a browser\n"));
    } else if (connection.reader.request()) {
      PageAnswer answer = Answer(*connection.reader.request());
      connection.out.Add(answer.text);
      if (answer.starts) Start();
    } else {
      return;
    }
    connection.answered = true;
    Write(connection);
  }

  static void Write(Connection& connection) {
    if (connection.out.WriteTo(connection.fd.get()) != 0) connection.over = true;
    if (!connection.out.empty() || connection.over) return;
    shutdown(connection.fd.get(), SHUT_WR);
    connection.over = true;
  }

  PageAnswer Answer(const HttpRequest& request) {
    const std::lock_guard lock(mutex_);
    PageAnswer answer = AnswerFor(request, secret_, board_);
    if (answer.starts) {
      board_.Clear();
      board_.running = true;
      ++board_.runs;
    }
    return answer;
  }

  // The runner has ended, or ends in a moment: the board said so.
  void Start() {
    if (runner_.joinable()) runner_.join();
    runner_ = std::thread([this] { RunAll(); });
  }

  void RunAll() {
    for (size_t i = 0; i < scripts_.size() && !stopped_(); ++i) {
      Board::Entry& entry = board_.entries[i];
      Change([&] { entry.state = State::kRuns; });
      const Verdict verdict = RunScript(
          scripts_[i], subject_, [](const std::string&) {},
          [&](size_t done) {
            Change([&] { entry.done = done; });
            return !stopped_();
          });
      Change([&] {
        if (verdict.passed) entry.done = entry.steps;
        entry.state = verdict.passed ? State::kPassed : State::kFailed;
        entry.verdict = verdict;
      });
    }
    Change([this] { board_.running = false; });
  }

  template <typename How>
  void Change(const How& how) {
    const std::lock_guard lock(mutex_);
    how();
  }

  const std::vector<Script>& scripts_;
  const Subject& subject_;
  const Descriptor listener_;
  const std::string secret_;
  const std::function<bool()>& stopped_;
  std::list<Connection> connections_;
  std::mutex mutex_;  // guards board_: the runner changes it, the page reads it
  Board board_;
  std::thread runner_;
};

}  // namespace

std::string ServePage(const std::vector<Script>& scripts, const Subject& subject, uint16_t port,
                      const std::function<bool()>& stopped, const std::function<void(const std::string&)>& say) {
  int bound = 0;
  Descriptor listener(pmi::Listen(&bound, {port, port}, pmi::Reach::kThisHost));
  if (!listener) return "cannot listen at 127.0.0.1:" + std::to_string(port) + ": " + std::strerror(errno);
  std::array<uint8_t, 16> secret;
  if (getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    return std::string("getrandom: ") + std::strerror(errno);
  say("http://127.0.0.1:" + std::to_string(bound) + "/" + HexOf(secret) + "/");
  PageServer(scripts, subject, std::move(listener), HexOf(secret), stopped).Run();
  return {};
}

}  // namespace weft::impi::tester
