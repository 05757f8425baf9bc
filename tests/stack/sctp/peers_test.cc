// Who is at the other end of an association of a listener, or an initiator: one that says nothing, one that knows RFC 5043 alone, one
// that is of another kind, one that has no stream left, one that goes.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ddp/sctp/chunk.h"
#include "tests/stack/sctp/two_hosts.h"
#include "transport/sctp/testing/recorder.h"
#include "transport/sctp/testing/virtual_sctp.h"
#include "wires/sctp/association/association.h"
#include "wires/sctp/handshake/incoming.h"
#include "wires/sctp/handshake/wire.h"
#include "wires/sctp/locator/locator.h"

namespace weft::sim {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using testing::Program;
using transport::SocketAddress;
using transport::sctp::Recorder;

using SctpPeers = testing::TwoSctpHosts;
using ddp::sctp::kAdaptationIndication;

TEST_F(SctpPeers, SoManyQueuePairsAsThereAreStreamsShareAnAssociation) {
  Listen();
  std::vector<std::pair<std::unique_ptr<Program>, std::unique_ptr<Program>>> pairs;
  for (size_t i = 1; i <= 9; ++i) {
    pairs.emplace_back(std::make_unique<Program>(*client_host_.rnic), std::make_unique<Program>(*server_host_.rnic));
    ASSERT_TRUE(ConnectBoth(*pairs.back().first, *pairs.back().second));
    EXPECT_EQ(client_host_.wire->associations_made(), (i + 3) / 4);
  }
}

TEST_F(SctpPeers, ManyThatConnectAtOnceAllFindAStream) {
  Listen();
  constexpr size_t kMany = 100;  // at 4 streams an association
  std::vector<std::unique_ptr<Program>> clients, servers;
  for (size_t i = 0; i < kMany; ++i) {
    clients.push_back(std::make_unique<Program>(*client_host_.rnic));
    servers.push_back(std::make_unique<Program>(*server_host_.rnic));
    ASSERT_EQ(Connect(*clients.back(), server_host_.At(kPort)), 0);
  }
  for (size_t i = 0; i < kMany; ++i) {
    CmEvent request = Next(*server_);
    ASSERT_NE(request.endpoint, nullptr) << i;
    request.endpoint->SetObserver(servers[i]->cm);
    ASSERT_EQ(request.endpoint->Accept(servers[i]->qp.handle(), {.ird = 2, .ord = 9}), 0);
  }
  for (const auto& client : clients) EXPECT_EQ(Next(*client).kind, CmEvent::Kind::kEstablished);
  EXPECT_EQ(client_host_.wire->associations_made(), kMany / 4);
}

// A listener takes over associations as soon as it is made, and who made it watches it a little later, on another thread.
TEST_F(SctpPeers, WhoAsksBeforeTheListenerIsWatchedIsHeardOfThen) {
  const auto listener = server_host_.wire->Listen(server_host_.At(kPort), 4, false, false).value();
  Program client(*client_host_.rnic);
  ASSERT_EQ(Connect(client, server_host_.At(kPort)), 0);
  world_.network().RunFor(1s);
  struct Handler final : transport::ReadyHandler {
    void OnReady(transport::Interest) override { ++calls; }
    int calls = 0;
  };
  const auto handler = std::make_shared<Handler>();
  listener->Watch(handler);
  world_.network().RunFor(1s);
  EXPECT_EQ(handler->calls, 1);
  EXPECT_TRUE(listener->Accept().ok());
}

TEST_F(SctpPeers, WhoIsSilentForEverIsGivenUp) {
  world_.network().SetDefaultLink({.lose_datagram = 1});
  Program client(*client_host_.rnic);
  ASSERT_EQ(Connect(client, server_host_.At(kPort)), 0);
  const CmEvent event = Next(client);
  EXPECT_EQ(event.kind, CmEvent::Kind::kUnreachable);
  EXPECT_EQ(event.error, ETIMEDOUT);
}

TEST_F(SctpPeers, AnotherUdpPortIsAnotherProcessThoughTheAssociationToTheFormerOneIsStillThere) {
  Listen();
  const auto first = client_host_.wire->Reach(client_host_.at, server_host_.At(kPort), 9899).value();
  EXPECT_EQ(client_host_.wire->Reach(client_host_.at, server_host_.At(kPort), 9899).value(), first);
  EXPECT_NE(client_host_.wire->Reach(client_host_.at, server_host_.At(kPort), 9900).value(), first);
}

TEST_F(SctpPeers, AssociationsOnWhichNobodyAsksForASessionEnd) {
  Listen();
  std::vector<std::shared_ptr<Recorder>> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(Bare(client_host_));
  world_.network().RunFor(sctp::Incoming::kIdleLimit - 2s);
  EXPECT_EQ(CountOver(silent), 0u);
  Program client(*client_host_.rnic), server(*server_host_.rnic);
  ASSERT_TRUE(ConnectBoth(client, server));
  world_.network().RunFor(10s);
  EXPECT_EQ(CountOver(silent), silent.size());
  world_.network().RunFor(60s);
  EXPECT_TRUE(client.cm->events.empty()) << "one with a session stays";
}

TEST_F(SctpPeers, OfTooManyIdleAssociationsTheOldestGiveWay) {
  Listen();
  std::vector<std::shared_ptr<Recorder>> silent;
  for (size_t i = 0; i < sctp::Incoming::kMostIdle + 40; ++i) {
    silent.push_back(Bare(client_host_));
    world_.network().RunFor(10ms);
  }
  world_.network().RunFor(1s);
  EXPECT_EQ(CountOver(silent), 40u);
  EXPECT_TRUE(silent.front()->over());
  Program client(*client_host_.rnic), server(*server_host_.rnic);
  EXPECT_TRUE(ConnectBoth(client, server)) << "there is room for who means it";
}

TEST_F(SctpPeers, RequestsThatTheProgramHasTakeNoPlaceInTheBacklog) {
  server_->listener = server_host_.rnic->cm().Listen(server_host_.At(kPort), 1, false, true, server_->cm).value();
  std::vector<std::unique_ptr<Program>> clients;
  std::vector<std::shared_ptr<Endpoint>> kept;
  for (int i = 0; i < 6; ++i) {  // of two associations
    clients.push_back(std::make_unique<Program>(*client_host_.rnic));
    ASSERT_EQ(Connect(*clients.back(), server_host_.At(kPort)), 0);
    kept.push_back(Next(*server_, 10s).endpoint);
    ASSERT_NE(kept.back(), nullptr) << "request " << i << " did not reach the program";
    kept.back()->SetObserver(clients.back()->cm);  // as rdma_get_cm_event does
  }
}

TEST_F(SctpPeers, WithoutDdpsAdaptationIndicationAnAssociationIsAborted) {
  Listen();
  std::vector<std::shared_ptr<Recorder>> others{Bare(client_host_, std::nullopt), Bare(client_host_, 2), Bare(client_host_, 0)};
  world_.network().RunFor(1s);
  EXPECT_EQ(CountOver(others), others.size());
  EXPECT_EQ(others[0]->error, ECONNRESET);
}

TEST_F(SctpPeers, AListenerOfAnotherKindIsLeftByTheInitiator) {
  auto listener = server_host_.sctp.Listen(server_host_.At(kPort), 4, {.adaptation = 7}).value();
  const auto acceptor = transport::sctp::Acceptor::Of(std::move(listener));
  const auto service = sctp::OpenLocatorService(server_host_.network, server_host_.At(kPort), false).value();
  service->Start(server_host_.sctp.udp_port());
  Program client(*client_host_.rnic);
  ASSERT_EQ(Connect(client, server_host_.At(kPort)), 0);
  const CmEvent event = Next(client);
  EXPECT_EQ(event.kind, CmEvent::Kind::kConnectError);
  EXPECT_EQ(event.error, EPROTO);
}

// Two processes of a host may have chosen the same port of SCTP, and who connects second is refused for that.
TEST_F(SctpPeers, WhoIsRefusedTriesAgainFromAnotherPort) {
  auto service = sctp::OpenLocatorService(server_host_.network, server_host_.At(kPort), false).value();
  service->Start(server_host_.sctp.udp_port());
  bool refused = false;
  world_.network().SetDatagramChange([&](std::vector<uint8_t>& bytes) { refused |= bytes.size() > 12 && bytes[12] == 6; });
  Program client(*client_host_.rnic), server(*server_host_.rnic);
  ASSERT_EQ(Connect(client, server_host_.At(kPort)), 0);
  ASSERT_TRUE(world_.network().RunUntil([&] { return refused; }));
  world_.network().SetDatagramChange(nullptr);
  service.reset();
  Listen();
  CmEvent request = Next(*server_);
  ASSERT_EQ(request.kind, CmEvent::Kind::kConnectRequest);
  request.endpoint->SetObserver(server.cm);
  ASSERT_EQ(request.endpoint->Accept(server.qp.handle(), {.ird = 2, .ord = 9}), 0);
  EXPECT_EQ(Next(client).kind, CmEvent::Kind::kEstablished);
  EXPECT_EQ(client_host_.wire->associations_made(), 2u);
}

// Knows no RFC 6581: an Initiate with a function code of it is answered by a Terminate.
class PlainPeer {
 public:
  PlainPeer(transport::sctp::Sctp& sctp, transport::Network& network, const SocketAddress& at)
      : network_(network),
        service_(sctp::OpenLocatorService(network, at, false).value()),
        listener_(sctp.Listen(at, 4, {.adaptation = kAdaptationIndication}).value()) {
    service_->Start(sctp.udp_port());
    listener_->Watch(std::make_shared<Handler>(*this));
  }
  int refused = 0, accepted = 0;

 private:
  class Handler final : public transport::ReadyHandler {
   public:
    explicit Handler(PlainPeer& peer) : peer_(peer) {}
    void OnReady(transport::Interest) override {
      while (true) {
        auto came = peer_.listener_->Accept();
        if (!came.ok()) return;
        auto association = sctp::Association::Make(peer_.network_, peer_.pool_, std::move(*came), /*initiator=*/false);
        const sctp::Association::Lock lock(*association);
        association->SetOnRequest([this, weak = std::weak_ptr(association)] {
          if (const auto alive = weak.lock()) peer_.Answer(*alive);
        });
        peer_.associations_.push_back(std::move(association));
      }
    }

   private:
    PlainPeer& peer_;
  };
  void Answer(sctp::Association& association) {
    std::unique_ptr<sctp::Seat> seat;
    {
      const sctp::Association::Lock lock(association);
      seat = association.TakeRequest();
      if (seat == nullptr) return;
      if (!seat->session().enhanced()) {
        ++accepted;
        EXPECT_TRUE(seat->session().Accept({}));
        seats_.push_back(std::move(seat));
        return;
      }
    }
    ++refused;  // at the end of the seat
  }

  transport::Network& network_;
  BufferPool pool_;
  const std::unique_ptr<sctp::LocatorService> service_;
  std::vector<std::shared_ptr<sctp::Association>> associations_;
  std::vector<std::unique_ptr<sctp::Seat>> seats_;
  std::unique_ptr<transport::sctp::Listener> listener_;
};

TEST_F(SctpPeers, AListenerThatKnowsRfc5043AloneIsAskedInItsWords) {
  PlainPeer peer(server_host_.sctp, server_host_.network, server_host_.At(kPort));
  Program client(*client_host_.rnic);
  ASSERT_EQ(Connect(client, server_host_.At(kPort)), 0);
  const CmEvent event = Next(client);
  EXPECT_EQ(event.kind, CmEvent::Kind::kEstablished);
  EXPECT_GE(peer.refused, 1);
  EXPECT_EQ(peer.accepted, 1);
  client.endpoint->Close();
  world_.network().RunFor(5s);
}

TEST_F(SctpPeers, AnAssociationThatEndsIsTheEndOfEachOfItsQueuePairs) {
  Listen();
  Program one(*client_host_.rnic), other(*client_host_.rnic), its(*server_host_.rnic), others(*server_host_.rnic);
  ASSERT_TRUE(ConnectBoth(one, its));
  ASSERT_TRUE(ConnectBoth(other, others));
  // What a peer sees of a process that is killed.
  world_.network().SetDefaultLink({.lose_datagram = 1});
  EXPECT_EQ(Next(one).kind, CmEvent::Kind::kDisconnected);
  EXPECT_EQ(Next(other).kind, CmEvent::Kind::kDisconnected);
  EXPECT_EQ(Next(its).kind, CmEvent::Kind::kDisconnected);
  EXPECT_EQ(Next(others).kind, CmEvent::Kind::kDisconnected);
  world_.network().SetDefaultLink(LinkFaults());
  Program again(*client_host_.rnic), its_peer(*server_host_.rnic);
  EXPECT_TRUE(ConnectBoth(again, its_peer));
}

}  // namespace
}  // namespace weft::sim
