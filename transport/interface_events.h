#ifndef TRANSPORT_INTERFACE_EVENTS_H_
#define TRANSPORT_INTERFACE_EVENTS_H_

#include <memory>

#include "base/result.h"

namespace weft::transport {

// Reports changes of interfaces and addresses of this network namespace (rtnetlink(7)). Needs no privilege.
class InterfaceEvents {
 public:
  // The error is an errno: EAFNOSUPPORT, EMFILE, EPERM in a sandbox ...
  static Result<std::unique_ptr<InterfaceEvents>, int> Open();
  ~InterfaceEvents();
  InterfaceEvents(const InterfaceEvents&) = delete;
  InterfaceEvents& operator=(const InterfaceEvents&) = delete;

  // Readable when there are events.
  int fd() const { return fd_; }
  // Reads all waiting events; never blocks. Returns whether an interface or address was added, removed or changed; also
  // true if the kernel had to drop events.
  bool Drain();

 private:
  explicit InterfaceEvents(int fd) : fd_(fd) {}
  const int fd_;
};

}  // namespace weft::transport

#endif  // TRANSPORT_INTERFACE_EVENTS_H_
