#include "mpi_hybrid/dynamic/join.h"

#include <mpi.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include "mpi_hybrid/dynamic/beside.h"
#include "mpi_hybrid/dynamic/connect.h"

namespace weft::mpi {
namespace {

using Text = std::array<char, PortName::kLongest + 1>;
constexpr auto kPatience = std::chrono::seconds(60);  // for the other, which has said that it is there

Error Failed(int fd, const char* what, const std::string& why) {
  return Error(MPI_ERR_OTHER, "cannot " + std::string(what) + " descriptor " + std::to_string(fd) + ": " + why);
}

// After a call on `fd` that gave -1: whether to call again. Where the socket does not block, or has a time-out, that is when it is ready.
bool MayGoOn(int fd, short events) {
  if (errno == EINTR) return true;
  if (errno != EAGAIN) return false;
  pollfd entry = {fd, events, 0};
  return poll(&entry, 1, -1) >= 0 || errno == EINTR;
}

Error WriteAll(int fd, const Text& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = send(fd, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (count > 0) done += static_cast<size_t>(count);
    if (count < 0 && !MayGoOn(fd, POLLOUT)) return Failed(fd, "write to", std::strerror(errno));
  }
  return {};
}

Error ReadAll(int fd, Text* text) {
  for (size_t done = 0; done < text->size();) {
    const ssize_t count = recv(fd, text->data() + done, text->size() - done, 0);
    if (count > 0) done += static_cast<size_t>(count);
    if (count == 0) return Failed(fd, "read from", "the other side closed it");
    if (count < 0 && !MayGoOn(fd, POLLIN)) return Failed(fd, "read from", std::strerror(errno));
  }
  if (text->back() != 0) return Failed(fd, "read from", "the data is not the name of a port");
  return {};
}

Error Exchange(int fd, const Text& mine, Text* theirs) {
  WEFT_MPI_TRY(WriteAll(fd, mine));
  return ReadAll(fd, theirs);
}

// Both ends do the same until one has the lower name.
Error MeetOver(int fd, const std::string& port, Ref<Comm>* made) {
  Text mine{}, theirs{};
  std::memcpy(mine.data(), port.data(), port.size());
  Error exchanged;
  RunBeside([&] { exchanged = Exchange(fd, mine, &theirs); });
  WEFT_MPI_TRY(std::move(exchanged));
  const std::string other = theirs.data();
  if (other == port) return Error(MPI_ERR_OTHER, "both ends of descriptor " + std::to_string(fd) + " are this process");
  const Meeting meeting{.port = std::min(port, other), .deadline = Ports::Clock::now() + kPatience, .refusal = {}};
  return port < other ? AcceptGroup(&meeting, 0, Self(), made) : ConnectGroup(&meeting, 0, Self(), made);
}

}  // namespace

Error Join(int fd, Ref<Comm>* made) {
  std::string port;
  WEFT_MPI_TRY(Ports::Instance().Open(&port));
  Error met = MeetOver(fd, port, made);
  Error closed = Ports::Instance().Close(port);
  return met.ok() ? std::move(closed) : std::move(met);
}

}  // namespace weft::mpi
