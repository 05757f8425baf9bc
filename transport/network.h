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

// What the RNIC asks of the world: byte streams, listeners, readiness, timers, time. TcpNetwork implements it with kernel
// sockets and epoll, sim/net's VirtualNetwork with queues in virtual time.
namespace weft::transport {

using Duration = std::chrono::nanoseconds;
using Time = std::chrono::time_point<std::chrono::steady_clock, Duration>;

// Outcome of one non-blocking read or write.
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
  // After readiness for writing on a stream from StartConnect: 0 when established, else the errno. EINPROGRESS: not yet.
  virtual int ConnectError() = 0;
  virtual void ShutdownWrite() = 0;  // FIN after what was written
  virtual void Abort() = 0;          // RST now; later reads and writes fail
  // Most payload bytes of one segment of the path (TCP: TCP_MAXSEG).
  virtual size_t SegmentSize() const = 0;
  virtual SocketAddress LocalAddress() const = 0;
  virtual SocketAddress PeerAddress() const = 0;
  // The kernel's file descriptor, or -1 when there is none.
  virtual int fd() const { return -1; }
  // What a reader of a capture is to know of the stream; a decorator that captures shows it with the next packet.
  virtual void Annotate(const std::string&) {}
  // The stream that the network made: a decorator answers with that of the stream it wraps.
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

// Which readiness a watcher wants, or has.
struct Interest {
  bool read = false;
  bool write = false;
  bool operator==(const Interest&) const = default;
};

// Called on the network's thread, without locks of the network held; may call back into the network. A call can be under
// way while Unwatch returns on another thread: the shared_ptr keeps the handler alive, and the handler must cope.
class ReadyHandler {
 public:
  virtual ~ReadyHandler() = default;
  virtual void OnReady(Interest ready) = 0;
  // The same, called by WatchGroup::Drive on the thread that drives.
  virtual void OnDriven(Interest ready, bool /*spinning*/) { OnReady(ready); }
};

// Identify a watch and a timer; never reused. 0 is none.
using WatchId = uint64_t;
using TimerId = uint64_t;

// Watches that a program's thread looks at by itself: what is ready of any number of them costs one system call. The network's own
// thread goes on looking at them. Thread safe. When it goes, its watches are the network's alone again.
class WatchGroup {
 public:
  virtual ~WatchGroup() = default;
  // Until Unwatch; a watch may be in several groups. False: it is not in the group (no such watch, or the kernel is out of memory).
  virtual bool Add(WatchId id) = 0;
  // Calls OnDriven() of what is ready now; whether anything was. `spinning`: it will be called again at once, so that the group is
  // lent as Network::Lend() says.
  virtual bool Drive(bool spinning) = 0;
  virtual void Lend() = 0;
};

class Network {
 public:
  virtual ~Network() = default;

  // All of these may be called from any thread.
  //
  // Starts connecting; never blocks. `local` may be the wildcard. Readiness for writing, then ConnectError(), tells the
  // outcome. The error is an errno (e.g. ENETUNREACH, EADDRNOTAVAIL).
  virtual Result<std::unique_ptr<ByteStream>, int> StartConnect(const SocketAddress& local,
                                                                const SocketAddress& remote) = 0;
  // A stream whose peer is itself: what is written is read again. `local`: a host's own address, port 0. May not be connected yet, then
  // reads and writes would block. EOPNOTSUPP: a network without.
  virtual Result<std::unique_ptr<ByteStream>, int> OpenLoop(const SocketAddress& /*local*/) { return EOPNOTSUPP; }
  // Errors: EADDRINUSE, EADDRNOTAVAIL, EACCES ... . `only_v6` for the IPv6 wildcard.
  virtual Result<std::unique_ptr<Listener>, int> Listen(const SocketAddress& local, int backlog, bool only_v6,
                                                        bool reuse_address) = 0;

  // A UDP socket bound to `local`; port 0: one is chosen. Errors: EADDRINUSE, EADDRNOTAVAIL, EACCES, EAFNOSUPPORT ...; EOPNOTSUPP: a network
  // without datagrams.
  virtual Result<std::unique_ptr<DatagramSocket>, int> OpenDatagram(const SocketAddress& /*local*/,
                                                                    const DatagramOptions& /*options*/) {
    return EOPNOTSUPP;
  }

  // Level-triggered readiness. An end of stream or an error counts as readable and writable.
  virtual WatchId Watch(ByteStream& stream, Interest interest, std::shared_ptr<ReadyHandler> handler) = 0;
  virtual WatchId Watch(Listener& listener, std::shared_ptr<ReadyHandler> handler) = 0;
  virtual WatchId Watch(DatagramSocket& /*socket*/, Interest /*interest*/, std::shared_ptr<ReadyHandler> /*handler*/) { return 0; }
  // A descriptor of the caller's that becomes readable; 0 where the network has no descriptors.
  virtual WatchId WatchDescriptor(int /*fd*/, std::shared_ptr<ReadyHandler> /*handler*/) { return 0; }
  virtual void SetInterest(WatchId id, Interest interest) = 0;
  // Unwatch before the stream is destroyed.
  virtual void Unwatch(WatchId id) = 0;

  virtual Time Now() = 0;
  // `work` runs once on the network's thread. Cancel returns false when it ran, runs, or never was.
  virtual TimerId RunAt(Time when, std::function<void()> work) = 0;
  virtual bool Cancel(TimerId id) = 0;
  // Runs `work` soon on the network's thread (wakes it).
  virtual void Post(std::function<void()> work) = 0;

  // A thread that spins for its program's sake lends itself: calls the handlers of what is ready now. As long as calls keep coming
  // the network's own thread looks at no socket (a second thread would only take the processor away from the first), and
  // for a moment (below a millisecond) after the last one. Returns whether anything was ready. Hold no lock that a handler takes.
  virtual bool DriveInline() { return false; }

  // The thread that drove will sleep: the network's own looks at the sockets again at once.
  virtual void EndDrive() {}
  // A thread that drives inline also reads the stream of this watch itself, over and over, and says so at each round: the network
  // then need not watch it, which would cost every segment that arrives a turn through epoll. Watched again after EndDrive(), or by
  // itself (below a millisecond) after the last Lend(). No handler runs from within.
  virtual void Lend(WatchId) {}

  // Null: there is no descriptor left for one, or it is a network without.
  virtual std::unique_ptr<WatchGroup> MakeGroup() { return nullptr; }
};

}  // namespace weft::transport

#endif  // TRANSPORT_NETWORK_H_
