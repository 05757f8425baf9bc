#include "pmi/launch/kvs_server.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/file_limit.h"
#include "base/high_descriptor.h"
#include "base/job_secret.h"
#include "base/warning_limit.h"
#include "pmi/launch/connection.h"
#include "pmi/launch/event_poller.h"
#include "pmi/launch/greeting.h"
#include "pmi/launch/kvs_session.h"
#include "pmi/launch/peer_user.h"
#include "pmi/launch/remote_start.h"
#include "pmi/secret_file.h"
#include "pmi/tls/openssl.h"
#include "pmi/tls/tls_stream.h"
#include "pmi/server/names.h"
#include "pmi/server/reception.h"
#include "pmi/server/server.h"
#include "pmi/wire/message.h"

namespace weft::pmi {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kFilesOfRank = 2;       // descriptors: its connection, and the out-of-band one
constexpr size_t kOwnFiles = 32;         // beside the ranks'
constexpr size_t kMostStrangers = 256;   // connections that have not yet said who they are
constexpr milliseconds kShortestGreeting{250};  // ... for so long, when there is no room for the next
constexpr milliseconds kPause{100};             // until the listener is looked at again when there was no room
constexpr seconds kFarewell{1};          // for the ranks to take the last bytes
constexpr int kTimeOutStatus = 255;

void Say(const std::string& message) { std::fprintf(stderr, "mpiexec: %s\n", message.c_str()); }

class KvsServer final : public Server::Owner {
 public:
  KvsServer(const KvsServerSettings& settings, std::string id, const std::string& secret, int listener, int signals);
  ~KvsServer() override;

  int Run();

 private:
  // Server::Owner
  void Send(int rank, const std::string& bytes) override;
  void SendOutOfBand(int rank, const std::string& bytes) override;
  bool HasRoom(int rank) const override;
  void OnAbort(int rank, int exit_code, const std::string& message) override;
  void OnMisuse(int rank, const std::string& what) override;
  void OnFence(KeyValues) override { fence_complete_ = true; }
  void OnQuestion(int rank, const std::string& ticket, const Request& request) override { questions_.push_back({rank, ticket, request}); }
  const Server::Space* SpaceOf(const std::string&) override { return nullptr; }
  void Signal(int, const std::string&) override {}

  struct Asked {
    int rank;
    std::string ticket;
    Request request;
  };

  void Accept();
  bool GiveWay();
  size_t MostStrangers() const;
  void OnReady(KvsSession& session, uint32_t events);
  void Receive(KvsSession& session, const std::string& bytes);
  void Welcome(KvsSession& session, Reception::Guest guest);
  void Listen(KvsSession& session, Reception::Guest guest);
  std::unique_ptr<KvsSession> TakeStranger(KvsSession& session);
  void TurnAway(KvsSession& session, const std::string& why);
  void Note(const KvsSession& session, const std::string& why);
  void AnswerQuestions();
  Answer AnswerTo(const Asked& asked);
  void Sweep();
  void OnGone(const KvsSession& session);
  void Tick();
  bool WantsToWrite();
  int MillisecondsToSleep() const;
  void End(int exit_code, const std::string& why);

  const KvsServerSettings settings_;
  const std::string secret_;
  const Reception::Job job_;
  const int listener_, signals_;
  EventPoller poller_;
  NameService names_;
  Server server_;
  std::vector<std::unique_ptr<KvsSession>> strangers_;  // the oldest first
  std::vector<std::unique_ptr<KvsSession>> ranks_;      // by rank; null: has not come, or is gone
  std::map<int, std::unique_ptr<KvsSession>> listeners_;  // out-of-band connections, by rank
  size_t through_ = 0;                                  // ranks that have finalized and are gone
  std::vector<Asked> questions_;
  bool fence_complete_ = false;
  WarningLimit notes_;  // about strangers that were turned away
  Clock::time_point listen_again_{};
  bool listens_ = false;
  Clock::time_point look_at_{};  // whether hosts are still there
  std::optional<Clock::time_point> deadline_;
  std::optional<int> exit_code_;
  Clock::time_point farewell_{};
};

std::map<int, int> ApplicationOfAll(int ranks) {
  std::map<int, int> all;
  for (int rank = 0; rank < ranks; ++rank) all[rank] = 0;
  return all;
}

// Where nobody needs to prove anything, all are on this host.
KeyValues FirstValues(const KvsServerSettings& settings) {
  KeyValues values{{"weft_secret", JobSecret::Random().ToHex()}};
  if (settings.secret_file.empty()) values.emplace_back("PMI_process_mapping", "(vector,(0,1," + std::to_string(settings.ranks) + "))");
  return values;
}

KvsServer::KvsServer(const KvsServerSettings& settings, std::string id, const std::string& secret, int listener, int signals)
    : settings_(settings),
      secret_(secret),
      job_{std::move(id), settings.ranks, settings.secured ? "" : secret},  // TLS is proof enough
      listener_(listener),
      signals_(signals),
      server_({job_.id, settings.ranks, settings.ranks, ApplicationOfAll(settings.ranks), FirstValues(settings)}, this),
      ranks_(static_cast<size_t>(settings.ranks)) {
  if (settings.time_out && settings.time_out->count() > 0) deadline_ = Clock::now() + *settings.time_out;
}

KvsServer::~KvsServer() { close(listener_); }

int KvsServer::Run() {
  if (!poller_.Watch(signals_, EPOLLIN, [this](uint32_t) {
        signalfd_siginfo info;
        if (read(signals_, &info, sizeof(info)) != sizeof(info)) return;
        const int number = static_cast<int>(info.ssi_signo);
        End(128 + number, "ended by signal " + std::to_string(number));
      })) {
    End(1, "cannot watch the connections: " + DescribeShortage(errno));
  }
  while (!exit_code_ && through_ < ranks_.size()) {
    Tick();
    poller_.Wait(MillisecondsToSleep());
    AnswerQuestions();
    Sweep();
  }
  // The others are told, if they can hear it.
  while (exit_code_ && Clock::now() < farewell_ && WantsToWrite()) poller_.Wait(MillisecondsUntil(farewell_));
  return exit_code_.value_or(0);
}

// Whether there is something left for anybody, who is looked at for that alone from here on.
bool KvsServer::WantsToWrite() {
  bool any = false;
  const auto look = [&](const std::unique_ptr<KvsSession>& session) {
    if (session == nullptr || !session->open()) return;
    poller_.Change(session->fd(), session->wants_to_write() ? EPOLLOUT : 0u);
    any |= session->wants_to_write();
  };
  for (const auto& session : ranks_) look(session);
  for (const auto& [rank, session] : listeners_) look(session);
  return any;
}

int KvsServer::MillisecondsToSleep() const {
  auto wake_at = std::min(look_at_, deadline_.value_or(look_at_));
  if (!listens_) wake_at = std::min(wake_at, listen_again_);
  if (!strangers_.empty()) wake_at = std::min(wake_at, strangers_.front()->since() + kGreetingLimit);
  return MillisecondsUntil(wake_at);
}

void KvsServer::Tick() {
  const auto now = Clock::now();
  if (deadline_ && now >= *deadline_) return End(kTimeOutStatus, "the time limit has passed: " + std::to_string(through_) + " of " + std::to_string(ranks_.size()) + " ranks had finished");
  if (!listens_ && now >= listen_again_) listens_ = poller_.Watch(listener_, EPOLLIN, [this](uint32_t) { Accept(); });
  if (!listens_) listen_again_ = std::max(listen_again_, now + kPause);
  for (const auto& session : strangers_) {
    if (session->since() + kGreetingLimit > now) break;
    TurnAway(*session, "did not tell its rank within " + std::to_string(kGreetingLimit.count()) + " s");
  }
  if (now >= look_at_) {
    look_at_ = now + kSilenceLook;
    for (const auto& session : ranks_) {
      if (session != nullptr) session->LookForPeer(now);
    }
  }
  Sweep();
}

// Strangers must leave room for the ranks.
size_t KvsServer::MostStrangers() const {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const size_t needed = kFilesOfRank * ranks_.size() + kOwnFiles;
  return std::clamp<size_t>(limit.rlim_cur > needed ? limit.rlim_cur - needed : 0, 1, kMostStrangers);
}

// Who finds no room waits in the kernel's backlog.
void KvsServer::Accept() {
  for (;;) {
    if (strangers_.size() >= MostStrangers() && !GiveWay()) break;
    const int fd = AcceptOnListener(listener_);
    if (fd < 0 && errno == EAGAIN) return;
    if (fd < 0 && IsShortage(errno) && !GiveWay()) break;
    if (fd < 0) continue;
    std::unique_ptr<TlsStream> tls;
    if (settings_.secured) {
      auto made = TlsStream::Make(TlsStream::Side::kServer, secret_);
      if (!made) {
        close(fd);
        End(1, made.error().message);
        break;
      }
      tls = std::move(made).value();
    }
    auto session = std::make_unique<KvsSession>(fd, &job_, std::move(tls));
    if (poller_.Watch(fd, EPOLLIN, [this, &stranger = *session](uint32_t events) { OnReady(stranger, events); })) strangers_.push_back(std::move(session));
  }
  poller_.Forget(listener_);
  listens_ = false;
  listen_again_ = Clock::now() + kPause;
}

// Closes the stranger that has been silent for longest, when that is long enough; whether there was one.
bool KvsServer::GiveWay() {
  if (strangers_.empty() || Clock::now() - strangers_.front()->since() < kShortestGreeting) return false;
  KvsSession& oldest = *strangers_.front();
  Receive(oldest, oldest.Receive());  // it may have spoken meanwhile
  if (!oldest.rank()) TurnAway(oldest, "was dropped to make room for newer connections");
  AnswerQuestions();
  Sweep();
  return true;
}

void KvsServer::OnReady(KvsSession& session, uint32_t events) {
  if (exit_code_ && (events & (EPOLLHUP | EPOLLERR))) {
    poller_.Forget(session.fd());
    return session.Close("is gone");
  }
  if (events & EPOLLOUT) {
    session.Flush();
    if (session.rank()) server_.Receive(*session.rank(), {});  // what it asked while there was no room for the answers
  }
  if (!session.open() || (events & ~static_cast<uint32_t>(EPOLLOUT)) == 0) return;
  const std::string bytes = session.Receive();
  if (!session.open() && !session.rank() && !session.listens_for()) Note(session, session.end() + ", before it had told its rank");
  Receive(session, bytes);
}

void KvsServer::Receive(KvsSession& session, const std::string& bytes) {
  if (bytes.empty() || exit_code_) return;
  if (session.rank()) return server_.Receive(*session.rank(), bytes);
  if (session.listens_for()) return TurnAway(session, "sent a request on a connection where rank " + std::to_string(*session.listens_for()) + " only listens");
  session.Send(session.reception().Receive(bytes));
  if (!session.reception().problem().empty()) return TurnAway(session, session.reception().problem());
  if (auto guest = session.reception().TakeGuest()) Welcome(session, *std::move(guest));
}

void KvsServer::Welcome(KvsSession& session, Reception::Guest guest) {
  if (settings_.secret_file.empty()) {
    const auto user = UserOfPeer(session.fd());
    if (!user || (*user != geteuid() && *user != 0)) return TurnAway(session, "is of another user: " + (user ? std::to_string(*user) : std::string("unknown")));
  }
  if (guest.out_of_band) return Listen(session, std::move(guest));
  std::unique_ptr<KvsSession>& place = ranks_[static_cast<size_t>(guest.rank)];
  if (place != nullptr || server_.state(guest.rank) != Server::State::kSilent) {
    return TurnAway(session, "claims to be rank " + std::to_string(guest.rank) + ", which has already connected");
  }
  place = TakeStranger(session);
  session.set_rank(guest.rank);
  server_.Admit(guest.rank, std::move(guest.dialect), guest.question);
}

// An out-of-band connection.
void KvsServer::Listen(KvsSession& session, Reception::Guest guest) {
  if (!guest.signal.empty()) {
    session.Send(guest.dialect->Write(guest.question, {.code = 1, .why = "this server did not start the process, so that it supports only signal=NONE", .number = guest.dialect->version()}));
    return TurnAway(session, "wanted the signal " + Printable(guest.signal) + " with out-of-band messages; this server did not start the process, so that it supports only signal=NONE");
  }
  std::unique_ptr<KvsSession>& place = listeners_[guest.rank];
  if (place != nullptr) return TurnAway(session, "wanted to receive out-of-band messages for rank " + std::to_string(guest.rank) + ", which does already");
  place = TakeStranger(session);
  session.set_listens_for(guest.rank);
  server_.Listen(guest.rank, std::move(guest.dialect), guest.question, {});
}

std::unique_ptr<KvsSession> KvsServer::TakeStranger(KvsSession& session) {
  const auto found = std::find_if(strangers_.begin(), strangers_.end(), [&](const auto& stranger) { return stranger.get() == &session; });
  auto taken = std::move(*found);
  strangers_.erase(found);
  return taken;
}

void KvsServer::SendOutOfBand(int rank, const std::string& bytes) {
  if (const auto found = listeners_.find(rank); found != listeners_.end()) found->second->Send(bytes);
}

void KvsServer::TurnAway(KvsSession& session, const std::string& why) {
  if (!session.open()) return;
  session.Close(why);
  Note(session, why);
}

void KvsServer::Note(const KvsSession& session, const std::string& why) {
  const auto note = notes_.Admit({__FILE__, __LINE__}, "the connection from " + session.peer() + " was closed: it " + why, Clock::now());
  if (note) Say(*note);
}

void KvsServer::Send(int rank, const std::string& bytes) {
  if (const auto& session = ranks_[static_cast<size_t>(rank)]) session->Send(bytes);
}

bool KvsServer::HasRoom(int rank) const {
  const auto& session = ranks_[static_cast<size_t>(rank)];
  return !exit_code_ && session != nullptr && session->has_room();
}

void KvsServer::OnAbort(int rank, int exit_code, const std::string& message) {
  End(exit_code, "rank " + std::to_string(rank) + " called MPI_Abort" + (message.empty() ? "" : ": " + Printable(message, 1000)));
}

void KvsServer::OnMisuse(int rank, const std::string& what) { End(1, "rank " + std::to_string(rank) + " " + what); }

void KvsServer::AnswerQuestions() {
  while (!exit_code_ && (fence_complete_ || !questions_.empty())) {
    if (std::exchange(fence_complete_, false)) server_.EndFence({});
    for (const Asked& asked : std::exchange(questions_, {})) server_.TakeAnswer(asked.rank, asked.ticket, AnswerTo(asked));
  }
}

Answer KvsServer::AnswerTo(const Asked& asked) {
  if (NameService::IsFor(asked.request)) return names_.Do(asked.request, 0);
  if (std::holds_alternative<ask::Disconnect>(asked.request)) return {};
  return {.code = 1, .why = "this server starts no processes: its ranks were started without it"};
}

// Lets go of connections that are closed, and looks after the others as they need it now.
void KvsServer::Sweep() {
  for (auto& session : ranks_) {
    if (session == nullptr) continue;
    if (session->open()) {
      poller_.Change(session->fd(), (session->has_room() ? EPOLLIN : 0u) | (session->wants_to_write() ? EPOLLOUT : 0u));
      continue;
    }
    poller_.Forget(session->fd());
    const auto gone = std::exchange(session, nullptr);
    OnGone(*gone);
  }
  std::erase_if(listeners_, [&](const auto& listener) {
    const auto& [rank, session] = listener;
    if (session->open()) {
      poller_.Change(session->fd(), EPOLLIN | (session->wants_to_write() ? EPOLLOUT : 0u));
      return false;
    }
    poller_.Forget(session->fd());
    server_.StopListening(rank);
    return true;
  });
  std::erase_if(strangers_, [&](const auto& session) {
    if (session->open()) return false;
    poller_.Forget(session->fd());
    return true;
  });
  if (server_.waiting() != 0 && through_ != 0) {
    End(1, std::to_string(server_.waiting()) + " ranks wait in the PMI barrier for one that has finalized and is gone");
  }
}

void KvsServer::OnGone(const KvsSession& session) {
  if (server_.state(*session.rank()) == Server::State::kFinalised) {
    ++through_;
  } else {
    End(1, "rank " + std::to_string(*session.rank()) + " (" + session.peer() + ") " + session.end() + " without MPI_Finalize; the job ends");
  }
}

void KvsServer::End(int exit_code, const std::string& why) {
  if (exit_code_) return;
  exit_code_ = exit_code;
  farewell_ = Clock::now() + kFarewell;
  Say(why);
  server_.Announce({"abort", why});
}

int TakeSignals() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&taken, number);
  sigprocmask(SIG_SETMASK, &taken, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC);
}

// The address that the ranks are told.
std::string AddressFor(const KvsServerSettings& settings) {
  if (settings.secret_file.empty()) return "127.0.0.1";
  const std::vector<std::string> addresses = AddressesFor({}, settings.interface);
  return addresses.empty() ? std::string() : addresses.front();
}

bool PrintEnvironment(const KvsServerSettings& settings, const std::string& address, int port, const std::string& id) {
  std::printf("PMI_PORT=%s:%d\nPMI_SIZE=%d\nPMI_JOBID=%s\n", address.c_str(), port, settings.ranks, id.c_str());
  std::printf("WEFT_PMI_OOB=NONE\n");
  if (settings.secured) std::printf("PMI_SOCKTYPE=OpenSSL\n");
  if (!settings.secret_file.empty()) std::printf("WEFT_PMI_SECRET_FILE=%s\n", settings.secret_file.c_str());
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
}

int Fail(const std::string& why) {
  Say(why);
  return 1;
}

}  // namespace

int KvsServerMain(const KvsServerSettings& settings) {
  RaiseFileLimit();
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const size_t files = kFilesOfRank * static_cast<size_t>(settings.ranks) + kOwnFiles;
  if (limit.rlim_cur < files) {
    return Fail("a server of " + std::to_string(settings.ranks) + " ranks needs " + std::to_string(files) + " descriptors, and may have " +
                std::to_string(limit.rlim_cur) + " (ulimit -n)");
  }
  std::string secret;
  if (!settings.secret_file.empty()) {
    auto read = ReadSecretFile(settings.secret_file);
    if (!read) return Fail(read.error().message);
    secret = *std::move(read);
  }
  if (settings.secured) {
    if (secret.empty()) return Fail("-socktype OpenSSL needs a secret, from -secret-file or WEFT_PMI_SECRET_FILE");
    if (const auto openssl = OpenSsl::Load(); !openssl) return Fail(openssl.error().message);
  }
  const std::string address = AddressFor(settings);
  if (address.empty()) return Fail("-iface " + settings.interface + " is not up or has no address");
  const int signals = TakeSignals();
  int port = 0;
  const int listener = Listen(&port, settings.ports, settings.secret_file.empty() ? Reach::kThisHost : Reach::kAnywhere);
  if (listener < 0 || signals < 0) {
    const int error = errno;
    const std::string where = settings.ports == PortRange{} ? "" : " at port " + std::to_string(settings.ports.first) +
                                                                        (settings.ports.first == settings.ports.last ? "" : " to " + std::to_string(settings.ports.last));
    return Fail("cannot listen for the ranks" + where + ": " + std::strerror(error));
  }
  char host[65] = {};
  gethostname(host, sizeof(host) - 1);
  const std::string id = "kvs_" + std::to_string(getpid()) + "_0_" + host;  // as that of other jobs
  if (!PrintEnvironment(settings, address, port, id)) return Fail(std::string("cannot write the ranks' environment to the standard output: ") + std::strerror(errno));
  Say("each rank needs these variables, and PMI_ID, from 0 to " + std::to_string(settings.ranks - 1));
  return KvsServer(settings, id, secret, listener, signals).Run();
}

}  // namespace weft::pmi
