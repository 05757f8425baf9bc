#ifndef TRANSPORT_INTERFACE_EVENTS_H_
#define TRANSPORT_INTERFACE_EVENTS_H_

#include <memory>

#include "base/result.h"

namespace weft::transport {

// Tells when interfaces or addresses of this network namespace change (rtnetlink(7)). Needs no privilege.
class InterfaceEvents {
 public:
  // The error is an errno: EAFNOSUPPORT, EMFILE, EPERM in a sandbox ...
  static Result<std::unique_ptr<InterfaceEvents>, int> Open();
  ~InterfaceEvents();
  InterfaceEvents(const InterfaceEvents&) = delete;
  InterfaceEvents& operator=(const InterfaceEvents&) = delete;

  // Readable when there is news.
  int fd() const { return fd_; }
  // Takes all news that wait; never blocks. Whether an interface or an address came, went or changed; also true when the kernel had
  // to drop some.
  bool Drain();

 private:
  explicit InterfaceEvents(int fd) : fd_(fd) {}
  const int fd_;
};

}  // namespace weft::transport

#endif  // TRANSPORT_INTERFACE_EVENTS_H_
