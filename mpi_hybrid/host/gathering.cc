#include "mpi_hybrid/host/gathering.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/file_limit.h"
#include "base/hex.h"
#include "base/passed_descriptor.h"
#include "mpi_hybrid/host/abstract_name.h"
#include "mpi_hybrid/host/credentials.h"
#include "mpi_hybrid/host/handshake.h"
#include "mpi_hybrid/host/segment_server.h"
#include "pmi/client.h"

namespace weft::mpi::host {
namespace {

std::string KeyOf(int rank) { return kSegmentPrefix + std::to_string(rank); }

Descriptor ConnectTo(const Nonce& name) {
  Descriptor made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!made) return Descriptor();
  const timeval patience = {.tv_sec = Gathering::kPatienceSeconds, .tv_usec = 0};
  setsockopt(made.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(made.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  const AbstractName address(kSegmentPrefix, name);
  if (connect(made.get(), address.get(), address.length) != 0) return Descriptor();
  return made;
}

}  // namespace

Gathering::Gathering(Job& job, std::vector<int> ranks)
    : job_(job),
      ranks_(std::move(ranks)),
      place_(static_cast<int>(std::lower_bound(ranks_.begin(), ranks_.end(), job.rank) - ranks_.begin())) {}

Gathering::~Gathering() = default;

void Gathering::Begin() {
  if (ranks_.size() < 2 || place_ != 0) return;
  if (ranks_.size() > kMostPlaces) {
    why_not_ = std::to_string(ranks_.size()) + " ranks are on this host, but the segment has places for " +
               std::to_string(kMostPlaces);
    return;
  }
  made_ = Segment::Create(ranks_, place_, &why_not_);
  if (made_ == nullptr) return;
  server_ = std::make_unique<SegmentServer>();
  if (!server_->Listen(ranks_.size())) {
    why_not_ = "a unix socket: " + DescribeShortage(errno);
    made_.reset();
    return;
  }
  why_not_ = job_.pmi->Put(KeyOf(job_.rank), HexOf(server_->name()));
}

std::unique_ptr<Segment> Gathering::Join(std::string* why) {
  if (ranks_.size() < 2) {
    *why = "no other rank is on this host";
    return nullptr;
  }
  if (place_ != 0) {
    const auto published = job_.pmi->Get(KeyOf(ranks_[0]));
    if (published.ok()) return Visit(*published, why);
    *why = "rank " + std::to_string(ranks_[0]) + " has made none";
    return nullptr;
  }
  if (made_ != nullptr && why_not_.empty() &&
      !server_->Start(job_.processes.BondOf(job_.rank).secret, ranks_, made_->memory_descriptor())) {
    why_not_ = "a thread: " + DescribeShortage(errno);
  }
  if (!why_not_.empty()) {
    *why = why_not_;
    server_.reset();
    made_.reset();
  }
  return std::move(made_);
}

std::unique_ptr<Segment> Gathering::Visit(const std::string& published, std::string* why) {
  const auto refused = [&](const char* what) {
    *why = std::string(what) + " rank " + std::to_string(ranks_[0]) + ": " +
           (errno == 0 ? "it refused this rank" : DescribeShortage(errno));
    return nullptr;
  };
  Nonce name, challenge;
  errno = EINVAL;
  if (!ParseHex(published, name)) return refused("the name of");
  const Descriptor socket = ConnectTo(name);
  if (!socket || !IsOfThisUser(socket.get())) return refused("connecting to");
  ssize_t got = recv(socket.get(), challenge.data(), challenge.size(), 0);
  if (got >= 0) errno = 0;
  if (got != static_cast<ssize_t>(challenge.size())) return refused("receiving from");

  const JobSecret secret = job_.processes.BondOf(job_.rank).secret;
  uint8_t hello[GuestHello::kLength];
  GuestHello{.rank = job_.rank, .pid = getpid(), .pid_namespace = PidNamespace()}.Write(secret, challenge, hello);
  if (send(socket.get(), hello, sizeof(hello), MSG_NOSIGNAL) < 0) return refused("sending to");
  uint8_t proof[sizeof(JobSecret::Proof)];
  errno = 0;
  ReceivedWithDescriptor received = ReceiveWithDescriptor(socket.get(), proof, 0);
  const size_t length = received.bytes < 0 ? 0 : static_cast<size_t>(received.bytes);
  if (received.descriptors != 1 || !IsHostProof(secret, challenge, hello, {proof, length})) return refused("memory of");
  return Segment::Join(Descriptor(received.fd.Release()), ranks_, place_, why);
}

void Gathering::End() { server_.reset(); }

}  // namespace weft::mpi::host
