#include "impi/run/enter.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/file_limit.h"
#include "base/high_descriptor.h"
#include "base/passed_descriptor.h"
#include "impi/entry/hello.h"
#include "impi/run/local_address.h"

namespace weft::impi {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

const std::string kAgentGone = "; did impirun end? Its own messages may say why";

// A sentence, or "": it is the user's.
std::string CheckUser(int fd) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return "the user of the agent cannot be found out: " + std::string(std::strerror(errno));
  if (peer.uid == geteuid()) return {};
  return "the agent belongs to user " + std::to_string(peer.uid) + ", and this process to " + std::to_string(geteuid()) + "; it is not trusted";
}

// The agent's answer, and the connections that come before it.
class Answer {
 public:
  // How many bytes may be read now; 0: it is complete, or wrong.
  size_t Wants() const {
    if (links_over_) return reader_.Wants();
    return (head_.size() < Command::kHeader ? Command::kHeader : LinkNotice::kSize) - head_.size();
  }
  // What came, and the descriptor with it. False: it does not belong there.
  bool Append(ByteSpan bytes, Descriptor fd) {
    if (fd) {
      if (links_over_ || !head_.empty()) return false;
      link_ = Descriptor(LeaveRoomForSelect(fd.Release()));
    }
    if (links_over_) {
      reader_.Append(bytes);
      return true;
    }
    head_.insert(head_.end(), bytes.begin(), bytes.end());
    if (head_.size() == Command::kHeader && !link_) {
      links_over_ = true;
      reader_.Append(head_);
    }
    if (head_.size() < LinkNotice::kSize) return true;
    const auto notice = LinkNotice::Parse(head_);
    head_.clear();
    return notice && links_.emplace(HostRank(notice->host), std::exchange(link_, Descriptor())).second;
  }

  const AnswerReader& reader() const { return reader_; }
  std::map<HostRank, Descriptor> TakeLinks() { return std::move(links_); }

 private:
  std::map<HostRank, Descriptor> links_;
  Descriptor link_;  // that of `head_`
  Bytes head_;       // of the next command
  bool links_over_ = false;
  AnswerReader reader_;
};

// Reads until the answer is complete. A sentence, or "".
std::string Await(int fd, Answer& answer, Clock::time_point end) {
  std::array<uint8_t, 65536> block;
  while (const size_t wanted = answer.Wants()) {
    pollfd ready{fd, POLLIN, 0};
    const auto left = std::max(milliseconds(0), std::chrono::ceil<milliseconds>(end - Clock::now()));
    if (poll(&ready, 1, static_cast<int>(left.count())) == 0) return "the agent does not answer; is impirun stopped?";
    ReceivedWithDescriptor received = ReceiveWithDescriptor(fd, std::span(block).first(std::min(wanted, block.size())), MSG_DONTWAIT);
    if (received.bytes == 0) return "the agent closed the connection without an answer" + kAgentGone;
    if (received.bytes < 0 && errno != EAGAIN && errno != EINTR) return "the connection to the agent broke: " + std::string(std::strerror(errno)) + kAgentGone;
    if (received.truncated) return "a connection that the agent handed over did not come: " + DescribeShortage(EMFILE);
    if (received.bytes > 0 && !answer.Append({block.data(), static_cast<size_t>(received.bytes)}, std::move(received.fd))) {
      return "the agent's answer is wrong: a descriptor came with bytes to which none belongs, or a host twice; use impirun and the MPI library from one release";
    }
  }
  return {};
}

// Of the hosts of other clients, `links` has all or none. A sentence, or "".
std::string CheckLinks(const Job& job, const std::map<HostRank, Descriptor>& links) {
  if (links.empty()) return {};
  size_t others = 0;
  for (size_t host = 0; host < job.hosts().size(); ++host) {
    const bool is_other = job.hosts()[host].client != job.self();
    if (is_other) ++others;
    if (is_other != links.contains(HostRank(static_cast<int32_t>(host)))) return "the agent handed over the connections of other hosts than those of the job";
  }
  if (others == links.size()) return {};
  return "the agent handed over " + std::to_string(links.size()) + " connections, and there are " + std::to_string(others) + " hosts of other clients";
}

}  // namespace

Result<Entered, std::string> EnterJob(const std::string& address, const Hello& says, std::chrono::seconds patience) {
  const auto where = LocalAddress::Parse(address);
  if (!where) return std::string(kAgentVariable) + " is '" + address + "': not an address of an agent; impirun sets it, so leave it as it is";
  Descriptor fd(LeaveRoomForSelect(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  if (!fd) return "no socket for the agent: " + std::string(std::strerror(errno));
  // It blocks while the agent has too many that wait; a signal may interrupt it before anything has happened.
  int error = 0;
  do {
    error = connect(fd.get(), where->get(), where->length()) == 0 ? 0 : errno;
  } while (error == EINTR);
  if (error != 0) return "cannot connect to the agent of this host (" + address + "): " + std::strerror(error) + kAgentGone;
  if (std::string why = CheckUser(fd.get()); !why.empty()) return why;
  const Bytes hello = says.Serialize();
  // Into the empty buffer of a new connection.
  if (send(fd.get(), hello.data(), hello.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(hello.size())) {
    return "the agent of this host (" + address + ") closed the connection" + kAgentGone;
  }
  Answer answer;
  if (std::string why = Await(fd.get(), answer, Clock::now() + patience); !why.empty()) return why;
  auto welcome = answer.reader().Take(says.rank);
  if (!welcome.ok()) return welcome.error();
  auto hosts = answer.TakeLinks();
  if (std::string why = CheckLinks(welcome->job, hosts); !why.empty()) return why;
  fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
  return Entered{std::move(fd), std::move(hosts), std::move(welcome).value()};
}

}  // namespace weft::impi
