#ifndef FAULTS_STREAM_H_
#define FAULTS_STREAM_H_

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "faults/connection_faults.h"
#include "transport/network.h"

namespace weft::faults {

// The start-up of a connection is never changed or counted: a number of bytes, or the whole first write.
struct StartUp {
  size_t bytes = 0;
  bool first_write = false;
};

// A stream with faults: cut, reset, blackhole, delay, bandwidth, corrupt, and a port that is down. It keeps data that
// may not pass yet. No written data is lost unless the connection ends.
//
// Uses the network's time, so it also works in virtual time. Like any stream it is used by one thread at a time. The
// owner calls Read() or Write() when `wake` asked for it, and waits for readiness only of what is not held.
class FaultyStream final : public transport::ByteStream {
 public:
  // `wake`: called by the network's timers, without locks; the owner then calls Read() as if the stream were ready.
  // `network` outlives the stream. The faults are chosen now.
  FaultyStream(std::unique_ptr<transport::ByteStream> stream, ConnectionInfo info, StartUp start_up, transport::Network& network,
               std::function<void()> wake);
  ~FaultyStream() override;

  // The plan has changed: ends the faults that are no longer in it, and begins the new ones.
  void Reselect();

  // The socket readiness that the owner must wait for; `blocked`: a Write() moved nothing. Not for data that is held
  // anyway.
  bool wants_read() const { return !faults_.shut(); }
  bool wants_write(bool blocked) const { return socket_full_ || (blocked && !faults_.shut() && queue_.empty()); }

  // Ends the decoration. Returns the stream below, and puts data that is still to be written in front of `rest`.
  // Returns nullptr if a fault has reset the connection, or it must end silently. The object may not be used
  // afterwards.
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
  // Updates the faults, and ends the connection if it is time; then writes the data that is due.
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

  Time may_send_from_{};  // for bandwidth
  std::deque<Chunk> queue_;
  size_t queued_ = 0;
  bool socket_full_ = false;
  bool fin_asked_ = false, fin_sent_ = false;
};

}  // namespace weft::faults

#endif  // FAULTS_STREAM_H_
