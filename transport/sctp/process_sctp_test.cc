// SCTP between processes, over the kernel's sockets on loopback. Real time: what is waited for has bounds that a busy
// machine keeps.
#include "transport/sctp/process_sctp.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>

#include "base/check.h"
#include "transport/local_address.h"
#include "transport/sctp/testing/locked_recorder.h"
#include "transport/sctp/testing/recorder.h"
#include "transport/tcp_network.h"

// Of LeakSanitizer. In a child of fork() what the parent's threads had on their stacks, and the parent's usrsctp, are
// nobody's.
const pid_t g_first = getpid();
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off();
int __lsan_is_turned_off() { return getpid() != g_first; }

namespace weft::transport::sctp {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<uint8_t> Pattern(size_t length, uint8_t first) {
  std::vector<uint8_t> bytes(length);
  std::iota(bytes.begin(), bytes.end(), first);
  return bytes;
}

class Echo : public ReadyHandler {
 public:
  explicit Echo(std::unique_ptr<Listener> listener) : listener_(std::move(listener)) {}
  void OnReady(Interest) override {
    while (true) {
      auto association = listener_->Accept();
      if (!association) return;
      auto recorder = std::make_shared<Recorder>();
      recorder->association = std::move(association).value();
      recorder->then = [](Recorder& self) {
        for (Recorder::Message& message : self.messages)
          self.Queue(message.info.stream, message.info.ppid, std::move(message.bytes));
        self.messages.clear();
      };
      recorder->association->Watch(recorder);  // for ever
    }
  }
  Listener& listener() { return *listener_; }

 private:
  std::unique_ptr<Listener> listener_;
};

struct Ports {
  uint16_t sctp = 0, udp = 0;
};

Ports ServeEcho(const std::string& host, const Carriage& carriage, const Settings& settings) {
  auto sctp = ProcessSctp(ProcessNetwork(), carriage);
  if (!sctp) return {};
  auto listener = (*sctp)->Listen(*SocketAddress::Parse(host, 0), 1000, settings);
  if (!listener) return {};
  auto echo = std::make_shared<Echo>(std::move(listener).value());
  echo->listener().Watch(echo);  // for ever
  return {echo->listener().LocalAddresses().at(0).port(), (*sctp)->udp_port()};
}

// A process that echoes until it is told to exit.
class EchoProcess {
 public:
  explicit EchoProcess(const std::string& host, const Carriage& carriage = {}, const Settings& settings = {},
                       uid_t user = 0) {
    int up[2], down[2];
    EXPECT_EQ(pipe2(up, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(down, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      if (user != 0 && setuid(user) != 0) _exit(3);
      const Ports ports = ServeEcho(host, carriage, settings);
      if (write(up[1], &ports, sizeof ports) != sizeof ports) _exit(4);
      char byte;
      close(down[1]);
      if (read(down[0], &byte, 1) < 0) _exit(5);
      std::exit(0);  // its handlers run
    }
    close(up[1]);
    close(down[0]);
    tell_ = down[1];
    Ports ports;
    EXPECT_EQ(read(up[0], &ports, sizeof ports), static_cast<ssize_t>(sizeof ports));
    ports_ = ports;
    close(up[0]);
  }
  ~EchoProcess() {
    if (stopped_) kill(pid_, SIGKILL);
    Exit();
  }
  const Ports& ports() const { return ports_; }
  int Exit() {
    if (pid_ <= 0) return 0;
    close(tell_);
    int status = -1;
    waitpid(std::exchange(pid_, 0), &status, 0);
    return status;
  }
  // Returns when none of its threads runs.
  void Stop() {
    kill(pid_, SIGSTOP);
    stopped_ = true;
    for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/task")) {
      for (std::string text; text.find(") T ") == std::string::npos;)
        std::getline(std::ifstream(task.path() / "stat"), text);
    }
  }
  void Kill() {
    kill(pid_, SIGKILL);
    stopped_ = false;
    Exit();
  }

 private:
  bool stopped_ = false;
  pid_t pid_ = 0;
  int tell_ = -1;
  Ports ports_;
};

Sctp& Ours(const Carriage& carriage = {}) {
  auto sctp = ProcessSctp(ProcessNetwork(), carriage);
  WEFT_CHECK(sctp.ok());
  return **sctp;
}

std::shared_ptr<Locked> ConnectTo(const std::string& host, const Ports& ports, const Settings& settings = {},
                                  const Carriage& carriage = {}) {
  auto association = Ours(carriage).Connect({{*SocketAddress::Parse(host, ports.sctp)}, ports.udp}, 0, settings);
  EXPECT_TRUE(association.ok()) << strerror(association.error());
  return association ? Locked::Of(std::move(association).value()) : nullptr;
}

void ExpectEcho(Locked& client) {
  ASSERT_TRUE(client.Until([](Recorder& r) { return r.up.has_value() || r.over(); }));
  client.With([](Recorder& r) {
    ASSERT_EQ(r.error, 0) << strerror(r.error);
    r.Queue(1, 7, Pattern(64, 1));
    r.Queue(2, 8, Pattern(200'000, 2));
  });
  ASSERT_TRUE(client.Until([](Recorder& r) { return r.messages.size() == 2; }));
  client.With([](Recorder& r) {
    for (const auto& message : r.messages)
      EXPECT_EQ(message.bytes, message.info.ppid == 7 ? Pattern(64, 1) : Pattern(200'000, 2));
    r.messages.clear();
  });
}

// In a process of its own, whose failures count.
void InChild(const std::function<void()>& what) {
  const pid_t pid = fork();
  if (pid == 0) {
    what();
    std::exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

size_t OpenDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

// As long as it lives this process can open `spare` descriptors and no more.
class FewDescriptors {
 public:
  explicit FewDescriptors(size_t spare) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = OpenDescriptors() + 16;
    WEFT_CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    for (int fd = dup(0); fd >= 0; fd = dup(0)) taken_.push_back(fd);
    for (; spare > 0; --spare) Give();
  }
  ~FewDescriptors() {
    while (!taken_.empty()) Give();
    setrlimit(RLIMIT_NOFILE, &before_);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  void Give() {
    close(taken_.back());
    taken_.pop_back();
  }
  rlimit before_{};
  std::vector<int> taken_;
};

bool IsRoot() { return geteuid() == 0; }

TEST(ProcessSctp, TwoProcessesOverUdpOnIPv4) {
  EchoProcess server("127.0.0.1");
  ASSERT_NE(server.ports().udp, 0);
  InChild([&] {
    auto client = ConnectTo("127.0.0.1", server.ports());
    ExpectEcho(*client);
    EXPECT_NE(Ours().udp_port(), server.ports().udp);
  });
}

TEST(ProcessSctp, TwoProcessesOverUdpOnIPv6) {
  EchoProcess server("::1");
  ASSERT_NE(server.ports().udp, 0);
  InChild([&] { ExpectEcho(*ConnectTo("::1", server.ports())); });
}

TEST(ProcessSctp, AWildcardListenerTakesBothFamilies) {
  EchoProcess server("::");
  ASSERT_NE(server.ports().udp, 0);
  InChild([&] {
    ExpectEcho(*ConnectTo("::1", server.ports()));
    ExpectEcho(*ConnectTo("127.0.0.1", server.ports()));
  });
}

TEST(ProcessSctp, AnOrdinaryUserNeedsNoPrivilegeForUdpAndIsRefusedIp) {
  if (!IsRoot()) GTEST_SKIP() << "the other tests show it: this one gives privileges up, and there are none";
  EchoProcess server("127.0.0.1", {}, {}, 65534);
  ASSERT_NE(server.ports().udp, 0);
  InChild([&] {
    ASSERT_EQ(setuid(65534), 0);
    auto native = ProcessSctp(ProcessNetwork(), {.native = true});
    ASSERT_FALSE(native.ok());
    EXPECT_EQ(native.error(), EPERM);
    ExpectEcho(*ConnectTo("127.0.0.1", server.ports()));
  });
}

TEST(ProcessSctp, NativelyOverIpAsRoot) {
  if (!IsRoot()) GTEST_SKIP() << "raw sockets need CAP_NET_RAW";
  const Carriage native{.udp = false, .native = true};
  for (const char* host : {"127.0.0.1", "::1"}) {
    EchoProcess server(host, native);
    ASSERT_NE(server.ports().sctp, 0);
    ASSERT_EQ(server.ports().udp, 0);
    // Others of this host see the same packets, and leave them alone.
    EchoProcess bystander(host, native);
    InChild([&] { ExpectEcho(*ConnectTo(host, server.ports(), {}, native)); });
  }
}

TEST(ProcessSctp, AProcessTalksToItself) {
  InChild([] {
    const Ports ports = ServeEcho("127.0.0.1", {}, {});
    ExpectEcho(*ConnectTo("127.0.0.1", ports));
  });
}

TEST(ProcessSctp, APeerThatExitsSaysSo) {
  EchoProcess server("127.0.0.1");
  auto client = ConnectTo("127.0.0.1", server.ports());
  ExpectEcho(*client);
  EXPECT_EQ(server.Exit(), 0);
  ASSERT_TRUE(client->Until([](Recorder& r) { return r.over(); }));
  client->With([](Recorder& r) { EXPECT_EQ(r.error, ECONNRESET); });
}

// Takes all that comes, of one peer after the other.
class Taker : public ReadyHandler {
 public:
  explicit Taker(std::unique_ptr<Listener> listener) : listener_(std::move(listener)) {}
  void OnReady(Interest) override {
    const std::lock_guard lock(mutex_);
    while (auto association = listener_->Accept()) accepted_.push_back(Locked::Of(std::move(association).value()));
    changed_.notify_all();
  }
  Listener& listener() { return *listener_; }
  std::shared_ptr<Locked> Next() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, seconds(20), [&] { return !accepted_.empty(); })) return nullptr;
    auto next = std::move(accepted_.back());
    accepted_.pop_back();
    return next;
  }

 private:
  std::unique_ptr<Listener> listener_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Locked>> accepted_;
};

// Of a process that sends, shuts down, and exits.
void ExpectAllOfAProcessThatExits(const Carriage& carriage) {
  constexpr size_t kMessages = 60, kLength = 20'000;
  auto listener = Ours(carriage).Listen(*SocketAddress::Parse("127.0.0.1", 0), 16, {});
  ASSERT_TRUE(listener.ok());
  const auto taker = std::make_shared<Taker>(std::move(listener).value());
  taker->listener().Watch(taker);  // for ever
  const Ports ports{taker->listener().LocalAddresses().at(0).port(), Ours(carriage).udp_port()};
  for (int round = 0; round < 10; ++round) {
    InChild([&] {
      auto client = ConnectTo("127.0.0.1", ports, {}, carriage);
      ASSERT_TRUE(client->Until([](Recorder& r) { return r.up.has_value() || r.over(); }));
      client->With([](Recorder& r) {
        for (size_t i = 0; i < kMessages; ++i) r.Queue(0, 1, Pattern(kLength, 1));
      });
      ASSERT_TRUE(client->Until([](Recorder& r) { return r.all_sent() || r.over(); }));
      client->With([](Recorder& r) {
        r.association->Shutdown();
        r.association.reset();
      });
    });
    const auto server = taker->Next();
    ASSERT_NE(server, nullptr);
    EXPECT_TRUE(server->Until([](Recorder& r) { return r.over(); }));
    server->With([](Recorder& r) { EXPECT_EQ(r.bytes_received, kMessages * kLength) << strerror(r.error); });
  }
}

TEST(ProcessSctp, WhatAProcessSentBeforeItShutDownArrivesThoughItExits) { ExpectAllOfAProcessThatExits({}); }

TEST(ProcessSctp, WhatAProcessSentInIpBeforeItShutDownArrivesThoughItExits) {
  if (!IsRoot()) GTEST_SKIP() << "raw sockets need CAP_NET_RAW";
  InChild([] { ExpectAllOfAProcessThatExits({.udp = false, .native = true}); });
}

// As long as packets of its peers come; in IP those of all others of the host come, too.
TEST(ProcessSctp, AnExitInIpDoesNotWaitForASilentPeerBecauseOthersTalk) {
  if (!IsRoot()) GTEST_SKIP() << "raw sockets need CAP_NET_RAW";
  const Carriage native{.udp = false, .native = true};
  EchoProcess silent("127.0.0.1", native), busy("127.0.0.1", native);
  const pid_t talker = fork();
  if (talker == 0) {
    const auto client = ConnectTo("127.0.0.1", busy.ports(), {}, native);
    while (!testing::Test::HasFatalFailure()) ExpectEcho(*client);
    _exit(1);
  }
  const auto began = std::chrono::steady_clock::now();
  InChild([&] {
    auto client = ConnectTo("127.0.0.1", silent.ports(), {}, native);
    ExpectEcho(*client);
    silent.Stop();
    client->With([](Recorder& r) {
      r.Queue(0, 1, Pattern(100, 1));
      r.association->Shutdown();
      r.association.reset();
    });
  });
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(6));
  kill(talker, SIGKILL);
  waitpid(talker, nullptr, 0);
  silent.Kill();
}

// In IP every process of a host gets the packets of all: with one port of SCTP two would answer each other's.
TEST(ProcessSctp, PortsThatAreChosenInIpAreOneProcesssAlone) {
  if (!IsRoot()) GTEST_SKIP() << "raw sockets need CAP_NET_RAW";
  const Carriage native{.udp = false, .native = true};
  EchoProcess server("127.0.0.1", native);
  const auto is_free = [](uint16_t port) {  // as who would have it: by the number, in TCP's ports
    PortReservation attempt;
    const int error = attempt.Reserve(*SocketAddress::Parse("127.0.0.1", port), {});
    EXPECT_TRUE(error == 0 || error == EADDRINUSE) << strerror(error);
    return error == 0;
  };
  EXPECT_FALSE(is_free(server.ports().sctp));
  int out[2];
  ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
  InChild([&] {
    auto client = ConnectTo("127.0.0.1", server.ports(), {}, native);
    ExpectEcho(*client);
    client->With([&](Recorder& r) {
      const uint16_t port = r.association->LocalAddresses().at(0).port();
      EXPECT_FALSE(is_free(port));
      EXPECT_EQ(write(out[1], &port, sizeof port), static_cast<ssize_t>(sizeof port));
      r.association->Abort("");
      r.association.reset();
      EXPECT_TRUE(is_free(port)) << "what was aborted needs no port";
    });
  });
  uint16_t port = 0;
  ASSERT_EQ(read(out[0], &port, sizeof port), static_cast<ssize_t>(sizeof port));
  for (const int fd : out) close(fd);
  EXPECT_TRUE(is_free(port));
}

// Its kernel says so to the next packet, if only a HEARTBEAT. With the settings' times it would take 20 s.
TEST(ProcessSctp, APeerWhoseProcessIsKilledIsNoticedByItsKernelsWord) {
  for (const char* host : {"127.0.0.1", "::1"}) {
    EchoProcess server(host), other(host);
    auto client = ConnectTo(host, server.ports()), idle = ConnectTo(host, server.ports()), unharmed = ConnectTo(host, other.ports());
    ExpectEcho(*client);
    ExpectEcho(*idle);
    ExpectEcho(*unharmed);
    server.Kill();
    client->With([](Recorder& r) { r.Queue(0, 1, Pattern(100, 1)); });
    for (const auto& one : {client, idle}) {
      ASSERT_TRUE(one->Until([](Recorder& r) { return r.over(); }, seconds(10)));
      one->With([](Recorder& r) { EXPECT_EQ(r.error, ECONNRESET); });
    }
    ExpectEcho(*unharmed);
  }
}

TEST(ProcessSctp, ASilentPeerIsNoticedWithinTheSettings) {
  EchoProcess server("127.0.0.1");
  const Settings fast{.heartbeat_interval = milliseconds(200),
                      .rto_initial = milliseconds(200),
                      .rto_max = milliseconds(400),
                      .association_max_retransmissions = 4};
  auto client = ConnectTo("127.0.0.1", server.ports(), fast);
  ExpectEcho(*client);
  server.Stop();
  const auto began = std::chrono::steady_clock::now();
  ASSERT_TRUE(client->Until([](Recorder& r) { return r.over(); }));
  client->With([](Recorder& r) { EXPECT_EQ(r.error, ETIMEDOUT); });
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(10));
  server.Kill();
}

// Two processes of a host that chose the same port of SCTP: their associations would be one to whoever they connect to.
TEST(ProcessSctp, TheSecondProcessWithAnSctpPortIsRefusedAtOnceAndTheFirstGoesOn) {
  EchoProcess server("127.0.0.1");
  const Peer peer{{*SocketAddress::Parse("127.0.0.1", server.ports().sctp)}, server.ports().udp};
  const auto first = Locked::Of(Ours().Connect(peer, 4000, {}).value());
  ExpectEcho(*first);
  InChild([&] {
    const auto second = Locked::Of(Ours().Connect(peer, 4000, {}).value());
    ASSERT_TRUE(second->Until([](Recorder& r) { return r.over(); }, seconds(5)));
    second->With([](Recorder& r) { EXPECT_EQ(r.error, EADDRINUSE); });
    ExpectEcho(*Locked::Of(Ours().Connect(peer, 4001, {}).value()));
  });
  ExpectEcho(*first);
}

TEST(ProcessSctp, NobodyListeningIsRefusedAtOnce) {
  EchoProcess server("127.0.0.1");
  auto client = ConnectTo("127.0.0.1", {.sctp = 1, .udp = server.ports().udp});
  ASSERT_TRUE(client->Until([](Recorder& r) { return r.over(); }));
  client->With([](Recorder& r) { EXPECT_EQ(r.error, ECONNREFUSED); });
}

TEST(ProcessSctp, WhoseProcessIsGoneRefusesAtOnceByItsKernelsWord) {
  for (const char* host : {"127.0.0.1", "::1"}) {
    EchoProcess server(host), other(host);
    server.Kill();
    const auto began = std::chrono::steady_clock::now();
    auto client = ConnectTo(host, server.ports()), unharmed = ConnectTo(host, other.ports());
    ASSERT_TRUE(client->Until([](Recorder& r) { return r.over(); }));
    client->With([](Recorder& r) { EXPECT_EQ(r.error, ECONNREFUSED); });
    EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(2)) << "of the next INIT";
    ExpectEcho(*unharmed);
  }
}

TEST(ProcessSctp, AForkedChildHasSctpOfItsOwnAndTheParentsGoesOn) {
  EchoProcess server("127.0.0.1");
  auto client = ConnectTo("127.0.0.1", server.ports());
  ExpectEcho(*client);
  const uint16_t parents = Ours().udp_port();
  InChild([&] {
    client->With([](Recorder& r) {
      const uint8_t byte = 0;
      const iovec piece{.iov_base = const_cast<uint8_t*>(&byte), .iov_len = 1};
      EXPECT_EQ(r.association->Send({.pieces = {&piece, 1}}).error, ECHILD);
      r.association.reset();  // says nothing to the peer
    });
    EXPECT_NE(Ours().udp_port(), parents);
    ExpectEcho(*ConnectTo("127.0.0.1", server.ports()));
  });
  ExpectEcho(*client);
}

// Connects a thousand times, and hears something on each.
std::vector<std::shared_ptr<Locked>> AThousand(const EchoProcess& server, const Carriage& carriage) {
  std::vector<std::shared_ptr<Locked>> clients;
  for (int i = 0; i < 1000; ++i)
    clients.push_back(ConnectTo("127.0.0.1", server.ports(), {.streams_out = 2, .streams_in = 2}, carriage));
  for (auto& client : clients) {
    EXPECT_TRUE(client->Until([](Recorder& r) { return r.up.has_value() || r.over(); }));
    client->With([](Recorder& r) {
      EXPECT_EQ(r.error, 0) << strerror(r.error);
      r.Queue(0, 1, {1});
    });
  }
  for (auto& client : clients) EXPECT_TRUE(client->Until([](Recorder& r) { return r.messages.size() == 1; }));
  return clients;
}

TEST(ProcessSctp, AThousandAssociationsNeedNoDescriptor) {
  EchoProcess server("127.0.0.1");
  InChild([&] {
    Ours();
    const size_t before = OpenDescriptors();
    const auto clients = AThousand(server, {});
    EXPECT_EQ(OpenDescriptors(), before);
  });
}

TEST(ProcessSctp, AThousandInIpHaveADescriptorEachForTheirPortsAndGiveItBack) {
  if (!IsRoot()) GTEST_SKIP() << "raw sockets need CAP_NET_RAW";
  const Carriage native{.udp = false, .native = true};
  EchoProcess server("127.0.0.1", native);
  InChild([&] {
    Ours(native);
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, 4096));
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    const size_t before = OpenDescriptors();
    auto clients = AThousand(server, native);
    EXPECT_EQ(OpenDescriptors(), before + clients.size());
    for (auto& client : clients) {
      client->With([](Recorder& r) {
        r.association->Abort("");
        r.association.reset();
      });
    }
    EXPECT_EQ(OpenDescriptors(), before);
  });
}

TEST(ProcessSctp, WithoutDescriptorsItIsAnErrorAndLaterItWorks) {
  EchoProcess server("127.0.0.1");
  InChild([&] {
    ProcessNetwork().Post([] {});  // which needs some itself
    {
      const FewDescriptors none(0);
      auto refused = ProcessSctp(ProcessNetwork(), {});
      ASSERT_FALSE(refused.ok());
      EXPECT_EQ(refused.error(), EMFILE);
    }
    ExpectEcho(*ConnectTo("127.0.0.1", server.ports()));
  });
}

TEST(ProcessSctp, WithoutADescriptorForAPortInIpItIsAnErrorAndLaterItWorks) {
  if (!IsRoot()) GTEST_SKIP() << "raw sockets need CAP_NET_RAW";
  const Carriage native{.udp = false, .native = true};
  EchoProcess server("127.0.0.1", native);
  InChild([&] {
    Ours(native);
    const Peer peer{{*SocketAddress::Parse("127.0.0.1", server.ports().sctp)}, 0};
    // Once with all: UBSan needs a descriptor when it first sees a type.
    EXPECT_TRUE(Ours(native).Connect(peer, 0, {}).ok());
    {
      const FewDescriptors two(2);  // the look at the routes needs one for a moment
      const auto first = Ours(native).Connect(peer, 0, {});
      EXPECT_TRUE(first.ok());
      const auto second = Ours(native).Connect(peer, 0, {});
      ASSERT_TRUE(second.ok());
      const auto third = Ours(native).Connect(peer, 0, {});
      ASSERT_FALSE(third.ok());
      EXPECT_TRUE(third.error() == EMFILE || third.error() == ENOBUFS) << strerror(third.error());
    }
    ExpectEcho(*ConnectTo("127.0.0.1", server.ports(), {}, native));
  });
}

TEST(ProcessSctp, AUdpPortThatIsTakenIsAnError) {
  EchoProcess server("127.0.0.1");
  InChild([&] {
    auto taken = ProcessSctp(ProcessNetwork(), {.udp_port = server.ports().udp});
    ASSERT_FALSE(taken.ok());
    EXPECT_EQ(taken.error(), EADDRINUSE);
  });
}

TEST(ProcessSctp, ASpinningThreadNeedsNobodyElse) {
  EchoProcess server("127.0.0.1");
  InChild([&] {
    auto made = Ours().Connect({{*SocketAddress::Parse("127.0.0.1", server.ports().sctp)}, server.ports().udp}, 0, {});
    ASSERT_TRUE(made.ok());
    auto association = std::move(made).value();
    std::vector<uint8_t> room(65536);
    const iovec into{.iov_base = room.data(), .iov_len = room.size()};
    int answers = 0;
    const auto until = std::chrono::steady_clock::now() + seconds(20);
    while (answers < 1000 && std::chrono::steady_clock::now() < until) {
      ProcessNetwork().DriveInline();
      Ours().Poll(association.get());
      const Received received = association->Receive({&into, 1});
      ASSERT_NE(received.kind, Received::Kind::kFailed) << strerror(received.error);
      if (received.kind == Received::Kind::kNothing) continue;
      answers += received.kind == Received::Kind::kMessage;
      const iovec piece{.iov_base = room.data(), .iov_len = 64};
      if (received.kind == Received::Kind::kMessage || received.event.kind == Event::Kind::kUp)
        association->Send({.pieces = {&piece, 1}});
    }
    EXPECT_EQ(answers, 1000);
  });
}

TEST(ProcessSctp, ManyThreadsOnManyAssociations) {
  EchoProcess server("127.0.0.1");
  InChild([&] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 5; ++i) ExpectEcho(*ConnectTo("127.0.0.1", server.ports()));
      });
    }
    for (auto& thread : threads) thread.join();
  });
}

}  // namespace
}  // namespace weft::transport::sctp
