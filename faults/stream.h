#ifndef FAULTS_STREAM_H_
#define FAULTS_STREAM_H_

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "faults/injector.h"
#include "transport/network.h"

namespace weft::faults {

// What a connection is, for selectors and for log lines.
struct ConnectionInfo {
  uint32_t qp = 0;
  std::string device;
  bool crc = false;            // its frames have CRCs
  // What the two ends say to each other before the connection stands is never touched or counted: so many bytes, or all of the first
  // write.
  size_t start_up_bytes = 0;
  bool start_up_write = false;
};

// Whether any fault that works on bytes may concern such a connection, now. Counts nothing.
bool ConcernsStream(const ConnectionInfo& info, const transport::SocketAddress& peer);
// Whether such a connection needs CRC, so that what is corrupted is found.
bool WantsCrc(const ConnectionInfo& info, const transport::SocketAddress& peer);

// A stream on which faults of the connection's bytes happen: cut, reset, blackhole, delay, bandwidth, corrupt, and a port that is
// down. It keeps what it may not hand on yet; nothing that was written is lost unless the connection ends.
//
// Time is the network's, so that it works in virtual time as well. As any stream it is used by one thread at a time; its owner calls
// Read() or Write() when `wake` asked for it, and asks the network for readiness only of what is not held.
class FaultyStream final : public transport::ByteStream {
 public:
  // `wake`: called by the network's timers, without locks; the owner then calls Read() as if the stream were ready. `network`
  // outlives the stream. Faults are chosen now.
  FaultyStream(std::unique_ptr<transport::ByteStream> stream, ConnectionInfo info, transport::Network& network,
               std::function<void()> wake);
  ~FaultyStream() override;

  // The plan changed: what is no longer in it ends, what is new begins.
  void Reselect();

  // What readiness of the socket its owner waits for, when `blocked` by a Write() that moved nothing: not for what is held anyway.
  bool wants_read() const { return gate_ == Gate::kOpen; }
  bool wants_write(bool blocked) const { return socket_full_ || (blocked && gate_ == Gate::kOpen && queue_.empty()); }

  // Ends being a decorator: the stream below, with what is still to be written to it put before `rest`; nullptr when the connection was
  // reset by a fault, or must end without a word. The object is of no use after it.
  std::unique_ptr<transport::ByteStream> Release(std::vector<uint8_t>& rest);

  transport::IoResult Read(std::span<const iovec> into) override;
  transport::IoResult Write(std::span<const iovec> from) override;
  int ConnectError() override { return stream_->ConnectError(); }
  void ShutdownWrite() override;
  void Abort() override;
  size_t SegmentSize() const override { return stream_->SegmentSize(); }
  transport::SocketAddress LocalAddress() const override { return stream_->LocalAddress(); }
  transport::SocketAddress PeerAddress() const override { return stream_->PeerAddress(); }
  int fd() const override { return stream_->fd(); }
  void Annotate(const std::string& comment) override { stream_->Annotate(comment); }
  transport::ByteStream& Innermost() override { return stream_->Innermost(); }

 private:
  using Time = transport::Time;
  enum class Gate : uint8_t { kOpen, kShut };
  enum class End : uint8_t { kNone, kCut, kReset, kGivenUp };

  // A fault that was chosen for this connection.
  struct Armed {
    std::shared_ptr<ActiveFault> active;
    Time from{};          // after=
    bool struck = false;  // logged and counted
    Time struck_at{};
    bool over = false;
  };
  struct Chunk {
    Time due;
    std::vector<uint8_t> bytes;
  };

  const Fault& Of(const Armed& armed) const { return armed.active->fault; }
  void Select(Kind kind, const Place& place);
  // Brings gate, delay and rate up to date, ends the connection if it is time; then writes what is due.
  void Advance();
  void UpdateFaults(Time now);
  bool IsDue(const Armed& armed, Time now) const;
  bool Strike(Armed& armed, Time now);
  // How many bytes may pass until a fault by bytes strikes.
  uint64_t UntilByteFault() const;
  void Pump(Time now);
  void Passed(size_t bytes);
  void EndConnection(End how);
  transport::IoResult EndResult(bool reading) const;
  transport::IoResult WriteThrough(std::span<const iovec> from);
  transport::IoResult WriteCorrupted(std::span<const iovec> from, size_t bytes);
  transport::IoResult Enqueue(std::span<const iovec> from, Time now);
  Armed* CorruptDue();
  Duration DelayNow(Time now);
  void WakeAt(Time when);
  std::string Where(const std::string& what) const;

  std::unique_ptr<transport::ByteStream> stream_;
  ConnectionInfo info_;
  transport::Network& network_;
  // Shared with timers, which may fire while the stream is destroyed.
  struct Waker {
    std::mutex mutex;
    std::function<void()> wake;
    Time armed = Time::max();
  };
  std::shared_ptr<Waker> waker_;
  const Time established_;

  std::vector<Armed> armed_;
  Gate gate_ = Gate::kOpen;
  End end_ = End::kNone;
  uint64_t bits_per_second_ = 0;  // the least of those in force; 0: no limit
  Time may_send_from_{};          // bandwidth
  uint64_t passed_ = 0;
  std::deque<Chunk> queue_;
  size_t queued_ = 0;
  bool socket_full_ = false;
  bool fin_asked_ = false, fin_sent_ = false;
};

}  // namespace weft::faults

#endif  // FAULTS_STREAM_H_
