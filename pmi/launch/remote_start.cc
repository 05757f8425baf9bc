#include "pmi/launch/remote_start.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

#include "base/deadline.h"
#include "base/file_limit.h"
#include "base/hex.h"
#include "pmi/wire/message.h"
#include "pmi/launch/poller.h"
#include "pmi/launch/proxy.h"
#include "transport/interfaces.h"
#include "transport/socket_address.h"

namespace weft::pmi {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kStartLimit{120};    // for all proxies to connect; someone may have to type a password
constexpr seconds kGreetingLimit{10};  // for a connection to say who it is
constexpr seconds kDialLimit{5};       // for one address to answer
constexpr size_t kLongestGreeting = 4096;
constexpr size_t kMostGreeting = 256;    // connections that have not yet said who they are
constexpr seconds kShortestGreeting{1};  // ... for so long, when there is no room for the next
constexpr milliseconds kPause{100};      // until the listener is looked at again when there was no room
constexpr seconds kProxyPatience{60};    // of a proxy, while mpiexec is there but has no room for it
constexpr milliseconds kLongestRetry{1000};

constexpr char kMpiexec[] = "weft-mpiexec", kProxy[] = "weft-proxy";

// A closed mpiexec, or one whose host has gone, ends the connection within half a minute.
void ConfigureTcp(int fd) {
  const int on = 1;
  const int idle_seconds = 10;
  const int limit_milliseconds = 30000;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof(idle_seconds));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle_seconds, sizeof(idle_seconds));
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_milliseconds, sizeof(limit_milliseconds));
}

// A line from `fd`, without its end, read byte by byte because what follows is someone else's. Nothing: none came in
// time.
std::optional<std::string> ReadLine(int fd, Clock::time_point deadline) {
  std::string line;
  while (line.size() < kLongestGreeting) {
    pollfd entry{fd, POLLIN, 0};
    char c = 0;
    if (poll(&entry, 1, MillisecondsUntil(deadline)) == 0) return std::nullopt;
    const long count = ReadSome(fd, &c, 1);
    if (count == -EAGAIN) continue;
    if (count <= 0) return std::nullopt;
    if (c == '\n') return line;
    line.push_back(c);
  }
  return std::nullopt;
}

bool SendText(int fd, const std::string& text) {
  return send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

// What both sides have said, for the proof of either.
struct Said {
  Said(const std::string& node, const std::string& nonce_of_mpiexec, const std::string& nonce_of_proxy)
      : words(node + " " + nonce_of_mpiexec + " " + nonce_of_proxy) {}
  std::span<const uint8_t> bytes() const { return {reinterpret_cast<const uint8_t*>(words.data()), words.size()}; }

  const std::string words;
};

// `digits`: of a whole proof.
bool Proves(const std::string& digits, const JobSecret& secret, const char* side, const Said& said) {
  JobSecret::Proof proof;
  return ParseHex(digits, proof) && secret.Verifies(proof, side, said.bytes());
}

// The address that packets to `host` leave from; empty when it cannot be resolved here.
std::string AddressTowards(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "9", &hints, &found) != 0) return {};
  std::string address;
  for (const addrinfo* entry = found; entry != nullptr && address.empty(); entry = entry->ai_next) {
    const int fd = socket(entry->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    if (connect(fd, entry->ai_addr, entry->ai_addrlen) == 0) address = OwnAddress(fd);
    close(fd);
  }
  freeaddrinfo(found);
  return address;
}

// A child that keeps nothing of this process but `fd`, and becomes the proxy of this host.
[[noreturn]] void LocalProxy(int fd, const JobSecret& secret) {
  setsid();
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, standard);
  const int kept = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  dup2(kept, 3);
  close_range(4, ~0u, 0);
  RunProxy(std::make_unique<Connection>(3), secret);
  _exit(0);
}

class Starter {
 public:
  explicit Starter(const RemoteStart& start) : start_(start), deadline_(Clock::now() + kStartLimit) {}
  ~Starter();

  Result<std::vector<ProxyLink>, LaunchError> Run();

 private:
  struct Greeting {
    int fd;
    std::string nonce;  // ours
    std::string text;
    Clock::time_point since;
  };

  std::optional<LaunchError> StartLocal(ProxyLink* link);
  std::optional<LaunchError> StartRemote(size_t node);
  [[noreturn]] void RunRemoteShell(const std::string& host, int input);
  void AcceptConnections();
  bool GiveWay();
  bool Greet(Greeting& greeting);  // false: it is over, well or badly
  void Admit(Greeting& greeting, const std::string& line);
  std::optional<LaunchError> OnSignal();
  std::optional<LaunchError> CheckChildren();
  std::string MissingHosts() const;
  bool complete() const;

  const RemoteStart& start_;
  const Clock::time_point deadline_;
  std::vector<ProxyLink> links_;
  std::vector<int> inputs_;          // of the remote shells
  std::vector<Greeting> greetings_;  // oldest first
  Clock::time_point listen_again_{};
  int listener_ = -1;
  int port_ = 0;
};

Starter::~Starter() {
  for (const int fd : inputs_) close(fd);
  for (const Greeting& greeting : greetings_) close(greeting.fd);
  if (listener_ >= 0) close(listener_);
}

bool Starter::complete() const {
  return std::all_of(links_.begin(), links_.end(), [](const ProxyLink& link) { return link.connection != nullptr; });
}

std::string Starter::MissingHosts() const {
  std::string hosts;
  for (const ProxyLink& link : links_) {
    if (link.connection == nullptr) hosts += (hosts.empty() ? "" : ", ") + link.host;
  }
  return hosts;
}

Result<std::vector<ProxyLink>, LaunchError> Starter::Run() {
  for (const auto& [name, is_local] : start_.hosts) {
    links_.emplace_back();
    links_.back().host = name;
    links_.back().is_local = is_local;
  }
  std::optional<LaunchError> error;
  for (size_t node = 0; node < links_.size() && !error; ++node) {
    error = links_[node].is_local ? StartLocal(&links_[node]) : StartRemote(node);
  }
  Poller poller;
  while (!error && !complete()) {
    poller.Watch(start_.signals, POLLIN, [&](short) { error = OnSignal(); });
    poller.Watch(start_.lifeline, POLLRDHUP, [&](short) { error = LaunchError{1, "mpiexec is gone"}; });
    // A listener that is watched but not accepted from would end every sleep at once.
    const bool listens = Clock::now() >= listen_again_;
    if (listens) poller.Watch(listener_, POLLIN, [&](short) { AcceptConnections(); });
    for (const Greeting& greeting : greetings_) poller.Watch(greeting.fd, POLLIN, [](short) {});
    poller.Wait(std::min(listens ? 1000 : static_cast<int>(kPause.count()), MillisecondsUntil(deadline_)));
    std::erase_if(greetings_, [&](Greeting& greeting) { return !Greet(greeting); });
    if (!error && Clock::now() >= deadline_) {
      error = LaunchError{1, "no answer from " + MissingHosts() + " within " + std::to_string(kStartLimit.count()) +
                                 " s; does '" + start_.remote_shell.Trial("HOST") +
                                 "' work, and can the host reach this one by TCP?"};
    }
  }
  if (!error) return std::move(links_);
  for (const ProxyLink& link : links_) {
    if (link.pid > 0 && !link.is_local) kill(link.pid, SIGTERM);
  }
  return *error;
}

std::optional<LaunchError> Starter::StartLocal(ProxyLink* link) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return LaunchError{1, std::string("cannot make a socket pair: ") + std::strerror(errno)};
  }
  link->pid = fork();
  if (link->pid == 0) LocalProxy(ends[1], start_.secret);
  close(ends[1]);
  link->connection = std::make_unique<Connection>(ends[0]);
  if (link->pid < 0) return LaunchError{1, std::string("cannot start a process: ") + std::strerror(errno)};
  return std::nullopt;
}

std::optional<LaunchError> Starter::StartRemote(size_t node) {
  ProxyLink& link = links_[node];
  if (listener_ < 0 && (listener_ = Listen(&port_)) < 0) {
    return LaunchError{1, std::string("cannot listen for proxies: ") + std::strerror(errno)};
  }
  std::string invitation =
      std::string(kProxy) + " " + std::to_string(node) + " " + std::to_string(port_) + " " + start_.secret.ToHex();
  const std::vector<std::string> addresses = AddressesFor(link.host, start_.interface);
  if (addresses.empty()) return LaunchError{1, "-iface " + start_.interface + " is not up or has no address"};
  for (const std::string& address : addresses) {
    if (invitation.size() + address.size() + 2 < kLongestGreeting) invitation += " " + address;
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return LaunchError{1, std::string("cannot make a pipe: ") + std::strerror(errno)};
  link.pid = fork();
  if (link.pid == 0) RunRemoteShell(link.host, ends[0]);
  close(ends[0]);
  inputs_.push_back(ends[1]);
  if (link.pid < 0) return LaunchError{1, std::string("cannot start a process: ") + std::strerror(errno)};
  invitation += "\n";
  if (write(ends[1], invitation.data(), invitation.size()) < 0) {
    // The shell is gone; its end is reported with its status.
  }
  return std::nullopt;
}

// Its output and the remote shell's belong to stderr: nothing of it is the program's.
void Starter::RunRemoteShell(const std::string& host, int input) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (start_.remote_shell.leaves_the_terminal()) setsid();
  for (const int number : {SIGINT, SIGQUIT, SIGTSTP}) signal(number, SIG_IGN);  // mpiexec passes these on
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(input, STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  std::error_code error;
  const std::vector<std::string> words = start_.remote_shell.CommandFor(host, std::filesystem::read_symlink("/proc/self/exe", error));
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  dprintf(STDERR_FILENO, "mpiexec: cannot execute %s: %s\n", arguments[0], std::strerror(errno));
  _exit(127);
}

// Who finds no room waits in the kernel's backlog.
void Starter::AcceptConnections() {
  for (;;) {
    if (greetings_.size() >= kMostGreeting && !GiveWay()) break;
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && errno == EAGAIN) return;
    if (fd < 0 && IsShortage(errno) && !GiveWay()) break;
    if (fd < 0) continue;
    const std::string nonce = HexOf(NewNonce());
    if (SendText(fd, std::string(kMpiexec) + " " + nonce + "\n")) {
      greetings_.push_back({fd, nonce, {}, Clock::now()});
    } else {
      close(fd);
    }
  }
  listen_again_ = Clock::now() + kPause;
}

// Closes the connection that has been silent for longest, when that is long enough; whether one was.
bool Starter::GiveWay() {
  while (!greetings_.empty()) {
    if (Clock::now() - greetings_.front().since < kShortestGreeting) return false;
    const bool silent = Greet(greetings_.front());
    if (silent) close(greetings_.front().fd);
    greetings_.erase(greetings_.begin());
    if (silent) return true;
  }
  return false;
}

bool Starter::Greet(Greeting& greeting) {
  char c = 0;
  long count = 0;
  while ((count = ReadSome(greeting.fd, &c, 1)) == 1 && c != '\n' && greeting.text.size() < kLongestGreeting)
    greeting.text += c;
  if (count == -EAGAIN && Clock::now() - greeting.since < kGreetingLimit) return true;
  if (count == 1 && c == '\n') {
    Admit(greeting, greeting.text);
  } else {
    close(greeting.fd);
  }
  return false;
}

void Starter::Admit(Greeting& greeting, const std::string& line) {
  std::istringstream words(line);
  std::string name, node_text, nonce, proof;
  words >> name >> node_text >> nonce >> proof;
  const int node = ParseInt(node_text).value_or(-1);
  const Said said(node_text, greeting.nonce, nonce);
  const bool invited = name == kProxy && Proves(proof, start_.secret, kProxy, said) && node >= 0 &&
                       static_cast<size_t>(node) < links_.size() &&
                       links_[static_cast<size_t>(node)].connection == nullptr;
  const std::string own_proof = HexOf(start_.secret.Prove(kMpiexec, said.bytes()));
  if (!invited || !SendText(greeting.fd, std::string(kMpiexec) + " " + own_proof + "\n")) {
    close(greeting.fd);
    return;
  }
  ConfigureTcp(greeting.fd);
  links_[static_cast<size_t>(node)].connection = std::make_unique<Connection>(greeting.fd);
}

std::optional<LaunchError> Starter::OnSignal() {
  std::optional<LaunchError> error;
  const auto check = [&] {
    if (!error) error = CheckChildren();
  };
  auto ended = TakeSignals(start_.signals, check, MissingHosts() + " answered");
  return error ? error : ended;
}

std::optional<LaunchError> Starter::CheckChildren() {
  for (ProxyLink& link : links_) {
    int status = 0;
    if (link.pid <= 0 || waitpid(link.pid, &status, WNOHANG) != link.pid) continue;
    link.pid = -1;
    if (link.connection != nullptr) continue;
    const std::string how = WIFEXITED(status) ? "ended with status " + std::to_string(WEXITSTATUS(status))
                                              : "was killed by signal " + std::to_string(WTERMSIG(status));
    return LaunchError{1,
                       start_.remote_shell.program + " " + link.host + " " + how + " before mpiexec's proxy there connected"};
  }
  return std::nullopt;
}

// Proves to what listens at the other end of `fd` that it was invited, and learns that it is mpiexec. `closed`: it hung
// up without having said anything wrong.
bool GreetMpiexec(int fd, const JobSecret& secret, const std::string& node, bool* closed) {
  *closed = true;
  const auto challenge = ReadLine(fd, Clock::now() + kGreetingLimit);
  if (!challenge) return false;
  std::istringstream words(*challenge);
  std::string name, nonce;
  words >> name >> nonce;
  *closed = false;
  if (name != kMpiexec || nonce.size() != 2 * sizeof(Nonce)) return false;
  const std::string own_nonce = HexOf(NewNonce());
  const Said said(node, nonce, own_nonce);
  if (!SendText(fd, std::string(kProxy) + " " + node + " " + own_nonce + " " +
                        HexOf(secret.Prove(kProxy, said.bytes())) + "\n"))
    return false;
  const auto reply = ReadLine(fd, Clock::now() + kGreetingLimit);
  *closed = !reply;
  const std::string start = std::string(kMpiexec) + " ";
  return reply && reply->starts_with(start) && Proves(reply->substr(start.size()), secret, kMpiexec, said);
}

}  // namespace

std::optional<LaunchError> TakeSignals(int signals, const std::function<void()>& on_child, const std::string& awaited) {
  signalfd_siginfo info;
  while (read(signals, &info, sizeof(info)) == sizeof(info)) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD) {
      on_child();
    } else if (number == SIGTSTP) {
      raise(SIGSTOP);
    } else if (number != SIGCONT) {
      return LaunchError{128 + number, "ended by signal " + std::to_string(number) + " before " + awaited};
    }
  }
  return std::nullopt;
}

int Dial(const std::string& address, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), port.c_str(), &hints, &found) != 0) return -1;
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  bool connected = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0;
  freeaddrinfo(found);
  if (!connected && fd >= 0 && errno == EINPROGRESS) {
    pollfd entry{fd, POLLOUT, 0};
    int error = 0;
    socklen_t length = sizeof(error);
    connected = poll(&entry, 1, static_cast<int>(milliseconds(kDialLimit).count())) == 1 &&
                getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0;
  }
  if (connected) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

std::vector<std::string> AddressesFor(const std::string& host, const std::string& interface) {
  std::vector<std::string> addresses;
  const auto add = [&](const std::string& address) {
    if (!address.empty() && std::find(addresses.begin(), addresses.end(), address) == addresses.end())
      addresses.push_back(address);
  };
  if (interface.empty() && !host.empty()) add(AddressTowards(host));
  const auto own = transport::ListAddresses();
  for (const bool loopback : {false, true}) {
    for (const auto& [label, up, running, is_loopback, address] : own) {
      if (!up || is_loopback != loopback || (!interface.empty() && interface != label)) continue;
      const std::string host = address.host();
      if (host.find('%') == std::string::npos) add(host);  // link-local ones mean nothing elsewhere
    }
  }
  return addresses;
}

int Listen(int* port) {
  int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  const int off = 0;
  if (fd >= 0) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&any6), sizeof(any6)) != 0) {
    if (fd >= 0) close(fd);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in any4{};
    any4.sin_family = AF_INET;
    if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&any4), sizeof(any4)) != 0) return -1;
  }
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  if (listen(fd, 128) != 0 || getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length) != 0) return -1;
  // The port stands at the same place in both families.
  *port = ntohs(reinterpret_cast<sockaddr_in&>(bound).sin_port);
  return fd;
}

Result<std::vector<ProxyLink>, LaunchError> StartProxies(const RemoteStart& start) { return Starter(start).Run(); }

Result<Invited, PmiError> AcceptInvitation(int input) {
  const auto line = ReadLine(input, Clock::now() + kStartLimit);
  std::istringstream words(line.value_or(""));
  std::string name, node, port, digits;
  words >> name >> node >> port >> digits;
  const auto secret = JobSecret::FromHex(digits);
  if (name != kProxy || !secret) {
    return PmiError{"mpiexec --proxy is for mpiexec's own use: it expects an invitation on standard input"};
  }
  std::vector<std::string> addresses;
  std::string tried;
  for (std::string address; words >> address; tried += " " + address) addresses.push_back(address);
  const auto deadline = Clock::now() + kProxyPatience;
  milliseconds pause = kPause;
  for (bool again = true; again && Clock::now() < deadline; pause = std::min(pause * 2, kLongestRetry)) {
    again = false;
    for (const std::string& address : addresses) {
      const int fd = Dial(address, port);
      if (fd < 0) continue;
      bool closed;
      if (GreetMpiexec(fd, *secret, node, &closed)) {
        ConfigureTcp(fd);
        return Invited{std::make_unique<Connection>(fd), *secret};
      }
      again |= closed;  // for want of room, perhaps
      close(fd);
    }
    if (again) poll(nullptr, 0, static_cast<int>(pause.count()));
  }
  return PmiError{"cannot connect to mpiexec at port " + port + " of" + tried +
                  "; is a firewall between, or is -iface needed?"};
}

JobSecret SecretOfJob(const JobSecret& secret, int job) {
  if (job == 0) return secret;
  const std::string number = std::to_string(job);
  return secret.Derive("weft-job", {reinterpret_cast<const uint8_t*>(number.data()), number.size()});
}

std::string OwnAddress(int fd) {
  const std::string host = transport::SocketAddress::Local(fd).host();
  // A dual-stack listener shows IPv4 peers as ::ffff:a.b.c.d.
  static constexpr std::string_view kMapped = "::ffff:";
  const bool mapped = host.starts_with(kMapped) && host.find('.') != host.npos;
  return mapped ? host.substr(kMapped.size()) : host;
}

}  // namespace weft::pmi
