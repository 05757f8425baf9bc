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
  // With `tls` all of it goes through that (PMI_SOCKTYPE=OpenSSL).
  explicit Socket(int fd, std::unique_ptr<TlsStream> tls = nullptr) : fd_(fd), tls_(std::move(tls)) {}
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }
  // All of it. Empty, or why not.
  std::string Send(std::string_view bytes);
  // At least one byte, and what comes with it; empty at the end.
  Result<std::string, PmiError> Receive();
  // Waits until TLS is through, where there is TLS: some seconds at most. Empty, or what is wrong. Before there are threads.
  std::string Handshake();

 private:
  void Await(short events);
  std::string SendRaw(std::string_view bytes);
  Result<std::string, PmiError> ReceiveRaw();
  // What TLS wants to say, and no thread has sent yet.
  std::string SendWire();
  Result<std::string, PmiError> ReceiveSecured();

  const int fd_;
  std::mutex sending_;    // held while sending: bytes leave in the order in which TLS made them; taken before tls_mutex_
  std::mutex tls_mutex_;  // guards tls_, but not while anything waits
  const std::unique_ptr<TlsStream> tls_;
};

// A connected descriptor, or why there is none.
Result<int, PmiError> Dial(const std::string& host, const std::string& port);

}  // namespace weft::pmi

#endif  // PMI_CLIENT_SOCKET_H_
