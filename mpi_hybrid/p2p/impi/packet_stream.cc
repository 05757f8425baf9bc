#include <sys/socket.h>

#include "mpi_hybrid/p2p/impi/packet_stream.h"

namespace weft::mpi {

void AgentSocket::Start(EventLoop& loop, EventLoop::Handler& handler) { registration_ = EventLoop::Registration(loop, socket_.get(), EPOLLIN, handler); }

ssize_t AgentSocket::Receive(std::span<uint8_t> into) { return recv(socket_.get(), into.data(), into.size(), MSG_DONTWAIT); }

ssize_t AgentSocket::Send(std::span<const iovec> pieces) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  return sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void AgentSocket::AwaitRoom(bool awaits) { registration_.SetEvents(awaits ? EPOLLIN | EPOLLOUT : EPOLLIN); }

void AgentSocket::Close() {
  registration_.End();
  socket_.Close();
}

}  // namespace weft::mpi
