#include "pmi/launch/host_lookup.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "base/close_from.h"
#include "base/deadline.h"
#include "pmi/launch/connection.h"
#include "pmi/launch/remote_start.h"
#include "transport/interfaces.h"
#include "transport/socket_address.h"

namespace weft::pmi {
namespace {

using Clock = std::chrono::steady_clock;

bool BelongsToAnInterface(const transport::SocketAddress& address) {
  const auto own = transport::ListAddresses();
  return std::any_of(own.begin(), own.end(), [&](const transport::InterfaceAddress& one) { return one.address.SameHost(address); });
}

// Nothing is sent: connecting a datagram socket asks the routes alone.
std::string AddressTowards(const addrinfo& entry) {
  const int fd = socket(entry.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {};
  const std::string address = connect(fd, entry.ai_addr, entry.ai_addrlen) == 0 ? OwnAddress(fd) : std::string();
  close(fd);
  return address;
}

// Nothing: it is not to be found out. `numeric`: without asking anybody.
std::optional<HostFacts> Resolve(const std::string& host, bool numeric) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICSERV | (numeric ? AI_NUMERICHOST : 0);
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "9", &hints, &found) != 0) return std::nullopt;
  HostFacts facts;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    const auto address = transport::SocketAddress::From(entry->ai_addr, entry->ai_addrlen);
    facts.is_this = facts.is_this || (address && BelongsToAnInterface(*address));
    if (facts.address.empty()) facts.address = AddressTowards(*entry);
  }
  freeaddrinfo(found);
  return facts;
}

std::optional<HostFacts> KnownWithoutAsking(const std::string& host) {
  char own[256] = {};
  if (host == "localhost" || (gethostname(own, sizeof(own) - 1) == 0 && host == own)) return HostFacts{true, {}};
  return Resolve(host, /*numeric=*/true);
}

// Asks for names[wanted...] and writes a line for each, "INDEX IS_THIS ADDRESS"; ends when all are there, nobody reads them any more, or time is over.
[[noreturn]] void AskInChild(const std::vector<std::string>& names, const std::vector<size_t>& wanted, int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_IGN);
  if (out != 3) dup2(out, 3);
  CloseFrom(4);
  std::atomic<size_t> next{0}, answered{0};
  const auto ask = [&] {
    for (size_t at; (at = next++) < wanted.size();) {
      const HostFacts facts = Resolve(names[wanted[at]], /*numeric=*/false).value_or(HostFacts{});
      // Shorter than PIPE_BUF: lines of different threads do not mix.
      dprintf(3, "%zu %d %s\n", wanted[at], facts.is_this ? 1 : 0, facts.address.c_str());
      if (++answered == wanted.size()) _exit(0);
    }
  };
  size_t threads = 0;
  for (; threads < std::min(wanted.size(), HostLookup::kMostAtOnce); ++threads) {
    try {
      std::thread(ask).detach();
    } catch (const std::system_error&) {
      break;  // with fewer it takes longer
    }
  }
  if (threads == 0) ask();
  pollfd reader{3, 0, 0};
  poll(&reader, 1, static_cast<int>(std::chrono::milliseconds(HostLookup::kLimit).count()));
  _exit(0);
}

}  // namespace

HostLookup::HostLookup(const std::vector<std::string>& names) : facts_(names.size()) {
  std::vector<size_t> wanted;
  for (size_t i = 0; i < names.size(); ++i) {
    if (auto known = KnownWithoutAsking(names[i])) {
      facts_[i] = *std::move(known);
    } else {
      wanted.push_back(i);
    }
  }
  int ends[2];
  if (wanted.empty() || pipe2(ends, O_CLOEXEC) != 0) return;
  const pid_t child = fork();
  if (child == 0) AskInChild(names, wanted, ends[1]);
  close(ends[1]);
  answers_ = ends[0];
  SetNonBlocking(answers_);
  if (child < 0) Finish();
}

HostLookup::~HostLookup() { Finish(); }

void HostLookup::Finish() {
  if (answers_ >= 0) close(std::exchange(answers_, -1));
}

void HostLookup::Step() {
  if (answers_ < 0) return;
  char block[4096];
  long count = 0;
  while ((count = ReadSome(answers_, block, sizeof(block))) > 0) text_.append(block, static_cast<size_t>(count));
  TakeAnswers();
  if (count == 0 || Clock::now() >= deadline_) Finish();
}

void HostLookup::TakeAnswers() {
  for (size_t end; (end = text_.find('\n')) != std::string::npos; text_.erase(0, end + 1)) {
    std::istringstream words(text_.substr(0, end));
    size_t index = facts_.size();
    int is_this = 0;
    std::string address;
    words >> index >> is_this >> address;
    if (index < facts_.size()) facts_[index] = {is_this != 0, address};
  }
}

std::vector<HostFacts> LookUpHosts(const std::vector<std::string>& names) {
  HostLookup lookup(names);
  while (!lookup.done()) {
    pollfd entry{lookup.fd(), POLLIN, 0};
    poll(&entry, 1, MillisecondsUntil(lookup.deadline()));
    lookup.Step();
  }
  return lookup.facts();
}

}  // namespace weft::pmi
