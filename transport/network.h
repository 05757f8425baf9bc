#ifndef TRANSPORT_NETWORK_H_
#define TRANSPORT_NETWORK_H_

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "transport/datagram_socket.h"
#include "transport/socket_address.h"

// The services that the RNIC uses: byte streams, listeners, readiness, timers and time. TcpNetwork implements them with
// kernel sockets and epoll, sim/net's VirtualNetwork with queues in virtual time.
namespace weft::transport {

using Duration = std::chrono::nanoseconds;
using Time = std::chrono::time_point<std::chrono::steady_clock, Duration>;

// Result of one non-blocking read or write.
struct IoResult {
  enum class Kind : uint8_t {
    kDone,         // `bytes` > 0 were moved
    kWouldBlock,   // nothing now; wait for readiness
    kEndOfStream,  // read only: the peer closed its direction in order
    kFailed,       // `error` is an errno; the stream is dead
  };
  Kind kind = Kind::kWouldBlock;
  size_t bytes = 0;
  int error = 0;
};

// A connected (or connecting) bidirectional byte stream. Destruction closes it (in order, unless Abort was called).
// One thread at a time; the owner serialises.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  virtual IoResult Read(std::span<const iovec> into) = 0;
  virtual IoResult Write(std::span<const iovec> from) = 0;
  // After a stream from StartConnect is ready for writing: 0 if it is established, otherwise an errno. EINPROGRESS: not
  // yet.
  virtual int ConnectError() = 0;
  virtual void ShutdownWrite() = 0;  // FIN after what was written
  virtual void Abort() = 0;          // RST now; later reads and writes fail
  // Maximum payload of one segment on the path, in bytes (TCP: TCP_MAXSEG).
  virtual size_t SegmentSize() const = 0;
  virtual SocketAddress LocalAddress() const = 0;
  virtual SocketAddress PeerAddress() const = 0;
  // The kernel's file descriptor, or -1 if there is none.
  virtual int fd() const { return -1; }
  // Adds a comment on the stream for readers of a capture. A capturing decorator shows it with the next packet.
  virtual void Annotate(const std::string&) {}
  // The stream that the network made. A decorator returns that of the stream that it wraps.
  virtual ByteStream& Innermost() { return *this; }
};

class Listener {
 public:
  virtual ~Listener() = default;
  // A new stream, or an errno (EAGAIN: none pending).
  virtual Result<std::unique_ptr<ByteStream>, int> Accept() = 0;
  virtual SocketAddress LocalAddress() const = 0;
  virtual int fd() const { return -1; }
};

// The readiness that a watcher waits for, or has.
struct Interest {
  bool read = false;
  bool write = false;
  bool operator==(const Interest&) const = default;
};

// Called on the network's thread, without the network's locks; may call the network. A call may still be running when
// Unwatch returns on another thread: the shared_ptr keeps the handler alive, and the handler must allow for that.
class ReadyHandler {
 public:
  virtual ~ReadyHandler() = default;
  virtual void OnReady(Interest ready) = 0;
  // The same, called by WatchGroup::Drive on the driving thread.
  virtual void OnDriven(Interest ready, bool /*spinning*/) { OnReady(ready); }
};

// Identifiers of a watch and of a timer; never reused. 0: none.
using WatchId = uint64_t;
using TimerId = uint64_t;

// Watches that a thread of the program examines itself: one system call tells what is ready among any number of them.
// The network's own thread watches them as well. Thread safe. When the group is destroyed, only the network has the
// watches.
class WatchGroup {
 public:
  virtual ~WatchGroup() = default;
  // Adds a watch until Unwatch. A watch may be in several groups. Returns false if it was not added (no such watch, or
  // the kernel is out of memory).
  virtual bool Add(WatchId id) = 0;
  // Calls OnDriven() for everything that is ready now. Returns whether there was anything. `spinning`: the call will be
  // repeated at once, so the group is lent as described at Network::Lend().
  virtual bool Drive(bool spinning) = 0;
  virtual void Lend() = 0;
};

class Network {
 public:
  virtual ~Network() = default;

  // All of these may be called from any thread.
  //
  // Starts to connect; never blocks. `local` may be the wildcard. When the stream is ready for writing, ConnectError()
  // tells the outcome. The error is an errno (such as ENETUNREACH, EADDRNOTAVAIL).
  virtual Result<std::unique_ptr<ByteStream>, int> StartConnect(const SocketAddress& local,
                                                                const SocketAddress& remote) = 0;
  // A stream connected to itself: what is written is read again. `local`: an address of this host, port 0. It may not
  // be connected yet; reads and writes then would block. EOPNOTSUPP: this network has none.
  virtual Result<std::unique_ptr<ByteStream>, int> OpenLoop(const SocketAddress& /*local*/) { return EOPNOTSUPP; }
  // Errors: EADDRINUSE, EADDRNOTAVAIL, EACCES ... . `only_v6` for the IPv6 wildcard.
  virtual Result<std::unique_ptr<Listener>, int> Listen(const SocketAddress& local, int backlog, bool only_v6,
                                                        bool reuse_address) = 0;

  // A UDP socket bound to `local`; port 0: one is chosen. Errors: EADDRINUSE, EADDRNOTAVAIL, EACCES, EAFNOSUPPORT ...;
  // EOPNOTSUPP: this network has no datagrams.
  virtual Result<std::unique_ptr<DatagramSocket>, int> OpenDatagram(const SocketAddress& /*local*/,
                                                                    const DatagramOptions& /*options*/) {
    return EOPNOTSUPP;
  }

  // Level-triggered readiness. An end of stream or an error counts as readable and writable.
  virtual WatchId Watch(ByteStream& stream, Interest interest, std::shared_ptr<ReadyHandler> handler) = 0;
  virtual WatchId Watch(Listener& listener, std::shared_ptr<ReadyHandler> handler) = 0;
  virtual WatchId Watch(DatagramSocket& /*socket*/, Interest /*interest*/, std::shared_ptr<ReadyHandler> /*handler*/) { return 0; }
  // Watches a descriptor of the caller for reading; returns 0 if the network has no descriptors.
  virtual WatchId WatchDescriptor(int /*fd*/, std::shared_ptr<ReadyHandler> /*handler*/) { return 0; }
  virtual void SetInterest(WatchId id, Interest interest) = 0;
  // Call Unwatch before the stream is destroyed.
  virtual void Unwatch(WatchId id) = 0;

  virtual Time Now() = 0;
  // Runs `work` once on the network's thread. Cancel returns false if the work has run, is running, or never existed.
  virtual TimerId RunAt(Time when, std::function<void()> work) = 0;
  virtual bool Cancel(TimerId id) = 0;
  // Wakes the network's thread and runs `work` there soon.
  virtual void Post(std::function<void()> work) = 0;

  // A thread that spins for its program calls this: it calls the handlers of everything that is ready now. While the
  // calls continue, and for less than a millisecond after the last one, the network's own thread examines no socket (a
  // second thread would only take the processor from the first). Returns whether anything was ready. The caller must
  // not hold a lock that a handler takes.
  virtual bool DriveInline() { return false; }

  // The driving thread is about to sleep: the network's own thread examines the sockets again at once.
  virtual void EndDrive() {}
  // A thread that drives inline and reads the stream of this watch itself, in a loop, calls this in each round. The
  // network then need not watch the stream, which would cost a pass through epoll for every arriving segment. It is
  // watched again after EndDrive(), or less than a millisecond after the last Lend(). Calls no handler.
  virtual void Lend(WatchId) {}

  // nullptr: no descriptor is left for a group, or this network has no groups.
  virtual std::unique_ptr<WatchGroup> MakeGroup() { return nullptr; }
};

}  // namespace weft::transport

#endif  // TRANSPORT_NETWORK_H_
