#ifndef PMI_LAUNCH_CONNECTION_H_
#define PMI_LAUNCH_CONNECTION_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "pmi/launch/frame.h"
#include "transport/silent_peer.h"

namespace weft::pmi {

// Bytes to be written to a descriptor that may not accept them at once.
class Outbox {
 public:
  void Add(std::string_view bytes) { bytes_.append(bytes); }
  bool empty() const { return bytes_.size() == done_; }
  size_t size() const { return bytes_.size() - done_; }
  void Clear() {
    bytes_.clear();
    done_ = 0;
  }
  // Writes as much as `fd` accepts, at most `most` bytes. Returns 0, or the errno after which further attempts are
  // useless (not EAGAIN or EINTR).
  int WriteTo(int fd, size_t most = SIZE_MAX);

 private:
  std::string bytes_;
  size_t done_ = 0;
};

// Numbers of frames and of their bytes since the beginning.
struct Traffic {
  uint64_t sent = 0, sent_bytes = 0, received = 0, received_bytes = 0;
  Traffic& operator+=(const Traffic& other) {
    sent += other.sent;
    sent_bytes += other.sent_bytes;
    received += other.received;
    received_bytes += other.received_bytes;
    return *this;
  }
};

// A host that has not answered for this long is gone.
inline constexpr std::chrono::seconds kSilence{30};
inline constexpr std::chrono::seconds kSilenceLook{5};  // between two checks of all connections

// One end of the stream of frames between mpiexec and a proxy. Owns the descriptor, and makes it non-blocking.
class Connection {
 public:
  explicit Connection(int fd);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd() const { return fd_; }
  void Send(const Frame& frame);
  const Traffic& traffic() const { return traffic_; }
  bool wants_to_write() const { return !out_.empty(); }
  size_t unsent() const { return out_.size(); }
  // Both return false if the other end is gone.
  bool Write();
  bool Read();
  std::optional<Frame> Next();
  bool broken() const { return in_.failed(); }  // the received data is not a frame
  // Ends the connection if the other end's host is gone; the connection then appears closed. Call it every few seconds.
  // For TCP sockets that ConfigureTcp() (greeting.h) has set up; on an idle connection the kernel detects it.
  void LookForPeer(std::chrono::steady_clock::time_point now);
  // Waits until all data is sent, at most `milliseconds`.
  void Drain(int milliseconds);

 private:
  const int fd_;
  Outbox out_;
  FrameReader in_;
  Traffic traffic_;
  transport::SilentPeer peer_{kSilence};
};

// Reads available data, at most `most` bytes. Returns the number of bytes, 0 at the end of the stream, or -errno
// (-EAGAIN: nothing now).
long ReadSome(int fd, char* into, size_t most);

void SetNonBlocking(int fd);
void SetCloseOnExec(int fd);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_CONNECTION_H_
