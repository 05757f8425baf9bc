#ifndef FAULTS_STREAM_H_
#define FAULTS_STREAM_H_

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "faults/connection_faults.h"
#include "transport/network.h"

namespace weft::faults {

// What the two ends say to each other before the connection stands is never touched or counted: so many bytes, or all of the first write.
struct StartUp {
  size_t bytes = 0;
  bool first_write = false;
};

// A stream on which faults of the connection's bytes happen: cut, reset, blackhole, delay, bandwidth, corrupt, and a port that is
// down. It keeps what it may not hand on yet; nothing that was written is lost unless the connection ends.
//
// Time is the network's, so that it works in virtual time as well. As any stream it is used by one thread at a time; its owner calls
// Read() or Write() when `wake` asked for it, and asks the network for readiness only of what is not held.
class FaultyStream final : public transport::ByteStream {
 public:
  // `wake`: called by the network's timers, without locks; the owner then calls Read() as if the stream were ready. `network`
  // outlives the stream. Faults are chosen now.
  FaultyStream(std::unique_ptr<transport::ByteStream> stream, ConnectionInfo info, StartUp start_up, transport::Network& network,
               std::function<void()> wake);
  ~FaultyStream() override;

  // The plan changed: what is no longer in it ends, what is new begins.
  void Reselect();

  // What readiness of the socket its owner waits for, when `blocked` by a Write() that moved nothing: not for what is held anyway.
  bool wants_read() const { return !faults_.shut(); }
  bool wants_write(bool blocked) const { return socket_full_ || (blocked && !faults_.shut() && queue_.empty()); }

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
  using End = ConnectionFaults::End;
  struct Chunk {
    Time due;
    std::vector<uint8_t> bytes;
  };

  bool starting_up() const { return start_up_.bytes != 0 || start_up_.first_write; }
  bool over() const { return faults_.end() != End::kNone; }
  // Brings the faults up to date, ends the connection if it is time; then writes what is due.
  void Advance();
  void Update();
  void Pump(Time now);
  void Passed(size_t bytes);
  void CarryOutEnd();
  transport::IoResult EndResult(bool reading) const;
  transport::IoResult WriteThrough(std::span<const iovec> from);
  transport::IoResult WriteCorrupted(std::span<const iovec> from, size_t bytes);
  transport::IoResult Enqueue(std::span<const iovec> from, Time now, transport::Duration delay);

  std::unique_ptr<transport::ByteStream> stream_;
  StartUp start_up_;
  transport::Network& network_;
  ConnectionFaults faults_;

  Time may_send_from_{};  // bandwidth
  std::deque<Chunk> queue_;
  size_t queued_ = 0;
  bool socket_full_ = false;
  bool fin_asked_ = false, fin_sent_ = false;
};

}  // namespace weft::faults

#endif  // FAULTS_STREAM_H_
