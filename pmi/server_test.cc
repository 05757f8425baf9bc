#include "pmi/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "pmi/client.h"
#include "pmi/names.h"

namespace weft::pmi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class FakeOwner : public Server::Owner {
 public:
  void Send(int rank, const std::string& bytes) override { sent[rank] += bytes; }
  void OnAbort(int rank, int exit_code, const std::string& message) override {
    events.push_back("abort " + std::to_string(rank) + " " + std::to_string(exit_code) + " " + message);
  }
  void OnMisuse(int rank, const std::string& what) override { events.push_back("misuse " + std::to_string(rank) + " " + what); }
  void OnFence(KeyValues put) override { fences.push_back(put); }
  void OnNameQuestion(int rank, const Message& question) override { Send(rank, names.Answer(question).Serialize()); }

  std::string Take(int rank) { return std::exchange(sent[rank], {}); }

  std::map<int, std::string> sent;
  std::vector<std::string> events;
  std::vector<KeyValues> fences;
  NameService names;
};

// Ranks 2 and 3 of a job of five, on this host.
struct PmiServer : ::testing::Test {
  FakeOwner owner;
  Server server{{"kvs_1", 5, 9, {{2, 0}, {3, 1}}, {{"given", "x"}}}, &owner};

  std::string Ask(int rank, const std::string& line) {
    server.Receive(rank, line + "\n");
    return owner.Take(rank);
  }
};

TEST_F(PmiServer, AnswersAsHydraDoes) {
  EXPECT_EQ(Ask(3, "cmd=init pmi_version=1 pmi_subversion=1"), "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
  EXPECT_EQ(Ask(3, "cmd=get_maxes"), "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n");
  EXPECT_EQ(Ask(3, "cmd=get_appnum"), "cmd=appnum appnum=1\n");
  EXPECT_EQ(Ask(3, "cmd=get_universe_size"), "cmd=universe_size size=9\n");
  EXPECT_EQ(Ask(3, "cmd=get_my_kvsname"), "cmd=my_kvsname kvsname=kvs_1\n");
  EXPECT_EQ(Ask(3, "cmd=get kvsname=kvs_1 key=foo"), "cmd=get_result rc=-1 msg=key_foo_not_found value=unknown\n");
  EXPECT_EQ(Ask(3, "cmd=get kvsname=kvs_1 key=given"), "cmd=get_result rc=0 msg=success value=x\n");
  EXPECT_EQ(Ask(3, "cmd=put kvsname=kvs_1 key=foo value=a=b"), "cmd=put_result rc=0 msg=success\n");
  EXPECT_EQ(Ask(2, "cmd=get kvsname=kvs_1 key=foo"), "cmd=get_result rc=0 msg=success value=a=b\n");
  EXPECT_EQ(Ask(3, "cmd=publish_name service=a port=b"), "cmd=publish_result info=ok rc=0 msg=success\n");
  EXPECT_EQ(Ask(2, "cmd=lookup_name service=a"), "cmd=lookup_result port=b info=ok rc=0 msg=success\n");
  EXPECT_EQ(Ask(2, "cmd=lookup_name service=z"), "cmd=lookup_result rc=1 msg=service_not_found\n");
  EXPECT_EQ(Ask(2, "cmd=unpublish_name service=a"), "cmd=unpublish_result info=ok rc=0 msg=success\n");
  EXPECT_EQ(Ask(2, "cmd=unpublish_name service=a"), "cmd=unpublish_result rc=1 msg=service_not_found\n");
  EXPECT_EQ(Ask(3, "cmd=initack pmiid=3"), "cmd=initack\ncmd=set size=5\ncmd=set rank=3\ncmd=set debug=0\n");
  EXPECT_EQ(Ask(3, "cmd=finalize"), "cmd=finalize_ack\n");
  EXPECT_TRUE(owner.events.empty());
}

TEST_F(PmiServer, KnowsHowFarEachRankIs) {
  EXPECT_EQ(server.state(2), Server::State::kSilent);
  Ask(2, "cmd=init pmi_version=1 pmi_subversion=1");
  EXPECT_EQ(server.state(2), Server::State::kInitialised);
  EXPECT_EQ(server.state(3), Server::State::kSilent);
  Ask(2, "cmd=finalize");
  EXPECT_EQ(server.state(2), Server::State::kFinalised);
  Ask(2, "cmd=init pmi_version=1 pmi_subversion=1");
  EXPECT_EQ(server.state(2), Server::State::kInitialised);
}

TEST_F(PmiServer, RefusesOtherVersions) {
  EXPECT_EQ(Ask(2, "cmd=init pmi_version=2 pmi_subversion=0"), "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n");
  EXPECT_EQ(server.state(2), Server::State::kSilent);
}

TEST_F(PmiServer, BarrierEndsForAllAndBringsWhatOtherHostsPut) {
  Ask(2, "cmd=put kvsname=kvs_1 key=mine value=1");
  EXPECT_EQ(Ask(2, "cmd=barrier_in"), "");
  EXPECT_EQ(server.waiting(), 1u);
  EXPECT_TRUE(owner.fences.empty());
  EXPECT_EQ(Ask(3, "cmd=barrier_in"), "");
  ASSERT_EQ(owner.fences.size(), 1u);
  EXPECT_THAT(owner.fences[0], ElementsAre(Pair("mine", "1")));
  EXPECT_EQ(server.waiting(), 2u);
  server.EndFence({{"mine", "1"}, {"theirs", "2"}});
  EXPECT_EQ(server.waiting(), 0u);
  EXPECT_EQ(owner.Take(2), "cmd=barrier_out\n");
  EXPECT_EQ(owner.Take(3), "cmd=barrier_out\n");
  EXPECT_THAT(Ask(2, "cmd=get kvsname=kvs_1 key=theirs"), HasSubstr("value=2"));
  Ask(2, "cmd=barrier_in");
  Ask(3, "cmd=barrier_in");
  EXPECT_TRUE(owner.fences[1].empty()) << "what was put before is known already";
}

TEST_F(PmiServer, KeysAndValuesHaveTheAnnouncedLengths) {
  const auto put = [&](size_t key, size_t value) {
    return Ask(2, "cmd=put kvsname=kvs_1 key=" + std::string(key, 'k') + " value=" + std::string(value, 'v'));
  };
  EXPECT_THAT(put(63, 1023), HasSubstr("rc=0"));
  EXPECT_THAT(put(64, 1), HasSubstr("rc=-1 msg=key_too_long"));
  EXPECT_THAT(put(1, 1024), HasSubstr("rc=-1 msg=value_too_long"));
  EXPECT_THAT(put(0, 1), HasSubstr("rc=-1 msg=key_missing"));
  EXPECT_THAT(Ask(2, "cmd=put kvsname=kvs_2 key=a value=b"), HasSubstr("rc=-1 msg=kvs_not_found"));
  EXPECT_THAT(Ask(2, "cmd=put kvsname=kvs_1 key=a"), HasSubstr("rc=-1 msg=value_missing"));
  EXPECT_THAT(Ask(2, "cmd=get kvsname=kvs_2 key=a"), HasSubstr("rc=-1"));
}

TEST_F(PmiServer, SpawnIsRefusedAndNotIgnored) {
  EXPECT_THAT(Ask(2, "mcmd=spawn\nnprocs=1\nexecname=x\nendcmd"), HasSubstr("cmd=spawn_result rc=-1"));
}

TEST_F(PmiServer, AbortReachesTheOwner) {
  Ask(3, "cmd=abort exitcode=7 error=no%20disk");
  Ask(2, "cmd=abort");
  EXPECT_THAT(owner.events, ElementsAre("abort 3 7 no disk", "abort 2 1 "));
}

TEST_F(PmiServer, NamesTheMisuse) {
  Ask(2, "cmd=frobnicate");
  Ask(2, "cmd=barrier_in");
  Ask(2, "cmd=barrier_in");
  Ask(3, "cmd=initack pmiid=2");
  Ask(3, "GET / HTTP/1.1");
  ASSERT_EQ(owner.events.size(), 4u);
  EXPECT_THAT(owner.events[0], HasSubstr("misuse 2 sent the PMI command 'frobnicate'"));
  EXPECT_THAT(owner.events[1], HasSubstr("misuse 2 entered the PMI barrier twice"));
  EXPECT_THAT(owner.events[2], HasSubstr("misuse 3 introduced itself by 'cmd=initack pmiid=2"));
  EXPECT_THAT(owner.events[3], HasSubstr("GET / HTTP/1.1"));
  EXPECT_EQ(Ask(3, "cmd=get_maxes"), "") << "after an error nothing is read";
}

// A server of one rank at the other end of a connection, until it closes.
class Peer {
 public:
  explicit Peer(int fd) : fd_(fd), thread_([this] { Serve(); }) {}
  ~Peer() {
    thread_.join();
    close(fd_);
  }

 private:
  void Serve() {
    FakeOwner owner;
    Server server({"kvs_9", 1, 3, {{0, 4}}, {}}, &owner);
    char block[256];
    for (ssize_t count; (count = read(fd_, block, sizeof(block))) > 0;) {
      server.Receive(0, {block, static_cast<size_t>(count)});
      if (!owner.fences.empty()) server.EndFence(owner.fences.back());
      owner.fences.clear();
      const std::string answer = owner.Take(0);
      ASSERT_EQ(write(fd_, answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
    }
  }

  const int fd_;
  std::thread thread_;
};

void UseClient(Client& client) {
  EXPECT_FALSE(client.is_singleton());
  EXPECT_EQ(client.rank(), 0);
  EXPECT_EQ(client.size(), 1);
  EXPECT_EQ(client.appnum(), 4);
  EXPECT_EQ(client.universe_size(), 3);
  EXPECT_EQ(client.kvs_name(), "kvs_9");
  EXPECT_EQ(client.max_value_length(), 1023u);
  EXPECT_EQ(client.Put("a", "1=2"), "");
  EXPECT_EQ(client.Barrier(), "");
  EXPECT_EQ(client.Get("a").value(), "1=2");
  EXPECT_THAT(client.Get("b").error().message, HasSubstr("no process put the key b"));
  EXPECT_EQ(client.Put("long", std::string(1023, 'x')), "");
  EXPECT_THAT(client.Put("long", std::string(1024, 'x')), HasSubstr("1024 bytes, where the launcher allows 1023"));
  EXPECT_THAT(client.Put("a", "1 2"), HasSubstr("contains a blank"));
  EXPECT_THAT(client.Put("a b", "1"), HasSubstr("contains a blank"));
  EXPECT_THAT(client.Put("", "1"), HasSubstr("empty PMI key"));
  EXPECT_EQ(client.Finalize(), "");
}

struct PmiClient : ::testing::Test {
  void TearDown() override {
    for (const char* name : {"PMI_FD", "PMI_RANK", "PMI_SIZE", "PMI_PORT", "PMI_ID"}) unsetenv(name);
  }
  static std::string ErrorOfConnect() {
    const auto client = Client::Connect();
    return client ? "connected" : client.error().message;
  }
  // A client whose launcher says `answers` whatever it is asked.
  static std::string ErrorWhenToldOnly(const std::string& answers) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    EXPECT_EQ(write(ends[1], answers.data(), answers.size()), static_cast<ssize_t>(answers.size()));
    shutdown(ends[1], SHUT_WR);
    setenv("PMI_FD", std::to_string(ends[0]).c_str(), 1);
    setenv("PMI_RANK", "0", 1);
    setenv("PMI_SIZE", "1", 1);
    const std::string error = ErrorOfConnect();
    close(ends[1]);
    return error;
  }
};

TEST_F(PmiClient, SpeaksOverAnInheritedDescriptor) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  Peer peer(ends[1]);
  setenv("PMI_FD", std::to_string(ends[0]).c_str(), 1);
  setenv("PMI_RANK", "0", 1);
  setenv("PMI_SIZE", "1", 1);
  auto client = Client::Connect();
  ASSERT_TRUE(client) << client.error().message;
  EXPECT_EQ(client.value()->fd(), ends[0]);
  UseClient(*client.value());
}

TEST_F(PmiClient, SpeaksOverAPort) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  setenv("PMI_PORT", ("127.0.0.1:" + std::to_string(ntohs(address.sin_port))).c_str(), 1);
  setenv("PMI_ID", "0", 1);
  std::unique_ptr<Peer> peer;
  std::thread acceptor([&] { peer = std::make_unique<Peer>(accept(listener, nullptr, nullptr)); });
  {
    auto client = Client::Connect();
    acceptor.join();
    ASSERT_TRUE(client) << client.error().message;
    UseClient(*client.value());
  }
  close(listener);
}

TEST_F(PmiClient, IsAJobOfOneWithoutLauncher) {
  auto connected = Client::Connect();
  ASSERT_TRUE(connected);
  Client& client = *connected.value();
  EXPECT_TRUE(client.is_singleton());
  EXPECT_EQ(client.size(), 1);
  EXPECT_EQ(client.fd(), -1);
  EXPECT_EQ(client.Put("a", "b"), "");
  EXPECT_EQ(client.Barrier(), "");
  EXPECT_EQ(client.Get("a").value(), "b");
  EXPECT_THAT(client.Get("c").error().message, HasSubstr("key c"));
  EXPECT_EQ(client.Finalize(), "");
}

TEST_F(PmiClient, NamesTheVariableThatIsWrong) {
  setenv("PMI_FD", "17x", 1);
  EXPECT_THAT(ErrorOfConnect(), HasSubstr("PMI_FD=17x"));
  setenv("PMI_FD", "999", 1);
  EXPECT_THAT(ErrorOfConnect(), HasSubstr("PMI_RANK is not set"));
  setenv("PMI_RANK", "0", 1);
  EXPECT_THAT(ErrorOfConnect(), HasSubstr("PMI_SIZE is not set"));
  setenv("PMI_SIZE", "1", 1);
  EXPECT_THAT(ErrorOfConnect(), HasSubstr("PMI_FD=999 is not an open descriptor"));
  unsetenv("PMI_FD");
  setenv("PMI_PORT", "nowhere", 1);
  EXPECT_THAT(ErrorOfConnect(), HasSubstr("PMI_ID is not set"));
  setenv("PMI_ID", "0", 1);
  EXPECT_THAT(ErrorOfConnect(), HasSubstr("PMI_PORT=nowhere is not HOST:PORT"));
  setenv("PMI_PORT", "127.0.0.1:99999", 1);
  EXPECT_THAT(ErrorOfConnect(), HasSubstr("is not HOST:PORT"));
  setenv("PMI_PORT", "127.0.0.1:1", 1);
  EXPECT_THAT(ErrorOfConnect(), HasSubstr("cannot connect to PMI_PORT=127.0.0.1:1: Connection refused"));
}

TEST_F(PmiClient, SaysWhatTheLauncherDidWrong) {
  EXPECT_THAT(ErrorWhenToldOnly(""), HasSubstr("closed its connection before it sent cmd=response_to_init"));
  EXPECT_THAT(ErrorWhenToldOnly("cmd=response_to_init rc=-1\n"), HasSubstr("refuses PMI version 1"));
  EXPECT_THAT(ErrorWhenToldOnly("cmd=maxes\n"), HasSubstr("answered 'cmd=maxes?' where cmd=response_to_init belongs"));
  EXPECT_THAT(ErrorWhenToldOnly("hello\n"), HasSubstr("'hello'"));
  EXPECT_THAT(ErrorWhenToldOnly("cmd=response_to_init rc=0\ncmd=maxes keylen_max=64\n"), HasSubstr("allows nothing"));
  EXPECT_THAT(ErrorWhenToldOnly("cmd=response_to_init rc=0\ncmd=maxes keylen_max=64 vallen_max=0\n"),
              HasSubstr("allows nothing"));
  EXPECT_THAT(ErrorWhenToldOnly("cmd=response_to_init rc=0\ncmd=maxes keylen_max=64 vallen_max=9\ncmd=appnum appnum=0\n"
                                "cmd=universe_size size=infinite\ncmd=my_kvsname\n"),
              HasSubstr("answered get_my_kvsname with"));
}

}  // namespace
}  // namespace weft::pmi
