#ifndef PMI_CLIENT_SOCKET_H_
#define PMI_CLIENT_SOCKET_H_

#include <string>
#include <string_view>

#include "base/result.h"
#include "pmi/error.h"

namespace weft::pmi {

// The connection to the launcher, blocking or not; owns the descriptor. One thread may send while another receives.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }
  // All of it. 0, or errno.
  int Send(std::string_view bytes);
  // At least one byte, and what comes with it; empty at the end. Fails with errno.
  Result<std::string, int> Receive();

 private:
  void Await(short events);

  const int fd_;
};

// A connected descriptor, or why there is none.
Result<int, PmiError> Dial(const std::string& host, const std::string& port);

}  // namespace weft::pmi

#endif  // PMI_CLIENT_SOCKET_H_
