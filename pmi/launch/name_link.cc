#include "pmi/launch/name_link.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "base/deadline.h"
#include "pmi/launch/name_file.h"
#include "pmi/launch/remote_start.h"
#include "pmi/wire/challenge.h"

namespace weft::pmi {
namespace {

constexpr std::chrono::seconds kPatience{10};  // with each of its answers

// Hydra's -nameserver has the host of a server of its own, and maybe a port.
std::string HintOnHost(const std::string& path) {
  if (path.find('/') != std::string::npos || access(path.c_str(), F_OK) == 0 || errno != ENOENT) return {};
  return "; if '" + path + "' is a host, as hydra's -nameserver has it: run 'mpiexec -nameserver-run FILE' there, in a directory that all hosts see, and give "
         "each job '-nameserver FILE'. Jobs of one user on one host need neither";
}

}  // namespace

NameLink::~NameLink() { close(fd_); }

bool NameLink::Read() {
  char block[4096];
  const long count = ReadSome(fd_, block, sizeof(block));
  if (count == -EAGAIN) return true;
  if (count <= 0) return false;
  dialect_->Append({block, static_cast<size_t>(count)});
  return dialect_->error().empty();
}

Result<Answer, PmiError> NameLink::Await(const Request& request) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  Ask(request, {});
  for (;;) {
    if (!Write()) return PmiError{"it closed the connection"};
    if (auto answered = Next()) return std::move(answered->answer);
    if (!dialect_->error().empty()) return PmiError{"it sent " + dialect_->error()};
    pollfd entry{fd_, static_cast<short>(POLLIN | (wants_to_write() ? POLLOUT : 0)), 0};
    if (poll(&entry, 1, MillisecondsUntil(deadline)) == 0) return PmiError{"it does not answer"};
    if ((entry.revents & ~POLLOUT) != 0 && !Read()) return PmiError{"it closed the connection"};
  }
}

std::string NameLink::Greet(const std::string& secret) {
  const auto ready = Await(ask::Init{2, 0});
  if (!ready) return ready.error().message;
  if (ready->code != 0 || ready->number != 2) return "it is not a name server";
  auto counted = Dialect::Counted(Dialect::Side::kRank);
  counted->Append(dialect_->TakeRest());
  dialect_ = std::move(counted);
  auto welcome = Await(ask::Introduce{.rank = 0, .threaded = true, .authentication = kChallengeMethod});
  if (welcome && welcome->challenge) welcome = Await(ask::Prove{ProofFor(secret, *welcome->challenge)});
  if (!welcome) return welcome.error().message;
  return welcome->code == 0 ? std::string() : "it refuses this mpiexec: " + Printable(welcome->why);
}

Result<std::unique_ptr<NameLink>, PmiError> NameLink::Connect(const std::string& path) {
  const auto file = NameFile::Read(path);
  if (!file) return PmiError{file.error().message + HintOnHost(path)};
  std::string problem = "nothing answers at port " + file->port + " of";
  for (const std::string& address : file->addresses) problem += " " + address;
  for (const std::string& address : file->addresses) {
    const int fd = Dial(address, file->port);
    if (fd < 0) continue;
    SetNonBlocking(fd);
    std::unique_ptr<NameLink> link(new NameLink(fd));
    problem = link->Greet(file->secret);
    if (problem.empty()) return link;
  }
  return PmiError{"cannot use the name server of " + path + ": " + problem};
}

}  // namespace weft::pmi
