#ifndef WIRES_SCTP_TESTING_TWO_ENDS_H_
#define WIRES_SCTP_TESTING_TWO_ENDS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/buffer_pool.h"
#include "base/check.h"
#include "transport/sctp/testing/virtual_sctp.h"
#include "wires/sctp/association/association.h"

namespace weft::sctp::testing {

// Two hosts in virtual time, a client and a listening server, and the associations between them.
class TwoEnds {
 public:
  static constexpr uint16_t kPort = 5043, kUdpPort = 9899;

  explicit TwoEnds(uint64_t seed, std::optional<uint32_t> server_says = 1)
      : world_(seed),
        client_(world_.AddHost({"10.1.0.1"}, 1500, kUdpPort)),
        server_(world_.AddHost({"10.1.0.2"}, 1500, kUdpPort)) {
    auto listener =
        server_.Listen(*transport::SocketAddress::Parse("10.1.0.2", kPort), 16, {.adaptation = server_says});
    WEFT_CHECK(listener.ok());
    listener_ = std::move(*listener);
    listener_->Watch(std::make_shared<Acceptor>(*this));
  }

  // The client's end, not up yet. When it is up, the server's end is in `accepted`.
  std::shared_ptr<Association> Connect() {
    transport::sctp::Peer peer{.addresses = {*transport::SocketAddress::Parse("10.1.0.2", kPort)},
                               .udp_port = kUdpPort};
    auto association = client_.Connect(peer, 0, {.adaptation = 1});
    WEFT_CHECK(association.ok());
    return Association::Make(network(), pool_, std::move(*association), /*initiator=*/true);
  }
  // Both ends, up.
  std::pair<std::shared_ptr<Association>, std::shared_ptr<Association>> ConnectBoth() {
    const size_t before = accepted.size();
    auto client = Connect();
    WEFT_CHECK(Until([&] { return StateOf(*client) == Association::State::kUp && accepted.size() > before; }));
    WEFT_CHECK(Until([&] { return StateOf(*accepted.back()) == Association::State::kUp; }));
    return {std::move(client), accepted.back()};
  }

  static Association::State StateOf(Association& association) {
    const Association::Lock lock(association);
    return association.state();
  }
  static ddp::sctp::SessionState StateOf(const Seat& seat) {
    const Association::Lock lock(seat.association());
    return seat.session().state();
  }
  bool Until(const std::function<bool()>& done, transport::Duration most = std::chrono::seconds(60)) {
    return network().RunUntil(done, most);
  }
  sim::VirtualNetwork& network() { return world_.network(); }
  BufferPool& pool() { return pool_; }

 private:
  class Acceptor final : public transport::ReadyHandler {
   public:
    explicit Acceptor(TwoEnds& ends) : ends_(ends) {}
    void OnReady(transport::Interest) override {
      while (true) {
        auto association = ends_.listener_->Accept();
        if (!association.ok()) return;
        ends_.accepted.push_back(
            Association::Make(ends_.network(), ends_.pool_, std::move(*association), /*initiator=*/false));
      }
    }

   private:
    TwoEnds& ends_;
  };

  BufferPool pool_;
  transport::sctp::VirtualSctp world_;
  transport::sctp::Sctp& client_;
  transport::sctp::Sctp& server_;
  std::unique_ptr<transport::sctp::Listener> listener_;

 public:
  std::vector<std::shared_ptr<Association>> accepted;  // destroyed before the world
};

}  // namespace weft::sctp::testing

#endif  // WIRES_SCTP_TESTING_TWO_ENDS_H_
