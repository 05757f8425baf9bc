#include "pmi/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <thread>

#include "pmi/server/names.h"
#include "pmi/server/server.h"

namespace weft::pmi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// What carries nothing, and answers questions when it is told to.
class FakeOwner : public Server::Owner {
 public:
  void Send(int rank, const std::string& bytes) override { sent += bytes; }
  bool HasRoom(int) const override { return true; }
  void OnAbort(int, int exit_code, const std::string& message) override { abort = std::to_string(exit_code) + " " + message; }
  void OnMisuse(int, const std::string& what) override { misuse = what; }
  void OnFence(KeyValues put) override { fences.push_back(put); }
  void OnQuestion(int rank, const std::string& ticket, const Request& request) override { questions.emplace_back(ticket, request); }
  const Server::Space* SpaceOf(const std::string& job_id) override { return job_id == "kvs_8" ? &other : nullptr; }
  void Signal(int, const std::string&) override {}

  std::string sent, abort, misuse;
  std::vector<KeyValues> fences;
  std::vector<std::pair<std::string, Request>> questions;
  Server::Space other{{"theirs", "8"}};
};

// A server of one rank at the other end of a connection, until it closes.
class Peer {
 public:
  explicit Peer(int fd, std::string spawner = {}, std::string secret = {})
      : fd_(fd), spawner_(std::move(spawner)), secret_(std::move(secret)), thread_([this] { Serve(); }) {}
  ~Peer() {
    thread_.join();
    close(fd_);
  }

 private:
  void Serve() {
    FakeOwner owner;
    Server server({"kvs_9", 1, 3, {{0, 4}}, {{"PMI_process_mapping", "(vector,(0,1,1))"}}, spawner_, secret_}, &owner);
    NameService names;
    std::vector<std::pair<std::string, Request>> lookups;  // answered last in first out, once there are two
    char block[256];
    for (ssize_t count; (count = read(fd_, block, sizeof(block))) > 0;) {
      server.Receive(0, {block, static_cast<size_t>(count)});
      if (!owner.fences.empty()) server.EndFence(owner.fences.back());
      owner.fences.clear();
      for (const auto& [ticket, request] : std::exchange(owner.questions, {})) {
        const auto* lookup = std::get_if<ask::Lookup>(&request);
        if (lookup != nullptr && lookup->service.starts_with("slow")) {
          lookups.emplace_back(ticket, request);
        } else if (const auto* spawn = std::get_if<ask::Spawn>(&request)) {
          server.TakeAnswer(0, ticket, AnswerTo(*spawn));
        } else {
          server.TakeAnswer(0, ticket, names.Do(request, 0));
        }
      }
      if (lookups.size() == 2) {
        for (const size_t i : {1, 0}) server.TakeAnswer(0, lookups[i].first, {.value = "port of " + std::get<ask::Lookup>(lookups[i].second).service});
        lookups.clear();
      }
      const std::string answer = std::exchange(owner.sent, {});
      ASSERT_EQ(write(fd_, answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
      if (!owner.misuse.empty()) break;
    }
    shutdown(fd_, SHUT_RDWR);
  }

  static Answer AnswerTo(const ask::Spawn& spawn) {
    if (spawn.commands[0].program == "missing") return {.code = 1, .why = "cannot find missing", .errors = {1, 1, 1}};
    return {.value = "kvs_9_spawned"};
  }

  const int fd_;
  const std::string spawner_, secret_;
  std::thread thread_;
};

void UseClient(Client& client) {
  const std::string blank = client.pmi_version() == 1 ? "_" : " ";  // as the wire has it
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
  EXPECT_THAT(client.Put("a", client.pmi_version() == 1 ? "1 2" : "1;2"), HasSubstr(client.pmi_version() == 1 ? "contains a blank" : "a semicolon"));
  EXPECT_THAT(client.Put("a b", "1"), HasSubstr("contains a blank"));
  EXPECT_THAT(client.Put("", "1"), HasSubstr("empty PMI key"));
  EXPECT_EQ(client.Get("PMI_process_mapping").value(), "(vector,(0,1,1))");
  EXPECT_EQ(client.JobAttribute("PMI_process_mapping").value(), "(vector,(0,1,1))");
  EXPECT_EQ(client.JobAttribute("universeSize").value(), "3");
  EXPECT_EQ(client.JobAttribute("nope").value(), std::nullopt);

  const auto all = client.GetAll("kvs_9");
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_THAT(all.value(), ElementsAre(Pair("PMI_process_mapping", "(vector,(0,1,1))"), Pair("a", "1=2"), Pair("long", std::string(1023, 'x'))));
  EXPECT_THAT(client.GetAll("kvs_77").error().message, HasSubstr("does not give the key-value space kvs_77"));
  EXPECT_THAT(client.PutInto("kvs_77", "a", "b"), HasSubstr(client.pmi_version() == 1 ? "refuses the key a" : "no key-value spaces beside the job's own"));

  EXPECT_EQ(client.Publish("my service", "tcp:1 100%"), "");
  EXPECT_EQ(client.Publish("my service", "tcp:2"), "the launcher refuses to publish my service (service" + blank + "exists)");
  EXPECT_EQ(client.Lookup("my service").value(), "tcp:1 100%");
  EXPECT_EQ(client.Unpublish("my service"), "");
  EXPECT_EQ(client.Unpublish("my service"), "the launcher cannot unpublish my service (service" + blank + "not" + blank + "found)");
  EXPECT_EQ(client.Lookup("my service").error().message, "no process has published the service my service (service" + blank + "not" + blank + "found)");
  EXPECT_THAT(client.Publish("", "a"), HasSubstr("empty"));

  const Client::Spawned good = client.Spawn({{"a", {"x y", "z=1"}, 2, {{"wdir", "/tmp"}}}, {"b", {}, 1, {}}}, {{"k", "v"}});
  EXPECT_EQ(good.problem, "");
  EXPECT_EQ(good.job_id, "kvs_9_spawned");
  EXPECT_THAT(good.errors, ElementsAre(0, 0, 0));
  const Client::Spawned bad = client.Spawn({{"missing", {}, 3, {}}}, {});
  EXPECT_EQ(bad.problem, "the launcher cannot spawn (cannot find missing)");
  EXPECT_THAT(bad.errors, ElementsAre(1, 1, 1));
  EXPECT_THAT(client.Spawn({}, {}).problem, HasSubstr("no program"));
  EXPECT_THAT(client.Spawn({{"a", {}, -1, {}}}, {}).problem, HasSubstr("-1 processes"));
  if (client.pmi_version() == 1) {
    EXPECT_THAT(client.Spawn({{"a", {"x\ny"}, 1, {}}}, {}).problem, HasSubstr("'x?y' contains a line end"));
  }
  EXPECT_EQ(client.Finalize(), "");
}

struct PmiClient : ::testing::Test {
  void TearDown() override {
    for (const char* name : {"PMI_FD", "PMI_RANK", "PMI_SIZE", "PMI_PORT", "PMI_ID", "PMI_JOBID", "PMI_SPAWNED", "WEFT_PMI", "WEFT_PMI_SECRET_FILE",
                             "SLURM_JOB_ID"}) unsetenv(name);
  }
  static void SetPlace(int fd) {
    setenv("PMI_FD", std::to_string(fd).c_str(), 1);
    setenv("PMI_RANK", "0", 1);
    setenv("PMI_SIZE", "1", 1);
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

TEST_F(PmiClient, MakesFillsReadsAndDestroysSpaces) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  Peer peer(ends[1]);
  SetPlace(ends[0]);
  auto connected = Client::Connect();
  ASSERT_TRUE(connected) << connected.error().message;
  Client& client = *connected.value();
  const auto space = client.CreateSpace();
  ASSERT_TRUE(space) << space.error().message;
  EXPECT_EQ(client.GetAll(*space).value(), KeyValues());
  for (const char* key : {"c", "a", "b"}) EXPECT_EQ(client.PutInto(*space, key, key), "");
  EXPECT_EQ(client.GetFrom(*space, "b").value(), "b");
  EXPECT_THAT(client.GetAll(*space).value(), ElementsAre(Pair("a", "a"), Pair("b", "b"), Pair("c", "c")));
  EXPECT_EQ(client.DestroySpace(*space), "");
  EXPECT_THAT(client.DestroySpace(*space), HasSubstr("cannot destroy the key-value space kvs_9_1"));
  EXPECT_THAT(client.PutAll("kvs_8", {}), HasSubstr("PMI version 1 has no such request"));
}

TEST_F(PmiClient, CopiesTheValuesOfAJobThatTheLauncherDoesNotKnow) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  Peer peer(ends[1]);
  SetPlace(ends[0]);
  setenv("WEFT_PMI", "2", 1);
  auto connected = Client::Connect();
  ASSERT_TRUE(connected) << connected.error().message;
  Client& client = *connected.value();
  bool must_copy = true;
  EXPECT_EQ(client.ConnectJob("kvs_8", &must_copy), "");
  EXPECT_FALSE(must_copy);
  EXPECT_EQ(client.ConnectJob("kvs_far", &must_copy), "");
  EXPECT_TRUE(must_copy);
  EXPECT_EQ(client.PutAll("kvs_far", {{"x", "1"}, {"y", "2"}}), "");
  EXPECT_EQ(client.GetFrom("kvs_far", "y").value(), "2");
  EXPECT_THAT(client.GetAll("kvs_far").value(), ElementsAre(Pair("x", "1"), Pair("y", "2")));
  EXPECT_THAT(client.PutAll("kvs_9", {{"x", "1"}}), HasSubstr("does not take the key-value space kvs_9"));
  EXPECT_THAT(client.PutAll("kvs_far", {{"", "1"}}), HasSubstr("empty PMI key"));
  EXPECT_EQ(client.PutAll("kvs_far", {}), "");
}

TEST_F(PmiClient, SpeaksVersion2WhenTold) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  Peer peer(ends[1], "kvs_8");
  SetPlace(ends[0]);
  setenv("WEFT_PMI", "2", 1);
  auto connected = Client::Connect();
  ASSERT_TRUE(connected) << connected.error().message;
  Client& client = *connected.value();
  EXPECT_EQ(client.pmi_version(), 2);
  EXPECT_TRUE(client.spawned());
  EXPECT_EQ(client.PutNodeAttribute("n", "1"), "");
  EXPECT_EQ(client.NodeAttribute("n", true).value(), "1");
  EXPECT_EQ(client.NodeAttribute("m", false).value(), std::nullopt);
  EXPECT_EQ(client.ConnectJob("kvs_8"), "");
  EXPECT_EQ(client.GetFrom("kvs_8", "theirs").value(), "8");
  EXPECT_THAT(client.GetFrom("kvs_7", "theirs").error().message, HasSubstr("kvs not found"));
  UseClient(client);
}

TEST_F(PmiClient, ThreadsWaitForThemselvesAlone) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  Peer peer(ends[1]);
  SetPlace(ends[0]);
  setenv("WEFT_PMI", "2", 1);
  auto connected = Client::Connect();
  ASSERT_TRUE(connected) << connected.error().message;
  Client& client = *connected.value();
  std::vector<std::thread> threads;
  // The peer answers these in reverse, when there are two; meanwhile others come and go.
  for (const char* name : {"slow a", "slow b"}) {
    threads.emplace_back([&, name] { EXPECT_EQ(client.Lookup(name).value(), std::string("port of ") + name); });
  }
  threads.emplace_back([&] { EXPECT_EQ(client.NodeAttribute("late", true).value(), "x"); });
  threads.emplace_back([&] {
    for (int i = 0; i < 200; ++i) EXPECT_FALSE(client.Get("nobody"));
    EXPECT_EQ(client.PutNodeAttribute("late", "x"), "");
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(client.Finalize(), "");
}

// A server that tells of a death before it answers each question, and of one more behind it.
TEST_F(PmiClient, HearsOfDeathsBetweenAnswersAndBesideThem) {
  const std::string kWorld(32, 'e');
  for (const char* version : {"1", "2"}) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    std::atomic<int> told = 0;
    std::thread launcher([&told, &kWorld, fd = ends[1]] {
      FakeOwner owner;
      Server server({"kvs_9", 100, 3, {{0, 4}}, {{kDeathsKey, "yes"}}}, &owner);
      char block[256];
      for (ssize_t count; (count = read(fd, block, sizeof(block))) > 0;) {
        server.TellDeaths({++told});
        server.Receive(0, {block, static_cast<size_t>(count)});
        server.TellDeaths({++told}, kWorld);
        const std::string answer = std::exchange(owner.sent, {});
        EXPECT_EQ(write(fd, answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
      }
      close(fd);
    });
    SetPlace(ends[0]);
    setenv("PMI_SIZE", "100", 1);
    setenv("WEFT_PMI", version, 1);
    auto connected = Client::Connect();
    ASSERT_TRUE(connected) << connected.error().message;
    Client& client = *connected.value();
    std::mutex mutex;
    std::vector<int> died;
    EXPECT_TRUE(client.WatchDeaths([&](const std::string& world, int rank) {
      const std::lock_guard lock(mutex);
      EXPECT_EQ(world, rank % 2 == 0 ? kWorld : "") << rank;
      died.push_back(rank);
    }));
    std::atomic<bool> stop = false;
    std::thread watcher([&] {
      for (pollfd entry{client.fd(), POLLIN, 0}; !stop;) {
        if (poll(&entry, 1, 1) > 0) {
          EXPECT_TRUE(client.Hear());
        }
      }
    });
    for (int i = 0; i < 20; ++i) EXPECT_FALSE(client.Get("nobody"));
    const auto heard = [&] {
      const std::lock_guard lock(mutex);
      return died.size();
    };
    while (heard() < static_cast<size_t>(told)) std::this_thread::yield();
    EXPECT_EQ(client.Finalize(), "");
    stop = true;
    watcher.join();
    EXPECT_GT(told, 40);
    // Those of before the watch, too, of its own job first.
    std::sort(died.begin(), died.begin() + 40);
    for (size_t i = 0; i < 40; ++i) EXPECT_EQ(died[i], static_cast<int>(i) + 1);
    connected.value().reset();
    launcher.join();
  }
}

TEST_F(PmiClient, ProvesTheSecretOfAFile) {
  const std::string path = ::testing::TempDir() + "/secret";
  for (const auto& [written, welcome] : {std::pair{"open sesame", true}, {"guess", false}}) {
    std::ofstream(path) << written << "\n";
    ASSERT_EQ(chmod(path.c_str(), 0600), 0);
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    Peer peer(ends[1], "", "open sesame");
    SetPlace(ends[0]);
    setenv("WEFT_PMI", "2", 1);
    setenv("WEFT_PMI_SECRET_FILE", path.c_str(), 1);
    const std::string error = ErrorOfConnect();
    EXPECT_EQ(error, welcome ? "connected" : "the launcher closed its connection before it sent cmd=fullinit-response");
  }
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  EXPECT_THAT(ErrorOfConnect(), HasSubstr("can be read by others: mode 640; chmod 600 it"));
  setenv("WEFT_PMI_SECRET_FILE", "/nonexistent", 1);
  EXPECT_EQ(ErrorOfConnect(), "WEFT_PMI_SECRET_FILE: cannot read the file of the secret, /nonexistent: No such file or directory");
  setenv("WEFT_PMI_SECRET_FILE", "/dev/null", 1);
  EXPECT_THAT(ErrorOfConnect(), HasSubstr("/dev/null: it is a device, not a file"));
}

std::string Part(const std::string& text) {
  const std::string length = std::to_string(text.size());
  return length + std::string(6 - length.size(), ' ') + text;  // Slurm's way
}

// What Slurm's pmi2 plugin answers, without a thrid, to what it asks for.
TEST_F(PmiClient, SpeaksVersion2UnderSlurm) {
  setenv("PMI_JOBID", "77.0", 1);
  setenv("SLURM_JOB_ID", "77", 1);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const std::string answers = "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n" +
                              Part("cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank=0;size=1;appnum=-1;debugged=FALSE;"
                                   "pmiverbose=FALSE;") +
                              Part("cmd=job-getid-response;rc=0;jobid=77.0;") +
                              Part("cmd=info-getjobattr-response;rc=0;found=TRUE;value=4;") +
                              Part("cmd=name-lookup-response;rc=0;value=p;") + Part("cmd=name-lookup-response;rc=1;") +
                              Part("cmd=spawn-response;rc=14;errmsg=spawn failed;");
  ASSERT_EQ(write(ends[1], answers.data(), answers.size()), static_cast<ssize_t>(answers.size()));
  shutdown(ends[1], SHUT_WR);
  SetPlace(ends[0]);
  {
    auto connected = Client::Connect();
    ASSERT_TRUE(connected) << connected.error().message;
    Client& client = *connected.value();
    EXPECT_EQ(client.pmi_version(), 2);
    EXPECT_EQ(client.universe_size(), 4);
    EXPECT_EQ(client.appnum(), -1);
    EXPECT_EQ(client.kvs_name(), "77.0");
    EXPECT_EQ(client.Lookup("a").value(), "p");
    EXPECT_FALSE(client.Lookup("b"));
    const Client::Spawned spawned = client.Spawn({{"x", {}, 2, {}}}, {});
    EXPECT_EQ(spawned.problem, "the launcher cannot spawn (spawn failed)");
    EXPECT_THAT(spawned.errors, ElementsAre(1, 1));
    EXPECT_THAT(client.Publish("a;b", "c"), HasSubstr("contains a semicolon"));
    EXPECT_EQ(client.ConnectJob("78.0"), "Slurm does not connect jobs (78.0)");
    EXPECT_EQ(client.DisconnectJob("78.0"), "");
  }
  std::string said(4096, 0);
  said.resize(static_cast<size_t>(read(ends[1], said.data(), said.size())));
  EXPECT_THAT(said, HasSubstr("cmd=init pmi_version=2 pmi_subversion=0\n    52cmd=fullinit;pmijobid=77.0;pmirank=0;threaded=FALSE;"));
  EXPECT_EQ(said.find("thrid"), std::string::npos) << "its spawn must begin with ncmds";
  close(ends[1]);
}

// One that knows version 2 alone says so.
TEST_F(PmiClient, TriesTheVersionThatTheLauncherKnows) {
  EXPECT_THAT(ErrorWhenToldOnly("cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=-1\n"
                                "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n"),
              HasSubstr("closed its connection before it sent cmd=fullinit-response"));
  setenv("WEFT_PMI", "2", 1);
  EXPECT_THAT(ErrorWhenToldOnly("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n"), HasSubstr("refuses PMI version 2"));
  EXPECT_THAT(ErrorWhenToldOnly("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"), HasSubstr("refuses PMI version 2"));
  setenv("WEFT_PMI", "3", 1);
  EXPECT_THAT(ErrorWhenToldOnly(""), HasSubstr("WEFT_PMI=3 is not a version of PMI; it can be 1, 2 or alone"));
}

TEST_F(PmiClient, SaysWhatTheLauncherDidWrongInVersion2) {
  setenv("WEFT_PMI", "2", 1);
  const std::string hello = "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n";
  EXPECT_THAT(ErrorWhenToldOnly(hello + "nonsense"), HasSubstr("the launcher sent 'nonsen' instead of the length of a message"));
  EXPECT_THAT(ErrorWhenToldOnly(hello + Part("cmd=fullinit-response;rc=3;errmsg=go away;")), HasSubstr("refuses this process (go away)"));
  EXPECT_THAT(ErrorWhenToldOnly(hello + Part("cmd=fullinit-response;rc=0;")), HasSubstr("rank -1 of -1"));
  EXPECT_THAT(ErrorWhenToldOnly(hello + Part("cmd=kvs-get-response;rc=0;")), HasSubstr("instead of cmd=fullinit-response"));
  EXPECT_THAT(ErrorWhenToldOnly(hello + Part("cmd=fullinit-response;rc=0;rank=0;size=1;appnum=0;") + Part("cmd=job-getid-response;thrid=77;rc=0;jobid=a;")),
              HasSubstr("thrid=77;rc=0;jobid=a;' instead of cmd=job-getid-response"));
}

TEST_F(PmiClient, KnowsThatItWasSpawned) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  Peer peer(ends[1]);
  SetPlace(ends[0]);
  setenv("PMI_SPAWNED", "1", 1);
  auto client = Client::Connect();
  ASSERT_TRUE(client) << client.error().message;
  EXPECT_TRUE(client.value()->spawned());
  EXPECT_EQ(client.value()->Finalize(), "");
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
  EXPECT_FALSE(client.spawned());
  EXPECT_EQ(client.PutNodeAttribute("a", "b"), "");
  EXPECT_EQ(client.NodeAttribute("a", false).value(), "b");
  EXPECT_EQ(client.NodeAttribute("c", false).value(), std::nullopt);
  EXPECT_THAT(client.NodeAttribute("c", true).error().message, HasSubstr("no other process can put the attribute c"));
  EXPECT_EQ(client.Finalize(), "");
}

// With an mpiexec that is one, tests/mpi_dynamic has it.
TEST_F(PmiClient, SaysWhichMpiexecAJobOfOneCannotStart) {
  auto connected = Client::Connect();
  ASSERT_TRUE(connected);
  Client& client = *connected.value();
  EXPECT_THAT(client.Publish("a", "b"), HasSubstr("/bin/mpiexec; WEFT_PMI_MPIEXEC can name another place")) << "beside a test there is none";
  setenv("WEFT_PMI_MPIEXEC", "/no/such/mpiexec", 1);
  EXPECT_THAT(client.Unpublish("a"), HasSubstr("WEFT_PMI_MPIEXEC=/no/such/mpiexec cannot be executed: No such file"));
  setenv("WEFT_PMI_MPIEXEC", "/bin/false", 1);
  EXPECT_THAT(client.Lookup("a").error().message, HasSubstr("/bin/false ended before it had started a job"));
  EXPECT_THAT(client.Spawn({{"x", {}, 2, {}}}, {}).problem, HasSubstr("/bin/false ended"));
  EXPECT_THAT(client.Spawn({{"x", {}, 2, {}}}, {}).errors, ElementsAre(1, 1));
  EXPECT_EQ(client.Finalize(), "");
  unsetenv("WEFT_PMI_MPIEXEC");
}

TEST_F(PmiClient, NamesALauncherThatItDoesNotUnderstand) {
  const std::pair<const char*, const char*> pmix[] = {{"PMIX_NAMESPACE", "slurm.pmix.20.0"}, {"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}};
  for (const auto& [name, value] : pmix) setenv(name, value, 1);
  EXPECT_THAT(ErrorOfConnect(), HasSubstr("started through PMIx (PMIX_NAMESPACE=slurm.pmix.20.0)"));
  setenv("WEFT_PMI", "alone", 1);
  EXPECT_TRUE(Client::Connect().value()->is_singleton());
  unsetenv("WEFT_PMI");
  setenv("SLURM_STEP_NUM_TASKS", "1", 1);
  EXPECT_TRUE(Client::Connect().value()->is_singleton());
  for (const auto& [name, value] : pmix) unsetenv(name);
}

TEST_F(PmiClient, WarnsWhereSrunStartedSeveralThatDoNotKnowOfOneAnother) {
  const std::pair<const char*, const char*> step[] = {{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "0"}};
  for (const auto& [name, value] : step) setenv(name, value, 1);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(Client::Connect().value()->is_singleton());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("srun started 4 tasks that do not know each other"));
  for (const auto& [name, value] : step) unsetenv(name);
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
  EXPECT_THAT(ErrorWhenToldOnly("cmd=maxes\n"), HasSubstr("answered 'cmd=maxes?' instead of cmd=response_to_init"));
  EXPECT_THAT(ErrorWhenToldOnly("hello\n"), HasSubstr("'hello'"));
  EXPECT_THAT(ErrorWhenToldOnly("cmd=response_to_init rc=0\ncmd=maxes keylen_max=64\n"), HasSubstr("allows nothing"));
  EXPECT_THAT(ErrorWhenToldOnly("cmd=response_to_init rc=0\ncmd=maxes keylen_max=64 vallen_max=0\n"),
              HasSubstr("allows nothing"));
  EXPECT_THAT(ErrorWhenToldOnly("cmd=response_to_init rc=0\ncmd=maxes keylen_max=64 vallen_max=9\ncmd=appnum appnum=0\n"
                                "cmd=universe_size size=infinite\ncmd=my_kvsname\n"),
              HasSubstr("answered the request for the job's name with"));
}

}  // namespace
}  // namespace weft::pmi
