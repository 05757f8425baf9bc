// Real sockets, the real clock and the progress thread, on the loopback interface.
#include "transport/tcp_network.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <fstream>
#include <string>
#include <thread>

#include "base/file_limit.h"
#include "base/high_descriptor.h"

namespace weft::transport {
namespace {

using namespace std::chrono_literals;
using Kind = IoResult::Kind;

// Counts up; waits until a count is reached.
class Counter {
 public:
  void Add() {
    std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  int count() {
    std::lock_guard lock(mutex_);
    return count_;
  }
  bool Await(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 20s, [&] { return count_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

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

// Runs `work` on the network's thread and waits for it; everything dispatched before has then returned.
void RunThere(
    Network& network, std::function<void()> work = [] {}) {
  Counter done;
  network.Post([&] {
    work();
    done.Add();
  });
  ASSERT_TRUE(done.Await(1));
}

class TcpNetworkTest : public testing::TestWithParam<const char*> {
 protected:
  // A connected pair; the test says when anything is watched.
  void Connect() {
    auto listener = network_.Listen(*SocketAddress::Parse(GetParam(), 0), 16, false, true);
    if (!listener && listener.error() == EADDRNOTAVAIL)
      GTEST_SKIP() << "no address " << GetParam() << " on this machine";
    ASSERT_TRUE(listener);
    listener_ = std::move(listener).value();
    Counter accepted, connected;
    WatchId listening = network_.Watch(*listener_, Handler([&](Interest) {
      auto stream = listener_->Accept();
      if (!stream) return;
      server_ = std::move(stream).value();
      accepted.Add();
    }));
    client_ = network_.StartConnect({}, listener_->LocalAddress()).value();
    WatchId connecting = 0;
    RunThere(network_, [&] {
      connecting = network_.Watch(*client_, {.write = true}, Handler([&](Interest ready) {
        EXPECT_TRUE(ready.write);
        EXPECT_EQ(client_->ConnectError(), 0);
        network_.Unwatch(connecting);
        connected.Add();
      }));
    });
    ASSERT_TRUE(accepted.Await(1));
    ASSERT_TRUE(connected.Await(1));
    network_.Unwatch(listening);
    RunThere(network_);
  }

  TcpNetwork network_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<ByteStream> client_, server_;
};

INSTANTIATE_TEST_SUITE_P(Families, TcpNetworkTest, testing::Values("127.0.0.1", "::1"), [](const auto& info) {
  return std::string(info.param).find(':') == std::string::npos ? "V4" : "V6";
});

IoResult WriteText(ByteStream& stream, std::string_view text) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  return stream.Write({&part, 1});
}

TEST_P(TcpNetworkTest, AcceptsConnectsAndReportsWhatCanBeRead) {
  Connect();
  if (IsSkipped()) return;
  std::string heard;
  Counter reads, ended;
  std::atomic<WatchId> id{0};  // the handler runs on another thread
  id = network_.Watch(*server_, {.read = true}, Handler([&](Interest ready) {
    EXPECT_EQ(ready, (Interest{.read = true}));
    char buffer[16];
    iovec part{buffer, sizeof buffer};
    IoResult result = server_->Read({&part, 1});
    if (result.kind == Kind::kEndOfStream) {
      network_.SetInterest(id, {});
      ended.Add();
      return;
    }
    ASSERT_EQ(result.kind, Kind::kDone);
    heard.append(buffer, result.bytes);
    reads.Add();
  }));
  ASSERT_NE(id, 0u);
  WriteText(*client_, "hello");
  EXPECT_TRUE(reads.Await(1));
  client_->ShutdownWrite();
  EXPECT_TRUE(ended.Await(1));
  network_.Unwatch(id);
  RunThere(network_);
  EXPECT_EQ(heard, "hello");
}

TEST_P(TcpNetworkTest, InterestCanBeTakenBackAndGivenAgainFromAnyThread) {
  Connect();
  if (IsSkipped()) return;
  Counter calls;
  std::atomic<WatchId> id{0};  // the handler runs on another thread
  id = network_.Watch(*server_, {}, Handler([&](Interest) {
    network_.SetInterest(id, {});
    calls.Add();
  }));
  WriteText(*client_, "x");
  RunThere(network_);
  EXPECT_EQ(calls.count(), 0);
  network_.SetInterest(id, {.read = true});
  EXPECT_TRUE(calls.Await(1));
  RunThere(network_);
  EXPECT_EQ(calls.count(), 1);
  network_.SetInterest(id, {.write = true});
  EXPECT_TRUE(calls.Await(2));
  network_.Unwatch(id);
  network_.SetInterest(id, {.read = true});  // stale: ignored
  network_.Unwatch(id);
  RunThere(network_);
  EXPECT_EQ(calls.count(), 2);
}

TEST_P(TcpNetworkTest, AWatchWithoutInterestDoesNotSpinOnABrokenStream) {
  Connect();
  if (IsSkipped()) return;
  Counter calls;
  std::atomic<WatchId> id{0};  // the handler runs on another thread
  id = network_.Watch(*server_, {}, Handler([&](Interest) { calls.Add(); }));
  client_->Abort();
  timespec before{}, after{};
  RunThere(network_, [&] { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before); });
  std::this_thread::sleep_for(100ms);  // not synchronisation: the time in which it would spin
  RunThere(network_, [&] { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after); });
  EXPECT_LT((after.tv_sec - before.tv_sec) * 1e9 + (after.tv_nsec - before.tv_nsec), 50e6);
  EXPECT_EQ(calls.count(), 0);
  // And hears of it as soon as it asks.
  network_.SetInterest(id, {.read = true});
  EXPECT_TRUE(calls.Await(1));
  network_.Unwatch(id);
  RunThere(network_);
}

TEST_P(TcpNetworkTest, ALentWatchIsHeardOfAgainWhenItsReaderStopsOrSaysSo) {
  Connect();
  if (IsSkipped()) return;
  Counter calls;
  std::atomic<WatchId> id{0};  // the handler runs on another thread
  id = network_.Watch(*server_, {.read = true}, Handler([&](Interest) {
    network_.SetInterest(id, {});
    calls.Add();
  }));
  for (int round = 1; round <= 20; ++round) {
    for (auto end = network_.Now() + 2ms; network_.Now() < end;) {
      network_.DriveInline();
      network_.Lend(id);
    }
    if (round % 2 == 0) network_.EndDrive();
    WriteText(*client_, "x");
    network_.SetInterest(id, {.read = true});
    EXPECT_TRUE(calls.Await(round));
  }
  network_.Unwatch(id);
  RunThere(network_);
}

// Two threads in one handler would be seen by TSan.
class GroupedHandler : public ReadyHandler {
 public:
  void OnReady(Interest) override { heard.Add(); }
  void OnDriven(Interest, bool) override { ++driven; }
  Counter heard;               // by the network's thread
  std::atomic<int> driven{0};  // by the one that drives
};

TEST_P(TcpNetworkTest, AGroupIsItsDriversWhileItDrivesAndTheNetworksOtherwise) {
  Connect();
  if (IsSkipped()) return;
  auto handler = std::make_shared<GroupedHandler>();
  const WatchId id = network_.Watch(*server_, {.read = true}, handler);
  auto group = network_.MakeGroup();
  ASSERT_TRUE(group);
  ASSERT_TRUE(group->Add(id));
  for (auto end = network_.Now() + 5ms; network_.Now() < end;) {  // until the network's thread leaves the sockets alone
    network_.DriveInline();
    group->Drive(/*spinning=*/true);
  }
  WriteText(*client_, "x");
  while (handler->driven == 0) {
    network_.DriveInline();
    group->Drive(/*spinning=*/true);
  }
  EXPECT_TRUE(handler->heard.Await(1)) << "the driver stopped";
  network_.SetInterest(id, {});
  RunThere(network_);
  handler->driven = 0;
  EXPECT_FALSE(group->Drive(/*spinning=*/false));

  group.reset();
  const int before = handler->heard.count();
  network_.SetInterest(id, {.read = true});
  EXPECT_TRUE(handler->heard.Await(before + 1)) << "there is no group any more";
  EXPECT_EQ(handler->driven, 0);
  network_.Unwatch(id);
  RunThere(network_);
}

TEST_P(TcpNetworkTest, ThreadsThatDriveTwoGroupsDoNotWaitForEachOther) {
  Connect();
  if (IsSkipped()) return;
  Counter in_handler, may_return;
  struct Blocking : ReadyHandler {
    void OnReady(Interest) override {}
    void OnDriven(Interest, bool) override {
      entered.Add();
      released.Await(1);
    }
    Counter& entered;
    Counter& released;
    Blocking(Counter& enter, Counter& release) : entered(enter), released(release) {}
  };
  auto other = std::make_shared<GroupedHandler>();
  const WatchId blocking_id = network_.Watch(*server_, {.read = true}, std::make_shared<Blocking>(in_handler, may_return));
  const WatchId other_id = network_.Watch(*client_, {.read = true}, other);
  auto blocking_group = network_.MakeGroup(), other_group = network_.MakeGroup();
  ASSERT_TRUE(blocking_group && other_group);
  ASSERT_TRUE(blocking_group->Add(blocking_id) && other_group->Add(other_id));
  WriteText(*client_, "x");
  WriteText(*server_, "x");
  std::thread driver([&] {
    while (in_handler.count() == 0) blocking_group->Drive(false);
  });
  ASSERT_TRUE(in_handler.Await(1));
  const auto limit = network_.Now() + 10s;
  while (other->driven == 0 && network_.Now() < limit) other_group->Drive(false);
  EXPECT_NE(other->driven, 0);
  may_return.Add();
  driver.join();
  network_.Unwatch(blocking_id);
  network_.Unwatch(other_id);
  RunThere(network_);
}

// The driver stands for one that has lost its processor: what the progress thread has to run does not wait until it has one again.
TEST_P(TcpNetworkTest, WorkRunsWhileAThreadThatDrivesIsHeldUp) {
  Connect();
  if (IsSkipped()) return;
  Counter in_handler, may_return;
  std::atomic<std::thread::id> driving;
  WatchId id = 0;
  id = network_.Watch(*server_, {.read = true}, Handler([&](Interest) {
    if (std::this_thread::get_id() != driving.load()) return;  // the progress thread has not left the sockets yet
    in_handler.Add();
    EXPECT_TRUE(may_return.Await(1));
    network_.SetInterest(id, {});
  }));
  WriteText(*client_, "x");
  std::thread driver([&] {
    driving = std::this_thread::get_id();
    while (in_handler.count() == 0) network_.DriveInline();
  });
  ASSERT_TRUE(in_handler.Await(1));
  network_.EndDrive();
  for (int round = 0; round < 3; ++round) RunThere(network_);
  may_return.Add();
  driver.join();
  network_.Unwatch(id);
  RunThere(network_);
}

TEST_P(TcpNetworkTest, StaleEventOfAReusedDescriptorReachesNobody) {
  Connect();
  if (IsSkipped()) return;
  Counter first_calls, second_calls;
  WatchId first = network_.Watch(*server_, {.read = true}, Handler([&](Interest) { first_calls.Add(); }));
  network_.Unwatch(first);
  WatchId second = network_.Watch(*server_, {}, Handler([&](Interest) { second_calls.Add(); }));
  EXPECT_NE(first, second);
  WriteText(*client_, "x");
  network_.SetInterest(first, {.read = true});
  RunThere(network_);
  EXPECT_EQ(first_calls.count(), 0);
  EXPECT_EQ(second_calls.count(), 0);
  network_.Unwatch(second);
}

TEST_P(TcpNetworkTest, HandlerMayUnwatchAndDestroyItsOwnStream) {
  Connect();
  if (IsSkipped()) return;
  Counter done;
  WatchId id = 0;
  RunThere(network_, [&] {
    id = network_.Watch(*server_, {.read = true}, Handler([&](Interest) {
      network_.Unwatch(id);
      server_.reset();
      done.Add();
    }));
  });
  WriteText(*client_, "x");
  EXPECT_TRUE(done.Await(1));
  RunThere(network_);
  EXPECT_EQ(done.count(), 1);
}

TEST_P(TcpNetworkTest, ManyThreadsMayWatchAndUnwatchWhileTrafficFlows) {
  Connect();
  if (IsSkipped()) return;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    while (!stop) WriteText(*client_, "xxxxxxxx");
  });
  for (int i = 0; i < 300; ++i) {
    Counter calls;
    auto state = std::make_shared<std::pair<std::mutex, ByteStream*>>();
    state->second = server_.get();
    WatchId id = network_.Watch(*server_, {.read = true}, Handler([&, state](Interest) {
      std::lock_guard lock(state->first);
      if (state->second == nullptr) return;  // unwatched while the call was under way
      char buffer[256];
      iovec part{buffer, sizeof buffer};
      state->second->Read({&part, 1});
      calls.Add();
    }));
    EXPECT_TRUE(calls.Await(1));
    network_.SetInterest(id, {});
    network_.SetInterest(id, {.read = true});
    network_.Unwatch(id);
    std::lock_guard lock(state->first);
    state->second = nullptr;
  }
  stop = true;
  writer.join();
  RunThere(network_);
}

TEST(TcpNetworkTimersTest, RunInOrderOfTimeOnTheNetworksThread) {
  TcpNetwork network;
  Counter ran;
  std::vector<int> order;
  Time now = network.Now();
  // Added from the network's thread: none runs before all are there, however slow the machine.
  RunThere(network, [&] {
    network.RunAt(now + 30ms, [&] { order.push_back(3), ran.Add(); });
    network.RunAt(now + 10ms, [&] { order.push_back(1), ran.Add(); });
    network.RunAt(now + 20ms, [&] { order.push_back(2), ran.Add(); });
    TimerId never = network.RunAt(now + 25ms, [&] { order.push_back(9), ran.Add(); });
    EXPECT_TRUE(network.Cancel(never));
    EXPECT_FALSE(network.Cancel(never));
  });
  EXPECT_TRUE(ran.Await(3));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_GE(network.Now(), now + 30ms);
}

TEST(TcpNetworkTimersTest, AnEarlierTimerShortensTheSleep) {
  TcpNetwork network;
  Counter ran;
  network.RunAt(network.Now() + 1h, [&] { ADD_FAILURE(); });
  RunThere(network);
  network.RunAt(network.Now() + 1ms, [&] { ran.Add(); });
  EXPECT_TRUE(ran.Await(1));
}

TEST(TcpNetworkTimersTest, WorkMayAddWork) {
  TcpNetwork network;
  Counter ran;
  std::function<void()> again = [&] {
    ran.Add();
    if (ran.count() < 5) network.RunAt(network.Now(), again);
    if (ran.count() == 5) network.Post(again);
  };
  network.Post(again);
  EXPECT_TRUE(ran.Await(6));
  RunThere(network);
}

TEST(TcpNetworkPostTest, EveryPostRunsOnceInOrderFromManyThreads) {
  TcpNetwork network;
  Counter ran;
  constexpr int kThreads = 4, kPosts = 2000;
  std::vector<int> last(kThreads, -1);  // touched on the network's thread only
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kPosts; ++i) {
        network.Post([&, t, i] {
          EXPECT_EQ(last[t], i - 1);
          last[t] = i;
          ran.Add();
        });
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(ran.Await(kThreads * kPosts));
}

std::string FieldOfProgressThread(const char* field) {
  std::string found;
  DIR* tasks = opendir("/proc/self/task");
  while (dirent* task = readdir(tasks)) {
    std::ifstream status(std::string("/proc/self/task/") + task->d_name + "/status");
    std::string line, name, value;
    while (std::getline(status, line)) {
      if (line.starts_with("Name:")) name = line;
      if (line.starts_with(field)) value = line.substr(line.find('\t') + 1);
    }
    if (name.ends_with("weft-progress")) found = value;
  }
  closedir(tasks);
  return found;
}

TEST(ProgressThreadTest, StartsOnlyWhenNeeded) {
  TcpNetwork network;
  network.Now();
  network.Unwatch(1);
  network.Cancel(1);
  EXPECT_EQ(FieldOfProgressThread("Name:"), "");
  RunThere(network);
  EXPECT_EQ(FieldOfProgressThread("Name:"), "weft-progress");
}

TEST(ProgressThreadTest, BlocksEverySignalAndLeavesTheCallersMaskAlone) {
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  TcpNetwork network;
  RunThere(network);
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int signal : {SIGINT, SIGALRM, SIGUSR1, SIGCHLD, SIGTERM}) {
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal));
    sigset_t there;
    RunThere(network, [&] { pthread_sigmask(SIG_SETMASK, nullptr, &there); });
    EXPECT_EQ(sigismember(&there, signal), 1) << signal;
  }
}

TEST(ProgressThreadTest, SleepsWithoutUsingTheProcessor) {
  TcpNetwork network;
  timespec before{}, after{};
  RunThere(network, [&] { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before); });
  std::this_thread::sleep_for(200ms);  // not synchronisation: the time that is measured
  RunThere(network, [&] { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after); });
  EXPECT_LT((after.tv_sec - before.tv_sec) * 1e9 + (after.tv_nsec - before.tv_nsec), 5e6);
}

TEST(TcpNetworkExhaustionTest, AListenerWithoutDescriptorsRestsAndThenGoesOn) {
  TcpNetwork network;
  auto listener = network.Listen(*SocketAddress::Parse("127.0.0.1", 0), 16, false, true).value();
  Counter shortages, accepted;
  std::vector<std::unique_ptr<ByteStream>> servers;
  WatchId id = network.Watch(*listener, Handler([&](Interest) {
    auto stream = listener->Accept();
    if (!stream) {
      EXPECT_EQ(stream.error(), EMFILE);
      shortages.Add();
      return;
    }
    servers.push_back(std::move(stream).value());
    accepted.Add();
  }));
  // Once without shortage: UBSan needs descriptors when it meets a type for the first time.
  auto first = network.StartConnect({}, listener->LocalAddress()).value();
  ASSERT_TRUE(accepted.Await(1));
  network.SetInterest(id, {});
  auto second = network.StartConnect({}, listener->LocalAddress()).value();

  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  rlimit none = limit;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  network.SetInterest(id, {.read = true});
  EXPECT_TRUE(shortages.Await(2));
  EXPECT_LE(shortages.count(), 50);  // 100 ms apart; a spinning thread would be at many thousands
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(accepted.Await(2));
  network.Unwatch(id);
  RunThere(network);
}

// accept(2) takes a descriptor before it looks whether anybody waits. A listener that took that for a connection would turn others away for it.
TEST(TcpNetworkExhaustionTest, WithoutDescriptorsAListenerToWhichNobodyCameIsNotShortOfThem) {
  TcpNetwork network;
  auto listener = network.Listen(*SocketAddress::Parse("127.0.0.1", 0), 16, false, true).value();
  auto client = network.StartConnect({}, listener->LocalAddress()).value();
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  rlimit none = limit;
  none.rlim_cur = 1;  // poll(2) works
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const int waits = listener->Accept().error();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(waits, EMFILE);
  const auto server = listener->Accept();
  ASSERT_TRUE(server.ok());
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const int nobody = listener->Accept().error();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(nobody, EAGAIN);
}

TEST(TcpNetworkExhaustionTest, ManyConnectionsLeaveTheNumbersThatSelectKnowsToTheProgram) {
  TcpNetwork network;
  auto listener = network.Listen(*SocketAddress::Parse("127.0.0.1", 0), 1024, false, true).value();
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, kMostFiles));  // raised when the network started
  if (limit.rlim_cur < 4096) GTEST_SKIP() << "the hard limit of descriptors is " << limit.rlim_max;
  std::vector<std::unique_ptr<ByteStream>> streams;
  for (int i = 0; i < 700; ++i) {
    streams.push_back(network.StartConnect({}, listener->LocalAddress()).value());
    auto accepted = listener->Accept();
    if (accepted.ok()) streams.push_back(std::move(accepted).value());
  }
  for (const auto& stream : streams) EXPECT_TRUE(stream->fd() < kSocketsBelow || stream->fd() >= FD_SETSIZE) << stream->fd();
  const int own = dup(listener->fd());
  EXPECT_LT(own, FD_SETSIZE);
  close(own);
}

TEST(TcpNetworkForkTest, ChildRefusesTheParentsInstanceAndGetsOneOfItsOwn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not support threads in the child of a fork";
#endif
  TcpNetwork& parent = ProcessNetwork();
  auto listener = parent.Listen(*SocketAddress::Parse("127.0.0.1", 0), 4, false, true).value();
  Counter accepted;
  WatchId id = parent.Watch(*listener, Handler([&](Interest) {
    while (listener->Accept()) accepted.Add();
  }));
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    parent.Unwatch(id);  // must not reach the parent's epoll
    parent.Post([] { _exit(2); });
    if (parent.InThisProcess() || parent.Cancel(1) || parent.RunAt(parent.Now(), [] { _exit(3); }) != 0) _exit(4);
    if (parent.StartConnect({}, listener->LocalAddress()).ok()) _exit(5);
    TcpNetwork& own = ProcessNetwork();
    if (&own == &parent || &own != &ProcessNetwork()) _exit(6);
    auto stream = own.StartConnect({}, listener->LocalAddress());
    if (!stream) _exit(7);
    own.Watch(**stream, {.write = true}, Handler([&](Interest) { _exit((*stream)->ConnectError() == 0 ? 0 : 8); }));
    for (;;) pause();
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(accepted.Await(1));  // the parent's watch is intact
  parent.Unwatch(id);
  RunThere(parent);
}

TEST(ProcessNetworkTest, ProcessMayExitWhileItsThreadIsBusy) {
  EXPECT_EXIT(
      {
        static std::function<void()> again = [] { ProcessNetwork().Post(again); };
        ProcessNetwork().Post(again);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft::transport
