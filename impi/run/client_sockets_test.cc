// Clients with real sockets on 127.0.0.0/8 beside a server process: start, dance, packets, end.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <thread>

#include "base/descriptor.h"
#include "base/uncancelled.h"
#include "impi/agent/inlet.h"
#include "impi/client/report.h"
#include "impi/entry/hello.h"
#include "impi/entry/welcome.h"
#include "impi/job/announcement.h"
#include "impi/job/testing/jobs.h"
#include "impi/run/carry.h"
#include "impi/run/connect.h"
#include "impi/run/enter.h"
#include "impi/run/join.h"
#include "impi/run/serve.h"
#include "pmi/launch/port_range.h"
#include "pmi/launch/sockets.h"

namespace weft::impi {
namespace {

constexpr uint64_t kKey = 5678;

HostId Loopback(int host) { return HostIdOfIpv4(inet_addr(("127.0.0." + std::to_string(host)).c_str())); }

// `impirun -server` in a process of its own, because it takes the signals.
class ServerProcess {
 public:
  explicit ServerProcess(int clients) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    process_ = fork();
    if (process_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      close(ends[1]);
      ServerOptions options;
      options.clients = clients;
      options.authentication = {{AuthMethod::kKey}, kKey};
      _exit(ServeJob(options));
    }
    close(ends[1]);
    FILE* const line = fdopen(ends[0], "r");
    char text[100] = "";
    EXPECT_NE(std::fgets(text, sizeof text, line), nullptr);
    std::fclose(line);
    port = static_cast<uint16_t>(std::atoi(std::strrchr(text, ':') + 1));
  }
  int Wait() {
    int status = -1;
    waitpid(process_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void Kill() { kill(process_, SIGKILL); }
  uint16_t port = 0;

 private:
  pid_t process_;
};

// A process of MPI in the place of a test: packets over its connection to the agent.
class FakeProcess {
 public:
  FakeProcess(Descriptor fd, std::map<HostRank, Descriptor> taken, std::string agent) : agents_address(std::move(agent)), hosts(std::move(taken)), fd_(std::move(fd)) {
    SetBlocking(fd_.get());
    for (auto& [host, connection] : hosts) SetBlocking(connection.get());
  }
  const std::string agents_address;
  std::map<HostRank, Descriptor> hosts;  // that it has taken
  // Whether the agent was there.
  bool Say(const Command& command) {
    const Bytes bytes = command.Serialize();
    return send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  // Waits until the agent closes.
  void AwaitEnd() {
    char byte;
    EXPECT_LE(read(fd_.get(), &byte, 1), 0);
  }
  void Send(const Packet& packet) {
    CarriedPacket carried(packet);
    carried.WriteHeader();
    std::fill(carried.data().begin(), carried.data().end(), static_cast<uint8_t>(packet.tag));
    size_t done = 0;
    while (done < carried.size()) {
      const ssize_t wrote = send(fd_.get(), carried.bytes.get() + done, carried.size() - done, MSG_NOSIGNAL);
      ASSERT_GT(wrote, 0);
      done += static_cast<size_t>(wrote);
    }
  }
  // nullopt: the agent closed.
  std::optional<CarriedPacket> Receive(const PacketLimits& limits) {
    Inlet inlet(limits);
    for (;;) {
      ByteSpan bytes(unread_);
      auto taken = inlet.Take(bytes);
      unread_.erase(unread_.begin(), unread_.end() - static_cast<long>(bytes.size()));
      EXPECT_TRUE(taken.ok()) << taken.error();
      if (!taken.ok()) return std::nullopt;
      if (*taken) return std::move(**taken);
      unread_.resize(65536);
      const ssize_t count = read(fd_.get(), unread_.data(), unread_.size());
      unread_.resize(static_cast<size_t>(std::max<ssize_t>(0, count)));
      if (count <= 0) return std::nullopt;
    }
  }

 private:
  static void SetBlocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK); }

  Descriptor fd_;
  std::vector<uint8_t> unread_;
};

// A client with one host at 127.0.0.(10 + rank) and so many processes, which run `program`.
struct Client {
  int rank, processes;
  uint64_t key = kKey;
  ssize_t (*send_message)(int, const msghdr*, int) = nullptr;
  std::function<void(const std::string&)> warn = [](const std::string& text) { ADD_FAILURE() << text; };
  bool takes_connections = false;
};
using Program = std::function<void(const Job&, WorldRank, FakeProcess&)>;

// How it ended; "": in order.
std::string RunClient(const Client& client, uint16_t server, const Program& program) {
  int port = 0;
  const Descriptor listener(pmi::Listen(&port));
  Announcement mine{.data_length = 65536, .tag_upper_bound = 32767, .hosts = {{Loopback(10 + client.rank), static_cast<uint32_t>(port), 10, 20, {}}}};
  for (int i = 0; i < client.processes; ++i) mine.hosts[0].processes.push_back({mine.hosts[0].address, 100 + i});
  Dialogue::Setup setup;
  setup.rank = client.rank;
  setup.key = client.key;
  setup.says = mine.ToLabels();
  auto link = ServerLink::Join("127.0.0.1", server, setup);
  if (!link.ok()) return link.error();
  const auto job = Job::Of((*link)->dialogue().clients(), (*link)->dialogue().told(), ClientRank(client.rank), mine);
  if (!job.ok()) return job.error();
  const HostRank host(client.rank);
  auto hosts = ConnectHosts(*job, {.host = host}, listener, [](const std::string&) {});
  if (!hosts.ok()) return hosts.error();
  auto agent = AgentListener::Open();
  if (!agent.ok()) return agent.error();
  Carrier::Setup carried{.agent = {.host = host}, .ranks = {}, .welcome = {}, .warn = client.warn};
  for (int i = 0; i < client.processes; ++i) carried.ranks.push_back(i);
  carried.welcome = Welcome::Serialize(ClientRank(client.rank), job->clients(), (*link)->dialogue().told(), carried.ranks, 0);
  if (client.send_message != nullptr) carried.send_message = client.send_message;
  std::vector<std::thread> programs;
  for (int i = 0; i < client.processes; ++i) {
    programs.emplace_back([&program, &client, address = agent->address, i] {
      auto entered = EnterJob(address, {.rank = i, .takes_connections = client.takes_connections});
      if (!entered.ok()) return;  // the job has failed before; otherwise it now does not end in order
      FakeProcess process(std::move(entered->agent), std::move(entered->hosts), address);
      program(entered->welcome.job, entered->welcome.self, process);
    });
  }
  Carrier carrier(*job, carried, std::move(*hosts), std::move(*agent));
  carrier.Watch((*link)->fd(), [&] {
    if (auto failed = (*link)->LookAtServer()) carrier.Fail(*failed);
  });
  const auto why = carrier.Run();
  carrier.Close();
  for (std::thread& one : programs) one.join();
  if (!why) (*link)->Leave();
  return why.value_or("");
}

std::vector<std::string> RunAll(const std::vector<Client>& clients, uint16_t server, const Program& program) {
  std::vector<std::future<std::string>> running;
  for (const Client& client : clients) running.push_back(std::async(std::launch::async, [=] { return RunClient(client, server, program); }));
  std::vector<std::string> ends;
  for (auto& one : running) ends.push_back(one.get());
  return ends;
}

// Each process sends one packet of each size to each process of other clients, and takes as many.
void Exchange(const Job& job, WorldRank rank, FakeProcess& process) {
  constexpr uint32_t kSizes[] = {0, 1, 65536};
  size_t expected = 0;
  for (size_t other = 0; other < job.processes().size(); ++other) {
    if (job.host(job.processes()[other].host).client == job.host(job.process(rank).host).client) continue;
    for (const uint32_t size : kSizes) {
      process.Send({.data_length = size, .source = job.process(rank).name, .destination = job.processes()[other].name, .message_length = size, .tag = rank.value});
      ++expected;
    }
  }
  for (; expected != 0; --expected) {
    auto packet = process.Receive(job.limits());
    ASSERT_TRUE(packet);
    EXPECT_EQ(job.Find(packet->packet.source), WorldRank(packet->packet.tag));
    EXPECT_EQ(job.Find(packet->packet.destination), rank);
    const auto data = packet->data();
    EXPECT_TRUE(std::all_of(data.begin(), data.end(), [&](uint8_t byte) { return byte == static_cast<uint8_t>(packet->packet.tag); }));
  }
  process.Send({.type = PacketType::kFini});
  EXPECT_FALSE(process.Receive(job.limits())) << "the agent closes";
}

TEST(ImpiClientSockets, ThreeClientsExchangePacketsAndEnd) {
  ServerProcess server(3);
  EXPECT_EQ(RunAll({{0, 2}, {1, 1}, {2, 3}}, server.port, Exchange), (std::vector<std::string>{"", "", ""}));
  EXPECT_EQ(server.Wait(), 0);
}

// A message goes into the empty socket of the process with each.
TEST(ImpiClientSockets, SoManyHostsAreHandedOverAndWithMoreTheAgentCarriesThePackets) {
  for (const int others : {1, 64, 65, 300}) {
    const auto announced = testing::Announcements({{1}, std::vector<int>(static_cast<size_t>(others), 1)});
    const Job job = testing::JobOf(announced, 0);
    std::map<HostRank, Descriptor> hosts;
    std::vector<Descriptor> theirs;
    for (int host = 1; host <= others; ++host) {
      int ends[2];
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      hosts.emplace(HostRank(host), Descriptor(ends[0]));
      theirs.emplace_back(ends[1]);
    }
    auto agent = AgentListener::Open();
    ASSERT_TRUE(agent.ok());
    std::thread program([&, address = agent->address] {
      const auto entered = EnterJob(address, {.rank = 0, .takes_connections = true});
      ASSERT_TRUE(entered.ok()) << entered.error();
      EXPECT_EQ(entered->hosts.size(), others <= 64 ? static_cast<size_t>(others) : 0U);
    });
    Carrier carrier(job, {.agent = {.host = HostRank(0)}, .ranks = {0}, .welcome = Welcome::Serialize(ClientRank(0), 2, testing::Tell(announced), {0}, 0), .warn = {}},
                    std::move(hosts), std::move(*agent));
    EXPECT_EQ(carrier.Run(), "rank 0 (192.0.2.1/100) of client 0 ended without MPI_Finalize");
    program.join();
  }
}

TEST(ImpiClientSockets, AClientWithAWrongKeyIsTold) {
  ServerProcess server(2);
  const std::string where = "127.0.0.1:" + std::to_string(server.port);
  EXPECT_EQ(RunClient({0, 1, 1234}, server.port, Exchange),
            "client 0: the server (" + where +
                ") closed the connection before all clients had joined; is IMPI_AUTH_KEY the same number as at the server, and is 0 a client of this job that "
                "nobody else is?");
  EXPECT_EQ(RunAll({{0, 1}, {1, 1}}, server.port, Exchange), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_EQ(RunClient({0, 1}, server.port, Exchange),
            "cannot connect to the server at " + where + "; is it running, and is this the address that it printed?");
}

TEST(ImpiClientSockets, AProcessThatDiesEndsAllClients) {
  ServerProcess server(3);
  const auto ends = RunAll({{0, 1}, {1, 1}, {2, 1}}, server.port, [](const Job& job, WorldRank rank, FakeProcess& process) {
    if (rank == WorldRank(1)) return;  // its connection is closed
    EXPECT_FALSE(process.Receive(job.limits()));
  });
  EXPECT_EQ(ends[1], "rank 1 (127.0.0.11/100) of client 1 ended without MPI_Finalize");
  for (const int other : {0, 2}) EXPECT_NE(ends[static_cast<size_t>(other)], "") << other;
  EXPECT_EQ(server.Wait(), 1);
}

// Every second call finds no memory in the kernel.
ssize_t SendWithShortage(int fd, const msghdr* message, int flags) {
  static std::atomic<unsigned> calls{0};
  if (calls++ % 2 == 1) return sendmsg(fd, message, flags);
  errno = ENOBUFS;
  return -1;
}

TEST(ImpiClientSockets, AKernelWithoutMemoryIsAskedAgain) {
  ServerProcess server(2);
  EXPECT_EQ(RunAll({{0, 2, kKey, SendWithShortage}, {1, 2}}, server.port, Exchange), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(server.Wait(), 0);
}

TEST(ImpiClientSockets, OfManyProcessesOnOneHostEachExchangesPackets) {
  ServerProcess server(2);
  EXPECT_EQ(RunAll({{0, 200}, {1, 1}}, server.port, Exchange), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(server.Wait(), 0);
}

TEST(ImpiClientSockets, StrangersAtTheAgentAreRefusedAndTheJobGoesOn) {
  ServerProcess server(2);
  std::vector<std::string> warnings;  // of one thread, until the client has ended
  const auto warn = [&](const std::string& text) { warnings.push_back(text); };
  const auto ends = RunAll({{0, 1, kKey, nullptr, warn}, {1, 1}}, server.port, [](const Job& job, WorldRank rank, FakeProcess& process) {
    if (rank == WorldRank(0)) {
      for (const int32_t wrong : {0, 1, -1}) {
        const auto entered = EnterJob(process.agents_address, {.rank = wrong});
        ASSERT_FALSE(entered.ok());
        EXPECT_TRUE(entered.error().starts_with("the agent refused this process: it says that it is rank " + std::to_string(wrong) + ", which is "))
            << entered.error();
      }
    }
    Exchange(job, rank, process);
  });
  EXPECT_EQ(ends, (std::vector<std::string>{"", ""}));
  EXPECT_EQ(warnings.size(), 3u);
  EXPECT_EQ(server.Wait(), 0);
}

std::vector<Client> ClientsThatTake() {
  std::vector<Client> clients{{0, 1}, {1, 1}, {2, 1}};
  for (Client& client : clients) client.takes_connections = true;
  return clients;
}

// The end of a process that has taken its host's connections, in the place of Agent: FINI to and from all hosts. TSan does not see that descriptors are passed
// and closed (base/uncancelled.h), so what is done with these must not be seen either.
void Finish(FakeProcess& process) {
  std::vector<uint8_t> fini(Packet::kSize), came(Packet::kSize);
  Packet{.type = PacketType::kFini}.Serialize(std::span<uint8_t, Packet::kSize>(fini.data(), Packet::kSize));
  for (const auto& [host, connection] : process.hosts) ASSERT_EQ(uncancelled::Write(connection.get(), fini.data(), fini.size()), static_cast<ssize_t>(fini.size()));
  for (const auto& [host, connection] : process.hosts) {
    ASSERT_EQ(uncancelled::Receive(connection.get(), came.data(), came.size(), MSG_WAITALL), static_cast<ssize_t>(came.size()));
    EXPECT_EQ(came, fini) << host.value;
  }
}

TEST(ImpiClientSockets, TheOnlyProcessOfAHostTakesItsConnections) {
  ServerProcess server(3);
  const auto ends = RunAll(ClientsThatTake(), server.port, [](const Job&, WorldRank rank, FakeProcess& process) {
    ASSERT_EQ(process.hosts.size(), 2u);
    EXPECT_FALSE(process.hosts.contains(HostRank(rank.value)));
    Finish(process);
    EXPECT_TRUE(process.Say({kOverCommand, {}}));
    process.AwaitEnd();
  });
  EXPECT_EQ(ends, (std::vector<std::string>{"", "", ""}));
  EXPECT_EQ(server.Wait(), 0);
}

TEST(ImpiClientSockets, WithOthersOnItsHostAProcessTakesNone) {
  ServerProcess server(2);
  std::vector<Client> clients{{0, 2}, {1, 1}};
  clients[0].takes_connections = true;  // the other one does not know of that
  const auto ends = RunAll(clients, server.port, [](const Job& job, WorldRank rank, FakeProcess& process) {
    EXPECT_TRUE(process.hosts.empty());
    Exchange(job, rank, process);
  });
  EXPECT_EQ(ends, (std::vector<std::string>{"", ""}));
  EXPECT_EQ(server.Wait(), 0);
}

// How client 0 ends whose process does `last`; the others hear of it, and only after client 0 has left.
std::string EndOf(const std::function<void(FakeProcess&)>& last) {
  ServerProcess server(3);
  const auto ends = RunAll(ClientsThatTake(), server.port, [&](const Job&, WorldRank rank, FakeProcess& process) {
    if (rank == WorldRank(0)) return last(process);
    char byte;
    EXPECT_EQ(uncancelled::Read(process.hosts.at(HostRank(0)).get(), &byte, 1), 0) << "rank " << rank.value;
    if (process.Say(FailReport{false, "host 0 left"}.ToCommand())) process.AwaitEnd();  // else its client has heard of it from the server
  });
  for (const int other : {1, 2}) EXPECT_NE(ends[static_cast<size_t>(other)], "") << other;
  EXPECT_EQ(server.Wait(), 1);
  return ends[0];
}

TEST(ImpiClientSockets, WhatAProcessReportsEndsItsClient) {
  EXPECT_EQ(EndOf([](FakeProcess& process) {
              EXPECT_TRUE(process.Say(FailReport{true, "something is wrong"}.ToCommand()));
              process.AwaitEnd();
            }),
            "something is wrong");
}

TEST(ImpiClientSockets, AProcessThatHasTakenTheConnectionsAndDiesEndsAllClients) {
  EXPECT_EQ(EndOf([](FakeProcess&) {}), "rank 0 (127.0.0.10/100) of client 0 ended without MPI_Finalize");
}

TEST(ImpiClientSockets, AProcessThatReportsSomethingElseEndsItsClient) {
  const std::string why = "rank 0 (127.0.0.10/100) of client 0 sent something else than OVER or FAIL; use impirun and the MPI library from one release";
  for (const Command& wrong : {Command{CommandCode::kFini, {}}, Command{kFailCommand, {}}, Command{kFailCommand, Bytes(kLongestReport + 1)}}) {
    EXPECT_EQ(EndOf([&](FakeProcess& process) {
                EXPECT_TRUE(process.Say(wrong));
                process.AwaitEnd();
              }),
              why);
  }
}

TEST(ImpiClientSockets, AnAddressOfNoAgentSaysWhatToDo) {
  EXPECT_EQ(EnterJob("nowhere", {}).error(), "WEFT_IMPI_AGENT is 'nowhere': not an address of an agent; impirun sets it, so leave it as it is");
  EXPECT_EQ(EnterJob("@weft-impi-no-such-agent", {}).error(),
            "cannot connect to the agent of this host (@weft-impi-no-such-agent): Connection refused; did impirun end? Its own messages may say why");
}

TEST(ImpiClientSockets, AServerThatDiesEndsAllClients) {
  ServerProcess server(2);
  const auto ends = RunAll({{0, 1}, {1, 1}}, server.port, [&](const Job& job, WorldRank rank, FakeProcess& process) {
    if (rank == WorldRank(0)) server.Kill();
    EXPECT_FALSE(process.Receive(job.limits()));
  });
  for (const std::string& why : ends) EXPECT_NE(why, "");
  server.Wait();
}

}  // namespace
}  // namespace weft::impi
