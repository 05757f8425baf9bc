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

// Bytes on their way to a descriptor that may not take them at once.
class Outbox {
 public:
  void Add(std::string_view bytes) { bytes_.append(bytes); }
  bool empty() const { return bytes_.size() == done_; }
  size_t size() const { return bytes_.size() - done_; }
  void Clear() {
    bytes_.clear();
    done_ = 0;
  }
  // Writes what `fd` takes, at most `most` bytes. 0, or the errno that makes further attempts senseless (EAGAIN and EINTR do
  // not).
  int WriteTo(int fd, size_t most = SIZE_MAX);

 private:
  std::string bytes_;
  size_t done_ = 0;
};

// Frames, and their bytes, since the beginning.
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

// A host that has answered nothing for so long is gone.
inline constexpr std::chrono::seconds kSilence{30};
inline constexpr std::chrono::seconds kSilenceLook{5};  // between two looks at all connections

// One end of the stream of frames between mpiexec and a proxy. Owns the descriptor, which it makes non-blocking.
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
  // Both return false when the other end is gone.
  bool Write();
  bool Read();
  std::optional<Frame> Next();
  bool broken() const { return in_.failed(); }  // what came is no frame
  // Ends the connection where the other end's host is gone, which shows as its end; every few seconds. For sockets of TCP, as ConfigureTcp()
  // makes them (greeting.h): where nothing is under way the kernel does it.
  void LookForPeer(std::chrono::steady_clock::time_point now);
  // Waits until all is sent, for `milliseconds` at most.
  void Drain(int milliseconds);

 private:
  const int fd_;
  Outbox out_;
  FrameReader in_;
  Traffic traffic_;
  transport::SilentPeer peer_{kSilence};
};

// Reads what is there, at most `most` bytes: the number, 0 at the end of the stream, or -errno (-EAGAIN: nothing now).
long ReadSome(int fd, char* into, size_t most);

void SetNonBlocking(int fd);
void SetCloseOnExec(int fd);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_CONNECTION_H_
