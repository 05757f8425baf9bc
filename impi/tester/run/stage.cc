#include "impi/tester/run/stage.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/descriptor.h"
#include "base/host_port.h"
#include "base/result.h"
#include "impi/tester/run/child.h"
#include "pmi/launch/outbox.h"
#include "pmi/launch/poller.h"
#include "pmi/launch/sockets.h"
#include "transport/socket_address.h"

namespace weft::impi::tester {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using transport::SocketAddress;

constexpr std::chrono::seconds kUsersPatience{600};  // for a user who starts the implementation by hand
constexpr milliseconds kRound{200};                  // until `progress` is told again
constexpr const char* kGivenUp = "the user ended the tester";
constexpr milliseconds kFlush{2000};  // for what was sent to a connection before it is closed

std::string Replaced(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}

HostId HostIdOf(const std::string& text) {
  HostId host{};
  in_addr ipv4;
  if (inet_pton(AF_INET, text.c_str(), &ipv4) == 1) return HostIdOfIpv4(ipv4.s_addr);
  inet_pton(AF_INET6, text.c_str(), host.data());
  return host;
}

class Stage final : public Play::Owner {
 public:
  Stage(const Script& script, const Subject& subject, const std::function<void(const std::string&)>& say,
        const std::function<bool(size_t)>& progress)
      : script_(script), subject_(subject), say_(say), progress_(progress) {}

  Verdict Run() {
    const auto began = Clock::now();
    Verdict verdict;
    if (const std::string why = Prepare(); !why.empty()) {
      verdict.failure = {0, "the start", why};
    } else {
      Perform(verdict);
    }
    if (child_) {
      child_->Read();
      verdict.output = child_->output(false) + child_->output(true);
    }
    verdict.took = std::chrono::duration_cast<milliseconds>(Clock::now() - began);
    return verdict;
  }

  // Play::Owner
  void Open(const std::string& name, const HostId& address, uint16_t port) override {
    const bool to_server = script_.target == Target::kServer;
    const auto to = to_server ? server_ : SocketAddress::Parse(impi::TextOf(address), port);
    const auto from = to_server ? std::nullopt : SocketAddress::Parse(AddressOf(name), 0);
    Socket& socket = sockets_[name];
    socket = Socket();
    socket.fd = Descriptor(to ? ::socket(to->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1);
    const bool bound = !from || (socket.fd && bind(socket.fd.get(), from->get(), from->length()) == 0);
    const int error = socket.fd && bound && connect(socket.fd.get(), to->get(), to->length()) == 0 ? 0 : errno;
    socket.connecting = true;
    if (!socket.fd || (error != 0 && error != EINPROGRESS)) socket.failed = error == 0 ? EADDRNOTAVAIL : error;
  }
  void Send(const std::string& name, const Bytes& bytes) override {
    Socket& socket = sockets_.at(name);
    socket.out.Add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (socket.out.WriteTo(socket.fd.get()) != 0) socket.out.Clear();  // what it sent before it left is still read
  }
  void Close(const std::string& name) override {
    const auto found = sockets_.find(name);
    if (found == sockets_.end()) return;
    Flush(found->second);
    closing_.push_back(std::move(found->second.fd));  // not before the handlers of this round are through
    sockets_.erase(found);
  }

 private:
  struct Socket {
    Descriptor fd;
    pmi::Outbox out;
    bool connecting = false, ended = false;
    int failed = 0;  // errno of the connecting
  };
  struct Listener {
    Descriptor fd;
    uint16_t port = 0;
  };

  // Of the host that has this connection with the one under test.
  const std::string& AddressOf(const std::string& connection) const {
    for (int host = 0; host < script_.hosts(); ++host) {
      if (HostConnection(host) == connection) return subject_.addresses[static_cast<size_t>(host) % subject_.addresses.size()];
    }
    return subject_.addresses[0];
  }
  bool IsClient() const { return script_.target == Target::kClient; }

  static void Flush(Socket& socket) {
    for (const auto end = Clock::now() + kFlush;
         !socket.out.empty() && socket.out.WriteTo(socket.fd.get()) == 0 && Clock::now() < end;) {
      pollfd ready{socket.fd.get(), POLLOUT, 0};
      poll(&ready, 1, 100);
    }
  }

  // Listeners and the child. Why not, or "".
  std::string Prepare() {
    if (IsClient()) {
      if (std::string why = Listen(kServerConnection); !why.empty()) return why;
      for (int host = 0; host < script_.hosts(); ++host) {
        if (script_.ClientOfHost(host) == script_.under_test) continue;
        if (std::string why = Listen(HostConnection(host)); !why.empty()) return why;
      }
    }
    if (subject_.command.empty()) return IsClient() ? Ask() : FindServer(subject_.server);
    const std::string server = IsClient() ? ServerAddress() : "";
    const auto key = script_.has_key ? std::optional(std::to_string(kKey)) : std::nullopt;
    const auto none = script_.has_none ? std::optional<std::string>("1") : std::nullopt;
    auto child =
        Child::Start(CommandFor(script_, subject_.command, server), {{"IMPI_AUTH_KEY", key}, {"IMPI_AUTH_NONE", none}});
    if (!child.ok()) return child.error();
    child_ = std::move(child).value();
    return IsClient() ? "" : HearServer();
  }
  std::string Listen(const std::string& name) {
    int port = 0;
    Listener listener{Descriptor(pmi::Listen(&port)), 0};
    if (!listener.fd) return std::string("the tester cannot listen: ") + std::strerror(errno);
    listener.port = static_cast<uint16_t>(port);
    listeners_[name] = std::move(listener);
    return {};
  }
  std::string ServerAddress() const {
    return subject_.addresses[0] + ":" + std::to_string(listeners_.at(kServerConnection).port);
  }
  std::string Ask() {
    say_("start the client under test: client " + std::to_string(script_.under_test) + " of the server " +
         ServerAddress() + ", with " + std::to_string(script_.RanksOf(script_.under_test)) +
         " ranks of the test program, which gets the argument " + script_.file +
         (script_.has_key ? "; IMPI_AUTH_KEY is " + std::to_string(kKey) : "") +
         (script_.has_none ? "; IMPI_AUTH_NONE is set" : ""));
    return {};
  }
  // Section 2.2.1: the first line is the address in dot notation and the port.
  std::string HearServer() {
    const auto until = Clock::now() + script_.patience.value_or(subject_.patience);
    while (child_->output(false).find('\n') == std::string::npos) {
      pollfd ready[] = {
          {child_->standard_output(), POLLIN, 0}, {child_->standard_error(), POLLIN, 0}, {child_->end(), POLLIN, 0}};
      poll(ready, 3, 100);
      child_->Read();
      child_->Reap();
      if (child_->output(false).find('\n') != std::string::npos) break;
      if (child_->status())
        return "the server ended with status " + std::to_string(*child_->status()) +
               " before it printed HOST:PORT (section 2.2.1)";
      if (!progress_(0)) return kGivenUp;
      if (Clock::now() > until) return "the server did not print HOST:PORT in time (section 2.2.1)";
    }
    return FindServer(child_->output(false).substr(0, child_->output(false).find('\n')));
  }
  std::string FindServer(const std::string& text) {
    const auto parsed = ParseHostPort(text);
    if (parsed) server_ = SocketAddress::Parse(parsed->host, parsed->port);
    return server_ ? ""
                   : "'" + text + "' is not the address and port of a server, such as 192.0.2.1:5678 (section 2.2.1)";
  }

  void Perform(Verdict& verdict) {
    Play::Setup setup{.patience = subject_.patience, .hosts = {}, .sees_exit = child_ != nullptr};
    if (IsClient() && !child_) setup.patience = std::max(setup.patience, kUsersPatience);
    for (int host = 0; IsClient() && host < script_.hosts(); ++host) {
      const auto found = listeners_.find(HostConnection(host));
      setup.hosts.push_back({HostIdOf(AddressOf(HostConnection(host))), found == listeners_.end() ? uint16_t{0} : found->second.port});
    }
    Play play(script_, std::move(setup), *this, Clock::now());
    bool exited = false;
    while (play.state() == Play::State::kPlaying) {
      if (!progress_(play.done())) {
        verdict.failure = {0, "the end", kGivenUp};
        return;
      }
      Round(play);
      if (child_ && child_->status() && !std::exchange(exited, true)) play.OnExit(*child_->status(), Clock::now());
      play.OnTime(Clock::now());
    }
    verdict.passed = play.state() == Play::State::kPassed;
    verdict.failure = play.failure();
    verdict.trace.assign(play.trace().begin(), play.trace().end());
  }

  void Round(Play& play) {
    pmi::Poller poller;
    closing_.clear();
    bool now = false;  // something is known already
    if (child_) {
      for (const int fd : {child_->standard_output(), child_->standard_error()}) {
        poller.Watch(fd, POLLIN, [this](short) { child_->Read(); });
      }
      if (!child_->status()) poller.Watch(child_->end(), POLLIN, [this](short) { child_->Reap(); });
    }
    for (auto& [name, listener] : listeners_) {
      poller.Watch(listener.fd.get(), POLLIN, [this, &play, name](short) { Accept(play, name); });
    }
    for (auto& [name, socket] : sockets_) {
      now |= socket.failed != 0;
      const bool writes = socket.connecting || !socket.out.empty();
      const auto events = static_cast<short>((socket.ended || socket.connecting ? 0 : POLLIN) | (writes ? POLLOUT : 0));
      if (events != 0)
        poller.Watch(socket.fd.get(), events, [this, &play, name](short came) { OnReady(play, name, came); });
    }
    const auto deadline = play.deadline();
    const auto left = deadline ? std::max(milliseconds(0), std::chrono::ceil<milliseconds>(*deadline - Clock::now()))
                               : milliseconds(0);
    poller.Wait(now ? 0 : static_cast<int>(std::min(left, kRound).count()));
    if (!now) return;
    for (auto& [name, socket] : sockets_) {
      if (socket.failed == 0) continue;
      play.OnOpenFailed(name, std::strerror(socket.failed), Clock::now());
      return;
    }
  }

  // One connection each: an implementation has no reason for a second one.
  void Accept(Play& play, const std::string& name) {
    Listener& listener = listeners_.at(name);
    Descriptor fd(accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    listener.fd.Close();
    pmi::ConfigureTcp(fd.get());
    sockets_[name] = Socket();
    sockets_[name].fd = std::move(fd);
    play.OnAccepted(name, Clock::now());
  }

  void OnReady(Play& play, const std::string& name, short came) {
    const auto found = sockets_.find(name);
    if (found == sockets_.end()) return;
    Socket& socket = found->second;
    if (socket.connecting) {
      socklen_t length = sizeof socket.failed;
      getsockopt(socket.fd.get(), SOL_SOCKET, SO_ERROR, &socket.failed, &length);
      if (socket.failed != 0) return;
      socket.connecting = false;
      pmi::ConfigureTcp(socket.fd.get());
      return play.OnOpened(name, Clock::now());
    }
    if ((came & POLLOUT) != 0 && socket.out.WriteTo(socket.fd.get()) != 0) socket.out.Clear();
    if ((came & ~POLLOUT) == 0 || socket.ended) return;
    char block[65536];
    const long count = pmi::ReadSome(socket.fd.get(), block, sizeof block);
    if (count == -EAGAIN) return;
    if (count > 0)
      return play.OnBytes(name, {reinterpret_cast<const uint8_t*>(block), static_cast<size_t>(count)}, Clock::now());
    socket.ended = true;
    socket.out.Clear();
    play.OnClosed(name, Clock::now());
  }

  const Script& script_;
  const Subject& subject_;
  const std::function<void(const std::string&)>& say_;
  const std::function<bool(size_t)>& progress_;
  std::unique_ptr<Child> child_;
  std::optional<SocketAddress> server_;
  std::map<std::string, Listener> listeners_;
  std::map<std::string, Socket> sockets_;
  std::list<Descriptor> closing_;
};

}  // namespace

std::vector<std::string> CommandFor(const Script& script, const std::vector<std::string>& command,
                                    const std::string& server) {
  const bool is_client = script.target == Target::kClient;
  std::vector<std::string> words;
  bool has_options = false, has_clients = false;
  for (std::string word : command) {
    if (word == "{options}") {
      words.insert(words.end(), script.options.begin(), script.options.end());
      has_options = true;
      continue;
    }
    has_clients |= word.find("{clients}") != std::string::npos;
    word = Replaced(std::move(word), "{clients}", std::to_string(script.clients));
    if (is_client) {
      word = Replaced(std::move(word), "{server}", server);
      word = Replaced(std::move(word), "{client}", std::to_string(script.under_test));
      word = Replaced(std::move(word), "{ranks}", std::to_string(script.RanksOf(script.under_test)));
      word = Replaced(std::move(word), "{script}", script.file);
    }
    words.push_back(std::move(word));
  }
  if (!is_client && !has_clients) words.insert(words.end(), {"-server", std::to_string(script.clients)});
  if (!is_client && !has_options) words.insert(words.end(), script.options.begin(), script.options.end());
  return words;
}

Verdict RunScript(const Script& script, const Subject& subject, const std::function<void(const std::string&)>& say,
                  const std::function<bool(size_t)>& progress) {
  return Stage(script, subject, say, progress).Run();
}

}  // namespace weft::impi::tester
