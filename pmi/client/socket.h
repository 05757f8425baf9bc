#ifndef PMI_CLIENT_SOCKET_H_
#define PMI_CLIENT_SOCKET_H_

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"
#include "pmi/error.h"
#include "pmi/tls/tls_stream.h"

namespace weft::pmi {

// The connection to the launcher, blocking or not; owns the descriptor. One thread may send while another receives.
class Socket {
 public:
  // `tls`: if set, all data goes through it (PMI_SOCKTYPE=OpenSSL).
  explicit Socket(int fd, std::unique_ptr<TlsStream> tls = nullptr) : fd_(fd), tls_(std::move(tls)) {}
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }
  // Sends all of it. Returns a description of the error, or empty.
  std::string Send(std::string_view bytes);
  // Returns at least one byte, and what else is available; empty at the end of the stream.
  Result<std::string, PmiError> Receive();
  // Waits for the TLS handshake, if TLS is used, a few seconds at most. Returns a description of the error, or empty.
  // Call it before there are several threads.
  std::string Handshake();

 private:
  void Await(short events);
  std::string SendRaw(std::string_view bytes);
  Result<std::string, PmiError> ReceiveRaw();
  // Sends data that TLS has produced and that no thread has sent yet.
  std::string SendWire();
  Result<std::string, PmiError> ReceiveSecured();

  const int fd_;
  // held while sending: bytes leave in the order in which TLS produced them; taken before tls_mutex_
  std::mutex sending_;
  std::mutex tls_mutex_;  // guards tls_; not held during a wait
  const std::unique_ptr<TlsStream> tls_;
};

// A connected descriptor, or why there is none.
Result<int, PmiError> Dial(const std::string& host, const std::string& port);

}  // namespace weft::pmi

#endif  // PMI_CLIENT_SOCKET_H_
