#include "wires/choice/choice.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/net/virtual_network.h"

namespace weft {
namespace {

using std::chrono_literals::operator""ms;
using llp::Progress;
using transport::SocketAddress;
using Kind = llp::Progress::Kind;

// What a wire is to say, and what was asked of it.
struct Script {
  std::string name;
  int begin_error = 0;
  std::deque<Progress> says;  // then nothing
  std::set<uint16_t> taken;   // ports
  std::deque<uint16_t> chosen;
  int listen_error = 0;
  std::deque<int> arrivals;  // at the listener: an errno each, 0: somebody
  std::vector<std::string>* log;
};

class FakeInitiator final : public llp::Initiator {
 public:
  explicit FakeInitiator(Script& script) : script_(script) {}
  int Begin(std::shared_ptr<transport::ReadyHandler> handler) override {
    script_.log->push_back(script_.name + " begins");
    handler_ = std::move(handler);
    return script_.begin_error;
  }
  Progress Advance() override {
    if (script_.says.empty()) return {};
    Progress progress = script_.says.front();
    script_.says.pop_front();
    return progress;
  }
  void Abandon() override { script_.log->push_back(script_.name + " is abandoned"); }
  std::unique_ptr<llp::Channel> TakeChannel() override {
    script_.log->push_back(script_.name + " gives its channel");
    return nullptr;
  }
  const char* missing() const override { return script_.name.c_str(); }
  SocketAddress LocalAddress() const override { return {}; }
  SocketAddress PeerAddress() const override { return {}; }
  bool FallBack() override { return true; }
  void Refuse(const std::function<void(llp::UlpduWriter&)>&) override {}

 private:
  Script& script_;
  std::shared_ptr<transport::ReadyHandler> handler_;
};

class FakeListener final : public llp::Listener {
 public:
  FakeListener(Script& script, SocketAddress local) : script_(script), local_(local) { script_.taken.insert(local_.port()); }
  ~FakeListener() override { script_.taken.erase(local_.port()); }
  void Watch(std::shared_ptr<transport::ReadyHandler>) override { script_.log->push_back(script_.name + " is watched"); }
  Result<std::unique_ptr<llp::Responder>, int> Accept() override {
    if (script_.arrivals.empty()) return EAGAIN;
    const int arrival = std::exchange(script_.arrivals.front(), 0);
    script_.arrivals.pop_front();
    script_.log->push_back(script_.name + " accepts");
    if (arrival != 0) return arrival;
    return std::unique_ptr<llp::Responder>();
  }
  SocketAddress LocalAddress() const override { return local_; }

 private:
  Script& script_;
  const SocketAddress local_;
};

class FakeWire final : public llp::Wire {
 public:
  explicit FakeWire(Script& script) : script_(script) {}
  Result<std::unique_ptr<llp::Initiator>, int> Connect(const SocketAddress&, const SocketAddress&, llp::Proposal) override {
    return std::unique_ptr<llp::Initiator>(std::make_unique<FakeInitiator>(script_));
  }
  Result<std::unique_ptr<llp::Listener>, int> Listen(const SocketAddress& local, int, bool, bool) override {
    if (script_.listen_error != 0) return script_.listen_error;
    SocketAddress at = local;
    if (at.port() == 0) {
      at.set_port(script_.chosen.front());
      script_.chosen.pop_front();
    }
    if (script_.taken.contains(at.port())) return EADDRINUSE;
    return std::unique_ptr<llp::Listener>(std::make_unique<FakeListener>(script_, at));
  }

 private:
  Script& script_;
};

struct Recorder final : transport::ReadyHandler {
  void OnReady(transport::Interest) override { ++calls; }
  int calls = 0;
};

class ChoiceTest : public ::testing::Test {
 protected:
  std::unique_ptr<llp::Wire> Make(Connecting connecting) {
    return MakeChoice(network_, std::make_unique<FakeWire>(sctp_), std::make_unique<FakeWire>(tcp_), connecting);
  }
  std::unique_ptr<llp::Initiator> Connect(Connecting connecting = Connecting::kFirstThenSecond) {
    wire_ = Make(connecting);
    return wire_->Connect({}, {}, {}).value();
  }

  static inline const SocketAddress kAnyPort = *SocketAddress::Parse("10.0.0.1", 0), kPort5 = *SocketAddress::Parse("10.0.0.1", 5);
  std::vector<std::string> log_;
  Script sctp_{.name = "sctp", .log = &log_}, tcp_{.name = "tcp", .log = &log_};
  sim::VirtualNetwork network_{1};
  std::shared_ptr<Recorder> handler_ = std::make_shared<Recorder>();
  std::unique_ptr<llp::Wire> wire_;
};

TEST_F(ChoiceTest, AnInitiatorStaysWhereThePeerWasReached) {
  sctp_.says = {{.kind = Kind::kReached}, {.kind = Kind::kLost, .error = ECONNRESET}};
  const auto initiator = Connect();
  ASSERT_EQ(initiator->Begin(handler_), 0);
  EXPECT_EQ(initiator->Advance().kind, Kind::kReached);
  network_.RunFor(2 * kFirstWireLimit);
  EXPECT_EQ(handler_->calls, 0);
  EXPECT_EQ(initiator->Advance().kind, Kind::kLost) << "what was said there is the peer's word";
  initiator->Abandon();
  ASSERT_EQ(initiator->Begin(handler_), 0);
  EXPECT_EQ(log_, (std::vector<std::string>{"sctp begins", "sctp is abandoned", "sctp begins"}));
}

TEST_F(ChoiceTest, WhereTheFirstFindsNobodyTheSecondIsTriedAndTheNextAttemptBeginsWithTheFirst) {
  sctp_.says = {{}, {.kind = Kind::kUnreachable, .error = ECONNREFUSED}};
  tcp_.says = {{.kind = Kind::kUnreachable, .error = ECONNREFUSED}, {.kind = Kind::kReached}};
  const auto initiator = Connect();
  ASSERT_EQ(initiator->Begin(handler_), 0);
  EXPECT_EQ(initiator->Advance().kind, Kind::kNothing);
  EXPECT_EQ(initiator->Advance().kind, Kind::kNothing);
  EXPECT_EQ(initiator->missing(), std::string("tcp"));
  EXPECT_EQ(initiator->Advance().error, ECONNREFUSED);
  initiator->Abandon();
  sctp_.begin_error = EADDRNOTAVAIL;
  ASSERT_EQ(initiator->Begin(handler_), 0);
  EXPECT_EQ(initiator->Advance().kind, Kind::kReached);
  EXPECT_EQ(log_, (std::vector<std::string>{"sctp begins", "sctp is abandoned", "tcp begins", "tcp is abandoned", "sctp begins",
                                            "tcp begins"}));
}

TEST_F(ChoiceTest, SilenceIsNotWaitedForLong) {
  const auto initiator = Connect();
  ASSERT_EQ(initiator->Begin(handler_), 0);
  network_.RunFor(kFirstWireLimit - 1ms);
  EXPECT_EQ(handler_->calls, 0);
  network_.RunFor(2ms);
  EXPECT_EQ(handler_->calls, 1) << "its owner is to look";
  EXPECT_EQ(initiator->Advance().kind, Kind::kNothing);
  EXPECT_EQ(log_.back(), "tcp begins");
  tcp_.begin_error = EMFILE;
  const auto other = Connect();
  ASSERT_EQ(other->Begin(handler_), 0);
  network_.RunFor(2 * kFirstWireLimit);
  const Progress progress = other->Advance();
  EXPECT_EQ(progress.kind, Kind::kUnreachable);
  EXPECT_EQ(progress.error, EMFILE);
}

TEST_F(ChoiceTest, WithoutAChoiceOnlyTheFirstIsTried) {
  sctp_.says = {{.kind = Kind::kUnreachable, .error = ECONNREFUSED}};
  const auto initiator = Connect(Connecting::kFirst);
  ASSERT_EQ(initiator->Begin(handler_), 0);
  EXPECT_EQ(initiator->Advance().kind, Kind::kUnreachable);
  EXPECT_EQ(log_, (std::vector<std::string>{"sctp begins"}));
}

TEST_F(ChoiceTest, ListenersTakeBothAtOnePort) {
  tcp_.chosen = {7, 8};
  sctp_.taken = {7};
  const auto listener = Make(Connecting::kFirst)->Listen(kAnyPort, 1, false, false).value();
  EXPECT_EQ(listener->LocalAddress().port(), 8);
  EXPECT_EQ(tcp_.taken, (std::set<uint16_t>{8}));
  sctp_.arrivals = {0, 0, 0};
  tcp_.arrivals = {0, 0};
  log_.clear();
  while (listener->Accept().ok()) {
  }
  EXPECT_EQ(log_, (std::vector<std::string>{"tcp accepts", "sctp accepts", "tcp accepts", "sctp accepts", "sctp accepts"}))
      << "in turns";
}

TEST_F(ChoiceTest, APortThatTheFirstHasNotIsAnErrorUnlessThereIsAChoice) {
  sctp_.taken = {5};
  EXPECT_EQ(Make(Connecting::kFirst)->Listen(kPort5, 1, false, false).error(), EADDRINUSE);
  const auto listener = Make(Connecting::kFirstThenSecond)->Listen(kPort5, 1, false, false).value();
  tcp_.arrivals = {0};
  EXPECT_TRUE(listener->Accept().ok());
  EXPECT_EQ(listener->Accept().error(), EAGAIN);
  tcp_.listen_error = EACCES;
  EXPECT_EQ(Make(Connecting::kFirstThenSecond)->Listen(kPort5, 1, false, false).error(), EACCES);
}

}  // namespace
}  // namespace weft
