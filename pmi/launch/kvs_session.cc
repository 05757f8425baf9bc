#include "pmi/launch/kvs_session.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "pmi/launch/greeting.h"
#include "transport/socket_address.h"

namespace weft::pmi {

KvsSession::KvsSession(int fd, const Reception::Job* job, std::unique_ptr<TlsStream> tls)
    : fd_(fd), peer_(transport::SocketAddress::Peer(fd).ToString()), tls_(std::move(tls)), reception_(job) {
  ConfigureTcp(fd_);
}

KvsSession::~KvsSession() { close(fd_); }

void KvsSession::Send(std::string_view bytes) {
  if (!open_ || bytes.empty()) return;
  if (tls_ == nullptr) return SendWire(bytes);
  tls_->Write(bytes);
  SendWire(tls_->TakeWire());
}

void KvsSession::SendWire(std::string_view bytes) {
  out_.Add(bytes);
  Flush();
}

void KvsSession::Flush() {
  if (!open_) return;
  if (const int error = out_.WriteTo(fd_); error != 0) Close(std::string("cannot be written to: ") + std::strerror(error));
}

std::string KvsSession::Receive() {
  char block[65536];
  const long count = ReadSome(fd_, block, sizeof(block));
  if (count > 0 && tls_ == nullptr) return {block, static_cast<size_t>(count)};
  if (count > 0) {
    tls_->Append({block, static_cast<size_t>(count)});
    SendWire(tls_->TakeWire());
    if (!tls_->error().empty()) Close(tls_->error());
    if (tls_->closed()) Close("closed its connection");
    return tls_->TakePlain();
  }
  if (count == 0) Close("closed its connection");
  if (count < 0 && count != -EAGAIN) Close(std::string("cannot be read from: ") + std::strerror(static_cast<int>(-count)));
  return {};
}

void KvsSession::Close(std::string why) {
  if (!std::exchange(open_, false)) return;
  end_ = std::move(why);
}

void KvsSession::LookForPeer(Clock::time_point now) {
  if (silence_.Look(fd_, now)) Close("is on a host that no longer answers");
}

}  // namespace weft::pmi
