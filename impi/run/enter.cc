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

#include "base/high_descriptor.h"
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

// Reads until the answer is complete. A sentence, or "".
std::string Await(int fd, AnswerReader& reader, Clock::time_point end) {
  std::array<uint8_t, 65536> block;
  while (const size_t wanted = reader.Wants()) {
    pollfd ready{fd, POLLIN, 0};
    const auto left = std::max(milliseconds(0), std::chrono::ceil<milliseconds>(end - Clock::now()));
    if (poll(&ready, 1, static_cast<int>(left.count())) == 0) return "the agent does not answer; is impirun stopped?";
    const ssize_t count = recv(fd, block.data(), std::min(wanted, block.size()), MSG_DONTWAIT);
    if (count == 0) return "the agent closed the connection without an answer" + kAgentGone;
    if (count < 0 && errno != EAGAIN && errno != EINTR) return "the connection to the agent broke: " + std::string(std::strerror(errno)) + kAgentGone;
    if (count > 0) reader.Append({block.data(), static_cast<size_t>(count)});
  }
  return {};
}

}  // namespace

Result<Entered, std::string> EnterJob(const std::string& address, int32_t rank, std::chrono::seconds patience) {
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
  const Bytes hello = Hello{rank}.Serialize();
  // Into the empty buffer of a new connection.
  if (send(fd.get(), hello.data(), hello.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(hello.size())) {
    return "the agent of this host (" + address + ") closed the connection" + kAgentGone;
  }
  AnswerReader reader;
  if (std::string why = Await(fd.get(), reader, Clock::now() + patience); !why.empty()) return why;
  auto welcome = reader.Take(rank);
  if (!welcome.ok()) return welcome.error();
  fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
  return Entered{std::move(fd), std::move(welcome).value()};
}

}  // namespace weft::impi
