#include "sim/net/virtual_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using Kind = IoResult::Kind;
using transport::ByteStream;
using transport::Listener;
using transport::Network;
using transport::ReadyHandler;
using transport::WatchId;

class FunctionHandler : public ReadyHandler {
 public:
  explicit FunctionHandler(std::function<void(Interest)> body) : body_(std::move(body)) {}
  void OnReady(Interest ready) override { body_(ready); }

 private:
  std::function<void(Interest)> body_;
};

std::shared_ptr<ReadyHandler> Handler(std::function<void(Interest)> body) {
  return std::make_shared<FunctionHandler>(std::move(body));
}

SocketAddress Address(const char* host, uint16_t port) { return *SocketAddress::Parse(host, port); }

IoResult Read(ByteStream& stream, std::string& into, size_t most = 4096) {
  std::string buffer(most, 0);
  iovec part{buffer.data(), most};
  IoResult result = stream.Read({&part, 1});
  if (result.kind == Kind::kDone) into.append(buffer, 0, result.bytes);
  return result;
}

IoResult Write(ByteStream& stream, std::string_view text) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  return stream.Write({&part, 1});
}

// Writes all of a text and reads all of another, whatever comes.
class Talker : public std::enable_shared_from_this<Talker> {
 public:
  Talker(Network& network, std::unique_ptr<ByteStream> stream, std::string text)
      : network_(network), stream_(std::move(stream)), text_(std::move(text)) {}
  ~Talker() { network_.Unwatch(watch_); }

  void Start() {
    watch_ = network_.Watch(*stream_, {.read = true, .write = true}, Handler([this](Interest ready) { Run(ready); }));
  }
  ByteStream& stream() { return *stream_; }
  const std::string& heard() const { return heard_; }
  IoResult last_read() const { return last_read_; }
  IoResult last_write() const { return last_write_; }
  bool finished() const { return !reading_ && !writing_; }

 private:
  void Run(Interest ready) {
    if (ready.write && writing_) {
      last_write_ = Write(*stream_, std::string_view(text_).substr(written_));
      written_ += last_write_.bytes;
      if (written_ == text_.size()) stream_->ShutdownWrite();
      writing_ = written_ < text_.size() && last_write_.kind != Kind::kFailed;
    }
    if (ready.read && reading_) {
      last_read_ = Read(*stream_, heard_);
      reading_ = last_read_.kind == Kind::kDone || last_read_.kind == Kind::kWouldBlock;
    }
    network_.SetInterest(watch_, {.read = reading_, .write = writing_});
  }

  Network& network_;
  std::unique_ptr<ByteStream> stream_;
  const std::string text_;
  size_t written_ = 0;
  bool reading_ = true, writing_ = true;
  std::string heard_;
  IoResult last_read_, last_write_;
  WatchId watch_ = 0;
};

// Two talkers on one connection.
struct Conversation {
  explicit Conversation(VirtualNetwork& network, std::string to_server = "question", std::string to_client = "answer") {
    auto listener = network.Listen(Address("10.0.0.2", 7), 5, false, true).value();
    WatchId watch = network.Watch(*listener, Handler([&](Interest) {
      server = std::make_unique<Talker>(network, listener->Accept().value(), to_client);
      server->Start();
    }));
    client = std::make_unique<Talker>(network, network.StartConnect({}, listener->LocalAddress()).value(), to_server);
    client->Start();
    network.RunUntil([&] { return server != nullptr; });
    network.Unwatch(watch);
  }

  std::unique_ptr<Talker> client, server;
};

std::string Text(size_t length, uint64_t seed) {
  Random random(seed);
  std::string text(length, 0);
  for (char& c : text) c = static_cast<char>(random.Next());
  return text;
}

TEST(VirtualNetworkTest, CarriesBytesBothWaysAndEndsInOrder) {
  VirtualNetwork network(1);
  Conversation both(network);
  EXPECT_TRUE(network.RunUntilIdle());
  EXPECT_EQ(both.server->heard(), "question");
  EXPECT_EQ(both.client->heard(), "answer");
  EXPECT_EQ(both.client->last_read().kind, Kind::kEndOfStream);
  EXPECT_EQ(both.server->last_read().kind, Kind::kEndOfStream);
  EXPECT_EQ(both.client->stream().PeerAddress().ToString(), "10.0.0.2:7");
  EXPECT_TRUE(both.client->stream().LocalAddress() == both.server->stream().PeerAddress());
}

TEST(VirtualNetworkTest, RoughLinksLoseAndReorderNothing) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    VirtualNetwork network(seed);
    Random random(seed);
    network.SetDefaultLink([&](const auto&, const auto&) { return LinkFaults::Rough(random); });
    std::string there = Text(random.Between(1, 3000), seed), back = Text(random.Between(1, 3000), ~seed);
    Conversation both(network, there, back);
    ASSERT_TRUE(network.RunUntilIdle());
    ASSERT_TRUE(both.server->heard() == there);
    ASSERT_TRUE(both.client->heard() == back);
    ASSERT_TRUE(both.client->finished() && both.server->finished());
  }
}

TEST(VirtualNetworkTest, SameSeedGivesTheSameRunAndAnotherSeedAnother) {
  auto run = [](uint64_t seed) {
    VirtualNetwork network(seed);
    network.EnableTrace();
    LinkFaults link;
    link.jitter = 1ms;
    link.shortest_segment = 1;
    link.longest_segment = 50;
    network.SetDefaultLink(link);
    Conversation both(network, Text(500, 1), Text(500, 2));
    network.RunUntilIdle();
    return network.ToString();
  };
  EXPECT_EQ(run(5), run(5));
  EXPECT_NE(run(5), run(6));
  EXPECT_NE(run(5).find("SYN"), std::string::npos);
  EXPECT_NE(run(5).find("FIN"), std::string::npos);
}

TEST(VirtualNetworkTest, BytesTakeTheDelayOfTheirDirection) {
  VirtualNetwork network(1);
  LinkFaults slow;
  slow.delay = 3ms;
  network.AddHost({"10.0.0.1"});
  Network& a = network.AddHost({"10.0.1.1"});
  Network& b = network.AddHost({"10.0.1.2"});
  network.SetLink("10.0.1.1", "10.0.1.2", slow);
  auto listener = b.Listen(Address("0.0.0.0", 9), 1, false, true).value();
  auto client = a.StartConnect({}, Address("10.0.1.2", 9)).value();
  Time start = network.Now();
  EXPECT_EQ(client->ConnectError(), EINPROGRESS);
  EXPECT_EQ(Write(*client, "x").kind, Kind::kWouldBlock);
  EXPECT_TRUE(network.RunUntil([&] { return client->ConnectError() == 0; }));
  EXPECT_GE(network.Now() - start, 3ms);
  EXPECT_EQ(client->LocalAddress().ToString().substr(0, 9), "10.0.1.1:");
  auto server = listener->Accept().value();
  start = network.Now();
  EXPECT_EQ(Write(*client, "x").bytes, 1u);
  std::string heard;
  EXPECT_EQ(Read(*server, heard).kind, Kind::kWouldBlock);
  EXPECT_TRUE(network.RunUntil([&] { return Read(*server, heard).kind == Kind::kDone; }));
  EXPECT_EQ(network.Now() - start, 3ms);
  start = network.Now();
  Write(*server, "y");
  EXPECT_TRUE(network.RunUntil([&] { return Read(*client, heard).kind == Kind::kDone; }));
  EXPECT_EQ(network.Now() - start, LinkFaults().delay);
}

TEST(VirtualNetworkTest, FullBufferBlocksTheWriterUntilTheOtherEndReads) {
  VirtualNetwork network(1);
  LinkFaults small;
  small.buffer = 10;
  network.SetDefaultLink(small);
  auto listener = network.Listen(Address("10.0.0.2", 7), 5, false, true).value();
  auto client = network.StartConnect({}, listener->LocalAddress()).value();
  network.RunUntilIdle();
  auto server = listener->Accept().value();
  EXPECT_EQ(Write(*client, "0123456789abc").bytes, 10u);
  EXPECT_EQ(Write(*client, "a").kind, Kind::kWouldBlock);
  int writable = 0;
  WatchId watch = network.Watch(*client, {.write = true}, Handler([&](Interest) {
    ++writable;
    network.SetInterest(watch, {});
  }));
  network.RunUntilIdle();
  EXPECT_EQ(writable, 0);
  std::string heard;
  EXPECT_EQ(Read(*server, heard, 4).bytes, 4u);
  network.RunUntilIdle();
  EXPECT_EQ(writable, 1);
  EXPECT_EQ(Write(*client, "abcdef").bytes, 4u);
  network.Unwatch(watch);
}

TEST(VirtualNetworkTest, StallHoldsBytesBackAndThenDeliversThem) {
  VirtualNetwork network(1);
  LinkFaults link;
  link.stall_at = 1ms;
  link.stall_for = 1s;
  network.SetDefaultLink(link);
  Time start = network.Now();
  Conversation both(network);
  network.RunUntil(start + 2ms);
  EXPECT_EQ(both.server->heard(), "question");  // before the stall
  auto listener = network.Listen(Address("10.0.0.2", 8), 5, false, true).value();
  auto client = network.StartConnect({}, listener->LocalAddress()).value();
  network.RunFor(2ms);
  auto server = listener->Accept().value();
  Write(*client, "late");
  std::string heard;
  network.RunFor(500ms);
  EXPECT_EQ(Read(*server, heard).kind, Kind::kWouldBlock);
  network.RunFor(600ms);
  EXPECT_EQ(Read(*server, heard).kind, Kind::kDone);
  EXPECT_EQ(heard, "late");
}

TEST(VirtualNetworkTest, CutAfterBytesResetsBothEndsWithWhatArrived) {
  for (uint64_t bytes : {0, 1, 3, 7}) {
    VirtualNetwork network(bytes);
    LinkFaults link;
    link.cut_after_bytes = bytes;
    network.SetLink("10.0.0.1", "10.0.0.2", link);
    network.SetDefaultLink([&](const SocketAddress& from, const SocketAddress&) {
      return from.port() == 7 ? LinkFaults() : link;  // from the client only
    });
    Conversation both(network, "question", std::string(1 << 20, 'x'));
    network.RunUntilIdle();
    EXPECT_EQ(both.server->heard(), std::string("question").substr(0, bytes));
    EXPECT_EQ(both.server->last_read().kind, Kind::kFailed);
    EXPECT_EQ(both.server->last_read().error, ECONNRESET);
    EXPECT_EQ(both.client->last_read().kind, Kind::kFailed);
  }
}

TEST(VirtualNetworkTest, BlackholeIsSilentUntilTheWriterGivesUp) {
  VirtualNetwork network(1);
  LinkFaults link;
  link.cut = LinkFaults::Cut::kBlackhole;
  link.cut_after = 0ns;
  link.give_up_after = 10s;
  network.SetDefaultLink(link);
  Conversation both(network);
  network.RunFor(5s);
  EXPECT_EQ(both.server->heard(), "");
  EXPECT_FALSE(both.client->finished() || both.server->finished());
  network.RunUntilIdle();
  EXPECT_EQ(both.client->last_read().kind, Kind::kFailed);
  EXPECT_EQ(both.client->last_read().error, ETIMEDOUT);
}

TEST(VirtualNetworkTest, CutAtATimeAndBreakAllEndConnections) {
  VirtualNetwork network(1);
  LinkFaults link;
  link.cut_after = 1s;
  network.SetDefaultLink(link);
  auto listener = network.Listen(Address("10.0.0.2", 7), 5, false, true).value();
  auto client = network.StartConnect({}, listener->LocalAddress()).value();
  network.RunFor(900ms);
  EXPECT_EQ(client->ConnectError(), 0);
  network.RunFor(200ms);
  EXPECT_EQ(Write(*client, "x").kind, Kind::kFailed);
  network.SetDefaultLink(LinkFaults());
  client = network.StartConnect({}, listener->LocalAddress()).value();
  network.RunFor(1ms);
  network.BreakAll(LinkFaults::Cut::kReset);
  EXPECT_EQ(Write(*client, "x").kind, Kind::kFailed);
}

TEST(VirtualNetworkTest, CorruptsExactlyTheByteThatWasAskedFor) {
  for (uint64_t at : {0, 100, 999}) {
    VirtualNetwork network(at);
    LinkFaults link;
    link.corrupt_byte = at;
    link.longest_segment = 64;
    link.shortest_segment = 1;
    network.SetDefaultLink(link);
    std::string sent = Text(1000, 3);
    Conversation both(network, sent, "x");
    network.RunUntilIdle();
    ASSERT_EQ(both.server->heard().size(), sent.size());
    for (size_t i = 0; i < sent.size(); ++i) EXPECT_EQ(both.server->heard()[i] != sent[i], i == at) << i;
  }
}

TEST(VirtualNetworkTest, CorruptsSegmentsWithTheProbabilityThatWasAskedFor) {
  VirtualNetwork network(1);
  LinkFaults link;
  link.corrupt_probability = 0.1;
  link.shortest_segment = link.longest_segment = 10;
  network.SetDefaultLink(link);
  std::string sent = Text(10'000, 3);
  Conversation both(network, sent, "");
  network.RunUntil([&] { return both.server->heard().size() == sent.size(); });
  int wrong = 0;
  for (size_t i = 0; i < sent.size(); ++i) wrong += both.server->heard()[i] != sent[i];
  EXPECT_GT(wrong, 50);
  EXPECT_LT(wrong, 200);
}

TEST(VirtualNetworkTest, RefusedUnreachableAndTimedOutAttemptsSaySo) {
  VirtualNetwork network(1);
  Network& host = network.AddHost({"10.0.1.1"});
  network.AddHost({"10.0.1.2"});
  auto error_of = [&](const char* remote) {
    auto client = host.StartConnect({}, Address(remote, 9)).value();
    int writable = 0;
    WatchId watch = network.Watch(*client, {.write = true}, Handler([&](Interest) {
      ++writable;
      network.SetInterest(watch, {});
    }));
    EXPECT_TRUE(network.RunUntilIdle());
    EXPECT_EQ(writable, 1);
    network.Unwatch(watch);
    return client->ConnectError();
  };
  EXPECT_EQ(error_of("10.0.1.2"), ECONNREFUSED);
  EXPECT_EQ(error_of("10.0.1.3"), EHOSTUNREACH);
  EXPECT_EQ(error_of("127.0.0.1"), ECONNREFUSED);
  LinkFaults silent;
  silent.connect = LinkFaults::Connect::kTimesOut;
  network.SetLink("10.0.1.1", "10.0.1.2", silent);
  Time start = network.Now();
  EXPECT_EQ(error_of("10.0.1.2"), ETIMEDOUT);
  EXPECT_GE(network.Now() - start, silent.connect_timeout);
  EXPECT_EQ(host.StartConnect(Address("10.0.9.9", 0), Address("10.0.1.2", 9)).error(), EADDRNOTAVAIL);
  EXPECT_EQ(host.StartConnect({}, Address("fd00::1", 9)).error(), ENETUNREACH);
}

TEST(VirtualNetworkTest, FullBacklogMakesConnectionsWaitAndThenTimeOut) {
  VirtualNetwork network(1);
  auto listener = network.Listen(Address("10.0.0.2", 7), 1, false, true).value();
  std::vector<std::unique_ptr<ByteStream>> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(network.StartConnect({}, listener->LocalAddress()).value());
  network.RunFor(500ms);
  auto established = [&] {
    return std::count_if(clients.begin(), clients.end(), [](auto& client) { return client->ConnectError() == 0; });
  };
  EXPECT_EQ(established(), 2);
  auto first = listener->Accept().value();
  network.RunFor(2s);
  EXPECT_EQ(established(), 3);
  network.RunUntilIdle();
  EXPECT_EQ(established(), 3);
  EXPECT_EQ(std::count_if(clients.begin(), clients.end(), [](auto& c) { return c->ConnectError() == ETIMEDOUT; }), 1);
}

TEST(VirtualNetworkTest, ListenersShareAPortOnlyWhereTheyDoNotOverlap) {
  VirtualNetwork network(1);
  Network& host = network.AddHost({"10.0.1.1", "fd00::1"});
  auto v4 = host.Listen(Address("0.0.0.0", 9), 1, false, true).value();
  EXPECT_EQ(host.Listen(Address("10.0.1.1", 9), 1, false, true).error(), EADDRINUSE);
  EXPECT_EQ(host.Listen(Address("::", 9), 1, false, true).error(), EADDRINUSE);
  auto v6 = host.Listen(Address("::", 9), 1, true, true).value();
  EXPECT_EQ(host.Listen(Address("10.0.1.2", 9), 1, false, true).error(), EADDRNOTAVAIL);
  Network& other = network.AddHost({"10.0.1.2"});
  EXPECT_TRUE(other.Listen(Address("0.0.0.0", 9), 1, false, true).ok());
  auto any = host.Listen(Address("10.0.1.1", 0), 1, false, true).value();
  EXPECT_NE(any->LocalAddress().port(), 0);
  v4.reset();
  EXPECT_TRUE(host.Listen(Address("0.0.0.0", 9), 1, false, true).ok());
}

TEST(VirtualNetworkTest, AbortAndWritesToAClosedEndReset) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    VirtualNetwork network(seed);
    auto listener = network.Listen(Address("10.0.0.2", 7), 5, false, true).value();
    auto client = network.StartConnect({}, listener->LocalAddress()).value();
    network.RunUntilIdle();
    auto server = listener->Accept().value();
    Write(*server, "unread");
    server->Abort();
    EXPECT_EQ(Write(*server, "x").kind, Kind::kFailed);
    network.RunUntilIdle();
    std::string heard;
    IoResult result = Read(*client, heard);
    if (result.kind == Kind::kDone) result = Read(*client, heard);  // TCP may deliver what came before, or not
    EXPECT_TRUE(heard.empty() || heard == "unread");
    EXPECT_EQ(result.kind, Kind::kFailed);
    EXPECT_EQ(result.error, ECONNRESET);

    client = network.StartConnect({}, listener->LocalAddress()).value();
    network.RunUntilIdle();
    server = listener->Accept().value();
    server.reset();
    network.RunUntilIdle();
    EXPECT_EQ(Read(*client, heard).kind, Kind::kEndOfStream);
    EXPECT_EQ(Write(*client, "x").kind, Kind::kDone);
    network.RunUntilIdle();
    EXPECT_EQ(Write(*client, "x").kind, Kind::kFailed);
  }
}

TEST(VirtualNetworkTest, ClosedListenerResetsThoseWhoWait) {
  VirtualNetwork network(1);
  auto listener = network.Listen(Address("10.0.0.2", 7), 5, false, true).value();
  auto client = network.StartConnect({}, listener->LocalAddress()).value();
  network.RunUntilIdle();
  listener.reset();
  network.RunUntilIdle();
  std::string heard;
  EXPECT_EQ(Read(*client, heard).error, ECONNRESET);
}

TEST(VirtualNetworkTest, TimersAndPostsRunInOrderAndCanBeCancelled) {
  VirtualNetwork network(1);
  std::string order;
  network.RunAt(network.Now() + 2s, [&] { order += 'c'; });
  network.RunAt(network.Now() + 1s, [&] {
    order += 'b';
    network.Post([&] { order += '!'; });
  });
  auto cancelled = network.RunAt(network.Now() + 1s, [&] { order += 'x'; });
  network.Post([&] { order += 'a'; });
  EXPECT_TRUE(network.Cancel(cancelled));
  EXPECT_FALSE(network.Cancel(cancelled));
  Time start = network.Now();
  EXPECT_TRUE(network.RunUntilIdle());
  EXPECT_EQ(order, "ab!c");
  EXPECT_EQ(network.Now() - start, 2s);
  network.RunFor(1h);
  EXPECT_EQ(network.Now() - start, 1h + 2s);
}

TEST(VirtualNetworkTest, WorkThatNeverRanMayOwnStreams) {
  auto network = std::make_unique<VirtualNetwork>(1);
  auto listener = network->Listen(Address("10.0.0.2", 7), 5, false, true).value();
  std::shared_ptr<ByteStream> client = network->StartConnect({}, listener->LocalAddress()).value();
  network->RunUntilIdle();
  std::shared_ptr<ByteStream> server = listener->Accept().value();
  const std::weak_ptr<ByteStream> late = client, watched = server;
  bool ran = false;
  network->RunAt(network->Now() + 1s, [client = std::move(client), &ran] { ran = true; });
  network->Watch(*server, {}, Handler([server](Interest) {}));
  server.reset();
  EXPECT_FALSE(late.expired() || watched.expired());
  listener.reset();
  network.reset();
  EXPECT_TRUE(late.expired() && watched.expired()) << "the network lets go of what it was given";
  EXPECT_FALSE(ran);
}

TEST(VirtualNetworkTest, AHandlerThatIsReadyForEverDoesNotStopTheClock) {
  VirtualNetwork network(1);
  auto listener = network.Listen(Address("10.0.0.2", 7), 5, false, true).value();
  auto client = network.StartConnect({}, listener->LocalAddress()).value();
  WatchId watch = network.Watch(*client, {.write = true}, Handler([](Interest) {}));
  bool rang = false;
  network.RunAt(network.Now() + 1ms, [&] { rang = true; });
  EXPECT_TRUE(network.RunUntil([&] { return rang; }));
  EXPECT_FALSE(network.RunUntilIdle(1000));
  network.Unwatch(watch);
}

}  // namespace
}  // namespace weft::sim
