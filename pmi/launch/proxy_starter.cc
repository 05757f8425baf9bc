#include "pmi/launch/proxy_starter.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <utility>

#include "base/close_from.h"
#include "base/file_limit.h"
#include "base/high_descriptor.h"
#include "base/hex.h"
#include "pmi/launch/greeting.h"
#include "pmi/launch/proxy.h"
#include "pmi/wire/message.h"

namespace weft::pmi {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kMostGreeting = 256;    // connections that have not yet said who they are
constexpr seconds kShortestGreeting{1};  // ... for so long, when there is no room for the next
constexpr milliseconds kPause{100};      // until the listener is looked at again when there was no room

// A child that keeps nothing of this process but `fd`, and becomes the proxy of this host.
[[noreturn]] void LocalProxy(int fd, const JobSecret& secret) {
  setsid();
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, standard);
  const int kept = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  dup2(kept, 3);
  CloseFrom(4);
  RunProxy(std::make_unique<Connection>(3), secret);
  _exit(0);
}

}  // namespace

ProxyStarter::ProxyStarter(const std::vector<Host>& hosts, const StartMeans& means, const JobSecret& secret)
    : means_(means), secret_(secret), deadline_(Clock::now() + kStartLimit) {
  for (const Host& host : hosts) {
    links_.emplace_back();
    links_.back().host = host.name;
    links_.back().is_local = host.is_local;
  }
  for (size_t node = 0; node < links_.size() && !error_; ++node) {
    error_ = links_[node].is_local ? StartLocal(&links_[node]) : StartRemote(node, hosts[node].own_address);
  }
}

ProxyStarter::~ProxyStarter() {
  for (const int fd : inputs_) close(fd);
  for (const Greeting& greeting : greetings_) close(greeting.fd);
  if (listener_ >= 0) close(listener_);
  for (const ProxyLink& link : links_) {  // those that were not taken
    if (link.pid > 0 && !link.is_local) kill(link.pid, SIGTERM);
  }
}

bool ProxyStarter::complete() const {
  return std::all_of(links_.begin(), links_.end(), [](const ProxyLink& link) { return link.connection != nullptr; });
}

std::string ProxyStarter::MissingHosts() const {
  std::string hosts;
  for (const ProxyLink& link : links_) {
    if (link.connection == nullptr) hosts += (hosts.empty() ? "" : ", ") + link.host;
  }
  return hosts;
}

std::vector<ProxyLink> ProxyStarter::TakeLinks() { return std::exchange(links_, {}); }

ProxyStarter::Clock::time_point ProxyStarter::wake_at() const {
  auto when = deadline_;
  if (Clock::now() < listen_again_) when = std::min(when, listen_again_);
  if (!greetings_.empty()) when = std::min(when, greetings_.front().since + kGreetingLimit);
  return when;
}

void ProxyStarter::Step() {
  if (done()) return;
  // A listener that is watched but not accepted from would end every sleep at once.
  poller_.Change(listener_, Clock::now() >= listen_again_ ? static_cast<uint32_t>(EPOLLIN) : 0u);
  poller_.Wait(0);
  std::erase_if(greetings_, [&](Greeting& greeting) { return !Greet(greeting); });
  if (error_ || complete() || Clock::now() < deadline_) return;
  error_ = LaunchError{1, "no answer from " + MissingHosts() + " within " + std::to_string(kStartLimit.count()) + " s; does '" +
                              means_.remote_shell.Trial("HOST") + "' work, and can the host reach this one by TCP?"};
}

std::optional<LaunchError> ProxyStarter::StartLocal(ProxyLink* link) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return LaunchError{1, std::string("cannot make a socket pair: ") + std::strerror(errno)};
  }
  link->pid = fork();
  if (link->pid == 0) LocalProxy(ends[1], secret_);
  close(ends[1]);
  link->connection = std::make_unique<Connection>(ends[0]);
  if (link->pid < 0) return LaunchError{1, std::string("cannot start a process: ") + std::strerror(errno)};
  return std::nullopt;
}

std::optional<LaunchError> ProxyStarter::ListenForProxies() {
  if (listener_ >= 0) return std::nullopt;
  listener_ = Listen(&port_, means_.ports);
  if (listener_ >= 0 && poller_.Watch(listener_, EPOLLIN, [this](uint32_t) { AcceptConnections(); })) return std::nullopt;
  const std::string range = means_.ports == PortRange{} ? "" : " at a port from " + std::to_string(means_.ports.first) + " to " + std::to_string(means_.ports.last) +
                                                                   " (MPIEXEC_PORT_RANGE)";
  return LaunchError{1, "cannot listen for proxies" + range + ": " + std::strerror(errno)};
}

std::optional<LaunchError> ProxyStarter::StartRemote(size_t node, const std::string& own_address) {
  ProxyLink& link = links_[node];
  if (auto error = ListenForProxies()) return error;
  std::string invitation =
      std::string(kProxy) + " " + std::to_string(node) + " " + std::to_string(port_) + " " + secret_.ToHex();
  const std::vector<std::string> addresses = AddressesFor(own_address, means_.interface);
  if (addresses.empty()) return LaunchError{1, "-iface " + means_.interface + " is not up or has no address"};
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
void ProxyStarter::RunRemoteShell(const std::string& host, int input) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (means_.remote_shell.leaves_the_terminal()) setsid();
  for (const int number : {SIGINT, SIGQUIT, SIGTSTP}) signal(number, SIG_IGN);  // mpiexec passes these on
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(input, STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  std::error_code error;
  const std::vector<std::string> words = means_.remote_shell.CommandFor(host, std::filesystem::read_symlink("/proc/self/exe", error));
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  dprintf(STDERR_FILENO, "mpiexec: cannot execute %s: %s\n", arguments[0], std::strerror(errno));
  _exit(127);
}

// Who finds no room waits in the kernel's backlog.
void ProxyStarter::AcceptConnections() {
  for (;;) {
    if (greetings_.size() >= kMostGreeting && !GiveWay()) break;
    const int fd = AcceptOnListener(listener_);
    if (fd < 0 && errno == EAGAIN) return;
    if (fd < 0 && IsShortage(errno) && !GiveWay()) break;
    if (fd < 0) continue;
    const std::string nonce = HexOf(NewNonce());
    // Whoever has something to say is looked at by Step().
    if (SendText(fd, std::string(kMpiexec) + " " + nonce + "\n") && poller_.Watch(fd, EPOLLIN, [](uint32_t) {})) {
      greetings_.push_back({fd, nonce, {}, Clock::now()});
    } else {
      close(fd);
    }
  }
  listen_again_ = Clock::now() + kPause;
}

// Closes the connection that has been silent for longest, when that is long enough; whether one was.
bool ProxyStarter::GiveWay() {
  while (!greetings_.empty()) {
    if (Clock::now() - greetings_.front().since < kShortestGreeting) return false;
    const bool silent = Greet(greetings_.front());
    if (silent) Drop(greetings_.front());
    greetings_.erase(greetings_.begin());
    if (silent) return true;
  }
  return false;
}

void ProxyStarter::Drop(const Greeting& greeting) {
  poller_.Forget(greeting.fd);
  close(greeting.fd);
}

bool ProxyStarter::Greet(Greeting& greeting) {
  char c = 0;
  long count = 0;
  while ((count = ReadSome(greeting.fd, &c, 1)) == 1 && c != '\n' && greeting.text.size() < kLongestGreeting)
    greeting.text += c;
  if (count == -EAGAIN && Clock::now() - greeting.since < kGreetingLimit) return true;
  if (count == 1 && c == '\n') {
    Admit(greeting, greeting.text);
  } else {
    Drop(greeting);
  }
  return false;
}

void ProxyStarter::Admit(Greeting& greeting, const std::string& line) {
  std::istringstream words(line);
  std::string name, node_text, nonce, proof;
  words >> name >> node_text >> nonce >> proof;
  const int node = ParseInt(node_text).value_or(-1);
  const Said said(node_text, greeting.nonce, nonce);
  const bool invited = name == kProxy && Proves(proof, secret_, kProxy, said) && node >= 0 &&
                       static_cast<size_t>(node) < links_.size() &&
                       links_[static_cast<size_t>(node)].connection == nullptr;
  const std::string own_proof = HexOf(secret_.Prove(kMpiexec, said.bytes()));
  if (!invited || !SendText(greeting.fd, std::string(kMpiexec) + " " + own_proof + "\n")) {
    Drop(greeting);
    return;
  }
  poller_.Forget(greeting.fd);
  ConfigureTcp(greeting.fd);
  links_[static_cast<size_t>(node)].connection = std::make_unique<Connection>(greeting.fd);
}

void ProxyStarter::ChildEnded(pid_t pid, int status) {
  for (ProxyLink& link : links_) {
    if (link.pid != pid) continue;
    link.pid = -1;
    if (link.connection != nullptr || error_) continue;
    const std::string how = WIFEXITED(status) ? "ended with status " + std::to_string(WEXITSTATUS(status))
                                              : "was killed by signal " + std::to_string(WTERMSIG(status));
    error_ = LaunchError{1, means_.remote_shell.program + " " + link.host + " " + how + " before mpiexec's proxy there connected"};
  }
}

}  // namespace weft::pmi
