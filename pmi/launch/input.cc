#include "pmi/launch/input.h"

#include <unistd.h>

#include <cerrno>

namespace weft::pmi {

// A background process that reads from its terminal would be stopped.
bool Input::IsForeground() const {
  const pid_t foreground = tcgetpgrp(fd_);
  return foreground < 0 || foreground == getpgrp();
}

int Input::fd_to_watch() const { return open_ && unread_ < kWindow && IsForeground() ? fd_ : -1; }

bool Input::waits_for_terminal() const { return open_ && unread_ < kWindow && !IsForeground(); }

std::string Input::Read() {
  std::string bytes(kWindow - unread_, '\0');
  const ssize_t count = read(fd_, bytes.data(), bytes.size());
  // A descriptor that cannot be read (closed, a directory) is at its end.
  if (count <= 0) {
    open_ = false;
    return {};
  }
  bytes.resize(static_cast<size_t>(count));
  unread_ += bytes.size();
  return bytes;
}

}  // namespace weft::pmi
