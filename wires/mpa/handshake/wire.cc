#include "wires/mpa/handshake/wire.h"

#include <cerrno>
#include <utility>

#include "wires/mpa/channel/channel.h"
#include "wires/mpa/handshake/initiator.h"
#include "wires/mpa/handshake/responder.h"
#include "mpa/start_up.h"

namespace weft::mpa {
namespace {

class Listener final : public llp::Listener {
 public:
  Listener(transport::Network& network, BufferPool& pool, const Settings& settings, host::MeetingPoint& meetings,
           std::unique_ptr<transport::Listener> listener)
      : network_(network), pool_(pool), settings_(settings), meetings_(meetings), listener_(std::move(listener)) {}
  ~Listener() override {
    if (watch_ != 0) network_.Unwatch(watch_);
  }

  void Watch(std::shared_ptr<transport::ReadyHandler> handler) override {
    watch_ = network_.Watch(*listener_, std::move(handler));
  }
  Result<std::unique_ptr<llp::Responder>, int> Accept() override {
    auto stream = listener_->Accept();
    if (!stream.ok()) return stream.error();
    return std::unique_ptr<llp::Responder>(
        std::make_unique<Responder>(network_, pool_, settings_, meetings_, std::move(stream.value())));
  }
  transport::SocketAddress LocalAddress() const override { return listener_->LocalAddress(); }

 private:
  transport::Network& network_;
  BufferPool& pool_;
  const Settings& settings_;
  host::MeetingPoint& meetings_;
  const std::unique_ptr<transport::Listener> listener_;
  transport::WatchId watch_ = 0;
};

}  // namespace

Result<std::unique_ptr<llp::Initiator>, int> Wire::Connect(const transport::SocketAddress& local,
                                                           const transport::SocketAddress& remote, llp::Proposal ours) {
  if (ours.private_data.size() > PrivateDataRoom(settings_.mpa_revision >= 2)) return EINVAL;
  return std::unique_ptr<llp::Initiator>(
      std::make_unique<Initiator>(network_, pool_, settings_, meetings_, local, remote, std::move(ours)));
}

Result<std::unique_ptr<llp::Listener>, int> Wire::Listen(const transport::SocketAddress& local, int backlog,
                                                         bool only_v6, bool reuse_address) {
  auto listener = network_.Listen(local, backlog, only_v6, reuse_address);
  if (!listener.ok()) return listener.error();
  return std::unique_ptr<llp::Listener>(
      std::make_unique<Listener>(network_, pool_, settings_, meetings_, std::move(listener.value())));
}

Result<std::unique_ptr<llp::Channel>, int> Wire::OpenLoop(const transport::SocketAddress& local,
                                                          const llp::Proposal& ours) {
  auto stream = network_.OpenLoop(local);
  if (!stream.ok()) return stream.error();
  ChannelOptions options{.initiator = true,
                         .crc = settings_.crc == CrcPolicy::kOn,
                         .send_markers = settings_.markers,
                         .receive_markers = settings_.markers,
                         .max_ulpdu = kLargestUlpdu,
                         .queue_pair = ours.queue_pair,
                         .device = ours.device};
  return std::unique_ptr<llp::Channel>(
      std::make_unique<Channel>(network_, pool_, std::move(stream.value()), std::move(options)));
}

}  // namespace weft::mpa
