#ifndef SIM_NET_VIRTUAL_ENDPOINTS_H_
#define SIM_NET_VIRTUAL_ENDPOINTS_H_

#include <deque>
#include <functional>
#include <memory>

#include "base/result.h"
#include "sim/net/connection.h"
#include "transport/network.h"

namespace weft::sim {

// The handle of one end of a connection.
class VirtualStream : public transport::ByteStream {
 public:
  VirtualStream(std::shared_ptr<VirtualConnection> connection, VirtualConnection::End end)
      : connection_(std::move(connection)), end_(end) {}
  ~VirtualStream() override { connection_->Close(end_); }

  IoResult Read(std::span<const iovec> into) override { return connection_->Read(end_, into); }
  IoResult Write(std::span<const iovec> from) override { return connection_->Write(end_, from); }
  int ConnectError() override { return connection_->ConnectError(end_); }
  void ShutdownWrite() override { connection_->ShutdownWrite(end_); }
  void Abort() override { connection_->Abort(end_); }
  size_t SegmentSize() const override { return connection_->SegmentSize(end_); }
  SocketAddress LocalAddress() const override { return connection_->AddressOf(end_); }
  SocketAddress PeerAddress() const override { return connection_->AddressOf(VirtualConnection::Other(end_)); }

  Interest Ready() const { return connection_->Ready(end_); }
  // The identity that the network's watches use.
  const void* source() const { return SourceOf(*connection_, end_); }
  static const void* SourceOf(const VirtualConnection& connection, VirtualConnection::End end) {
    return reinterpret_cast<const char*>(&connection) + end;
  }

 private:
  const std::shared_ptr<VirtualConnection> connection_;
  const VirtualConnection::End end_;
};

// A listening port, and the connections that wait there.
class VirtualListener : public transport::Listener {
 public:
  // `gone` is called on destruction.
  VirtualListener(const void* host, const SocketAddress& local, int backlog, bool only_v6,
                  std::function<void(VirtualListener*)> gone)
      : host_(host), local_(local), backlog_(backlog), only_v6_(only_v6), gone_(std::move(gone)) {}
  // Resets waiting connections.
  ~VirtualListener() override {
    for (auto& connection : waiting_) {
      connection->Abort(VirtualConnection::kAcceptor);
      connection->Close(VirtualConnection::kAcceptor);
    }
    gone_(this);
  }

  Result<std::unique_ptr<transport::ByteStream>, int> Accept() override {
    if (waiting_.empty()) return EAGAIN;
    std::unique_ptr<transport::ByteStream> stream =
        std::make_unique<VirtualStream>(std::move(waiting_.front()), VirtualConnection::kAcceptor);
    waiting_.pop_front();
    return stream;
  }
  SocketAddress LocalAddress() const override { return local_; }

  // Whether a connection to `address` on `host` arrives here.
  bool Takes(const void* host, const SocketAddress& address) const;
  // Whether both listeners cannot exist at the same time.
  bool CollidesWith(const void* host, const SocketAddress& address, bool only_v6) const;
  // Returns false if the backlog is full.
  bool Offer(std::shared_ptr<VirtualConnection> connection);
  bool has_waiting() const { return !waiting_.empty(); }

 private:
  const void* const host_;
  const SocketAddress local_;
  const int backlog_;
  const bool only_v6_;
  const std::function<void(VirtualListener*)> gone_;
  std::deque<std::shared_ptr<VirtualConnection>> waiting_;
};

}  // namespace weft::sim

#endif  // SIM_NET_VIRTUAL_ENDPOINTS_H_
