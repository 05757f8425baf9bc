#include "sim/cm/sidr/sidr.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "sim/net/virtual_network.h"
#include "sim/cm/sidr/message.h"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using transport::SocketAddress;

SocketAddress Address(const std::string& host, uint16_t port) { return SocketAddress::Parse(host, port).value(); }
std::vector<uint8_t> Bytes(const std::string& text) { return {text.begin(), text.end()}; }

class Recorder : public CmObserver {
 public:
  void OnCmEvent(CmEvent event) override { events.push_back(std::move(event)); }
  std::vector<CmEvent> events;
};

TEST(SidrMessage, ReadsAsDrawn) {
  const uint8_t bytes[] = {'W', 'S', 1, 2, 0, 1, 2, 3, 4, 5, 6, 7, 2, 0x12, 0x34, 0x56, 1, 0x23, 0x45, 0x67, 0, 2, 'h', 'i'};
  const auto message = SidrMessage::Parse(bytes);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->type, SidrMessage::Type::kReply);
  EXPECT_EQ(message->transaction, 0x0001020304050607u);
  EXPECT_EQ(message->status, SidrMessage::kRejected);
  EXPECT_EQ(message->number, 0x123456u);
  EXPECT_EQ(message->qkey, 0x01234567u);
  EXPECT_EQ(message->private_data, Bytes("hi"));
  EXPECT_EQ(message->Serialize(), std::vector<uint8_t>(std::begin(bytes), std::end(bytes)));
  for (size_t length = 0; length < sizeof bytes; ++length) EXPECT_FALSE(SidrMessage::Parse(ByteSpan(bytes, length)));
}

class Sidr : public testing::Test {
 protected:
  std::shared_ptr<CmListener> Listen(int backlog = 10) {
    auto listener = ListenForSidr(server_, Address("::", 7000), backlog, false, false, requests_);
    EXPECT_TRUE(listener.ok());
    return listener.ok() ? *listener : nullptr;
  }
  std::shared_ptr<Endpoint> Ask(std::shared_ptr<Recorder> answers, const std::string& data = "please") {
    auto requester = MakeSidrRequester(client_);
    requester->SetObserver(answers);
    EXPECT_EQ(requester->Connect(Address("10.0.0.2", 0), Address("10.0.0.1", 7000), nullptr, {.private_data = Bytes(data)}), 0);
    return requester;
  }

  VirtualNetwork network_{static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed()) + 1};
  transport::Network& server_ = network_.AddHost({"10.0.0.1"});
  transport::Network& client_ = network_.AddHost({"10.0.0.2"});
  std::shared_ptr<Recorder> requests_ = std::make_shared<Recorder>();
  std::shared_ptr<Recorder> answers_ = std::make_shared<Recorder>();
};

TEST_F(Sidr, RequesterGetsNumberAndKeyAndBothGetPrivateData) {
  auto listener = Listen();
  auto requester = Ask(answers_);
  ASSERT_TRUE(network_.RunUntil([&] { return !requests_->events.empty(); }));
  CmEvent& request = requests_->events[0];
  EXPECT_EQ(request.kind, CmEvent::Kind::kConnectRequest);
  EXPECT_EQ(request.private_data, Bytes("please"));
  EXPECT_EQ(request.endpoint->local_address(), Address("10.0.0.1", 7000));
  EXPECT_TRUE(request.endpoint->remote_address().SameHost(Address("10.0.0.2", 0)));
  ConnectParameters yes{.private_data = Bytes("here"), .number = 0xabcdef, .qkey = 0x01234567};
  EXPECT_EQ(request.endpoint->Accept(nullptr, yes), 0);
  EXPECT_EQ(request.endpoint->Accept(nullptr, yes), EINVAL) << "once";
  ASSERT_TRUE(network_.RunUntil([&] { return !answers_->events.empty(); }));
  const CmEvent& answer = answers_->events[0];
  EXPECT_EQ(answer.kind, CmEvent::Kind::kEstablished);
  EXPECT_EQ(answer.number, 0xabcdefu);
  EXPECT_EQ(answer.qkey, 0x01234567u);
  EXPECT_EQ(answer.private_data, Bytes("here"));
}

TEST_F(Sidr, RejectionSaysSo) {
  auto listener = Listen();
  auto requester = Ask(answers_);
  ASSERT_TRUE(network_.RunUntil([&] { return !requests_->events.empty(); }));
  EXPECT_EQ(requests_->events[0].endpoint->Reject(Bytes("no"), CmEvent::Reason::kConsumerDefined), 0);
  ASSERT_TRUE(network_.RunUntil([&] { return !answers_->events.empty(); }));
  EXPECT_EQ(answers_->events[0].kind, CmEvent::Kind::kUnreachable);
  EXPECT_EQ(answers_->events[0].sidr_status, SidrMessage::kRejected);
  EXPECT_EQ(answers_->events[0].private_data, Bytes("no"));
}

TEST_F(Sidr, PortThatNobodyHasIsRefusedSoon) {
  const auto start = network_.Now();
  auto requester = Ask(answers_);
  ASSERT_TRUE(network_.RunUntil([&] { return !answers_->events.empty(); }));
  EXPECT_EQ(answers_->events[0].kind, CmEvent::Kind::kUnreachable);
  EXPECT_EQ(answers_->events[0].error, ECONNREFUSED);
  EXPECT_EQ(answers_->events[0].sidr_status, SidrMessage::kUnsupported);
  EXPECT_GT(network_.Now() - start, kRefusalLimit);
  EXPECT_LT(network_.Now() - start, 1s);
}

TEST_F(Sidr, ListenerThatIsALittleLateIsFound) {
  auto requester = Ask(answers_);
  network_.RunFor(100ms);
  auto listener = Listen();
  ASSERT_TRUE(network_.RunUntil([&] { return !requests_->events.empty() || !answers_->events.empty(); }));
  EXPECT_TRUE(answers_->events.empty());
}

TEST_F(Sidr, SilenceIsATimeOutAndTheEnd) {
  network_.SetDefaultLink({.lose_datagram = 1});
  const auto start = network_.Now();
  auto requester = Ask(answers_);
  ASSERT_TRUE(network_.RunUntil([&] { return !answers_->events.empty(); }));
  EXPECT_EQ(answers_->events[0].error, ETIMEDOUT);
  EXPECT_GT(network_.Now() - start, 25s);
  EXPECT_LT(network_.Now() - start, 40s);
  EXPECT_TRUE(network_.RunUntilIdle(1000)) << "something goes on for ever";
}

TEST_F(Sidr, RequesterWaitsForAProgramThatTakesItsTime) {
  auto listener = Listen();
  auto requester = Ask(answers_);
  network_.RunFor(10min);
  EXPECT_TRUE(answers_->events.empty());
  ASSERT_EQ(requests_->events.size(), 1u) << "a repeated request is the same";
  EXPECT_EQ(requests_->events[0].endpoint->Accept(nullptr, {}), 0);
  ASSERT_TRUE(network_.RunUntil([&] { return !answers_->events.empty(); }));
  EXPECT_EQ(answers_->events[0].kind, CmEvent::Kind::kEstablished);
}

TEST_F(Sidr, UnansweredRequestThatIsDroppedIsRejected) {
  auto listener = Listen();
  auto requester = Ask(answers_);
  ASSERT_TRUE(network_.RunUntil([&] { return !requests_->events.empty(); }));
  requests_->events.clear();
  ASSERT_TRUE(network_.RunUntil([&] { return !answers_->events.empty(); }));
  EXPECT_EQ(answers_->events[0].sidr_status, SidrMessage::kRejected);
}

TEST_F(Sidr, RequestsBeyondTheBacklogComeLater) {
  auto listener = Listen(2);
  std::vector<std::shared_ptr<Endpoint>> requesters;
  for (int i = 0; i < 5; ++i) requesters.push_back(Ask(answers_));
  network_.RunFor(5s);
  EXPECT_EQ(requests_->events.size(), 2u);
  for (size_t done = 0; done < 5; ++done) {
    ASSERT_TRUE(network_.RunUntil([&] { return requests_->events.size() > done; }));
    EXPECT_EQ(requests_->events[done].endpoint->Accept(nullptr, {}), 0);
  }
  EXPECT_TRUE(network_.RunUntil([&] { return answers_->events.size() == 5; }));
}

// As that of connections, the backlog counts requests that the program has not fetched.
TEST_F(Sidr, RequestsThatTheProgramHasTakeNoPlace) {
  auto listener = Listen(1);
  std::vector<std::shared_ptr<Endpoint>> requesters;
  for (size_t i = 1; i <= 5; ++i) {
    requesters.push_back(Ask(answers_));
    network_.RunFor(5s);
    ASSERT_EQ(requests_->events.size(), i);
    requests_->events.back().endpoint->SetObserver(answers_);
  }
  EXPECT_TRUE(answers_->events.empty());
  for (const CmEvent& request : requests_->events) EXPECT_EQ(request.endpoint->Accept(nullptr, {}), 0);
  EXPECT_TRUE(network_.RunUntil([&] { return answers_->events.size() == 5; }));
}

// Requests cost a stranger one datagram each. Beyond a bound the oldest is forgotten; the program's answer is sent all the same.
TEST_F(Sidr, ARequestThatWasForgottenIsStillAnswered) {
  auto listener = Listen(1);
  auto requester = Ask(answers_);
  ASSERT_TRUE(network_.RunUntil([&] { return requests_->events.size() == 1; }));
  requests_->events[0].endpoint->SetObserver(answers_);
  auto stranger = client_.OpenDatagram(Address("10.0.0.2", 0), {});
  ASSERT_TRUE(stranger.ok());
  for (uint64_t i = 1; i <= 1100; ++i) {
    SidrMessage request;
    request.type = SidrMessage::Type::kRequest;
    request.transaction = i;
    const std::vector<uint8_t> bytes = request.Serialize();
    const iovec piece{const_cast<uint8_t*>(bytes.data()), bytes.size()};
    const transport::OutgoingDatagram datagram{Address("10.0.0.1", 7000), {}, 0, {&piece, 1}};
    int error = 0;
    ASSERT_EQ((*stranger)->Send({&datagram, 1}, &error), 1u);
    ASSERT_TRUE(network_.RunUntil([&] { return requests_->events.size() == 1 + i; })) << i;
    requests_->events.back().endpoint->SetObserver(answers_);
  }
  EXPECT_TRUE(answers_->events.empty());
  EXPECT_EQ(requests_->events[0].endpoint->Accept(nullptr, {.number = 5}), 0);
  ASSERT_TRUE(network_.RunUntil([&] { return !answers_->events.empty(); }));
  EXPECT_EQ(answers_->events[0].number, 5u);
  requests_->events.clear();
}

TEST_F(Sidr, RequestOutlivesItsListener) {
  auto listener = Listen();
  auto requester = Ask(answers_);
  ASSERT_TRUE(network_.RunUntil([&] { return !requests_->events.empty(); }));
  listener->Close();
  listener.reset();
  EXPECT_EQ(requests_->events[0].endpoint->Accept(nullptr, {.number = 5}), 0);
  ASSERT_TRUE(network_.RunUntil([&] { return !answers_->events.empty(); }));
  EXPECT_EQ(answers_->events[0].number, 5u);
}

TEST_F(Sidr, ClosedListenerTellsNoMore) {
  auto listener = Listen();
  auto requester = Ask(answers_);
  listener->Close();
  network_.RunFor(1s);
  EXPECT_TRUE(requests_->events.empty());
}

TEST_F(Sidr, ClosedRequesterHearsNoMore) {
  auto listener = Listen();
  auto requester = Ask(answers_);
  requester->Close();
  network_.RunFor(10s);
  EXPECT_TRUE(answers_->events.empty());
}

TEST_F(Sidr, PrivateDataThatIsTooLongIsRefused) {
  auto requester = MakeSidrRequester(client_);
  EXPECT_EQ(requester->Connect(Address("10.0.0.2", 0), Address("10.0.0.1", 7000), nullptr,
                               {.private_data = std::vector<uint8_t>(256)}),
            EINVAL);
}

// Whatever is lost, repeated or out of order: each request is told of once and gets its own answer.
TEST(SidrFaults, EveryRequestIsAnsweredOnceOverALossyNetwork) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    VirtualNetwork network(seed);
    transport::Network& server = network.AddHost({"10.0.0.1"});
    transport::Network& client = network.AddHost({"10.0.0.2"});
    network.SetDefaultLink({.jitter = 20ms, .lose_datagram = 0.3, .repeat_datagram = 0.3});
    auto requests = std::make_shared<Recorder>();
    auto listener = ListenForSidr(server, Address("0.0.0.0", 7000), 100, false, false, requests);
    ASSERT_TRUE(listener.ok());
    std::vector<std::shared_ptr<Recorder>> answers;
    std::vector<std::shared_ptr<Endpoint>> requesters;
    for (uint8_t i = 0; i < 20; ++i) {
      answers.push_back(std::make_shared<Recorder>());
      requesters.push_back(MakeSidrRequester(client));
      requesters.back()->SetObserver(answers.back());
      ASSERT_EQ(requesters.back()->Connect(Address("10.0.0.2", 0), Address("10.0.0.1", 7000), nullptr, {.private_data = {i}}), 0);
    }
    size_t answered = 0;
    network.RunUntil([&] {
      for (; answered < requests->events.size(); ++answered) {
        const CmEvent& request = requests->events[answered];
        EXPECT_EQ(request.endpoint->Accept(nullptr, {.private_data = request.private_data, .number = request.private_data[0]}), 0);
      }
      return false;
    }, 100s);
    EXPECT_EQ(requests->events.size(), 20u);
    for (uint8_t i = 0; i < 20; ++i) {
      ASSERT_EQ(answers[i]->events.size(), 1u);
      EXPECT_EQ(answers[i]->events[0].kind, CmEvent::Kind::kEstablished);
      EXPECT_EQ(answers[i]->events[0].number, i);
      EXPECT_EQ(answers[i]->events[0].private_data, std::vector<uint8_t>{i});
    }
    requests->events.clear();
    (*listener)->Close();
  }
}

}  // namespace
}  // namespace weft::sim
