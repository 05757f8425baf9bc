#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/passed_descriptor.h"
#include "wires/host/meeting/meeting_point.h"
#include "wires/host/meeting/peer_memory.h"

namespace weft::host {
namespace {

size_t Descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

// A socket connected to the point, as a stranger would make it.
Descriptor Stranger(uint64_t point) {
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const int length = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "weft-host-6-%016llx", static_cast<unsigned long long>(point));
  if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length)) != 0)
    socket.Close();
  return socket;
}

// Runs `work` in a child; what it returns.
int InChild(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(MeetingTest, WhoWasInvitedIsMet) {
  MeetingPoint point;
  const auto invitation = point.Invite();
  ASSERT_TRUE(invitation);
  const auto visitor = MeetingPoint::Visit(*invitation);
  ASSERT_NE(visitor, nullptr);
  const auto host = point.Collect(*invitation);
  ASSERT_NE(host, nullptr);
  EXPECT_EQ(host->peer, getpid());
  EXPECT_EQ(visitor->peer, getpid());
  visitor->memory->control().joined.store(17);
  EXPECT_EQ(host->memory->control().joined.load(), 17u) << "it is the same memory";
  char byte = 'x';
  EXPECT_EQ(send(host->bell.get(), &byte, 1, 0), 1);
  EXPECT_EQ(recv(visitor->bell.get(), &byte, 1, 0), 1);
}

TEST(MeetingTest, AnInvitationIsGoodForOneVisit) {
  MeetingPoint point;
  const auto invitation = point.Invite();
  const auto first = MeetingPoint::Visit(*invitation);
  const auto second = MeetingPoint::Visit(*invitation);
  ASSERT_NE(point.Collect(*invitation), nullptr);
  EXPECT_EQ(point.Collect(*invitation), nullptr);
}

TEST(MeetingTest, EachInvitationGetsItsOwnVisitor) {
  MeetingPoint point;
  const auto first = point.Invite(), second = point.Invite();
  const auto of_second = MeetingPoint::Visit(*second), of_first = MeetingPoint::Visit(*first);
  of_first->memory->control().joined.store(1);
  of_second->memory->control().joined.store(2);
  EXPECT_EQ(point.Collect(*first)->memory->control().joined.load(), 1u);
  EXPECT_EQ(point.Collect(*second)->memory->control().joined.load(), 2u);
}

TEST(MeetingTest, WhoDoesNotKnowTheNonceIsNotMet) {
  MeetingPoint point;
  const auto invitation = point.Invite();
  Invitation guess = *invitation;
  guess.nonce[0] ^= 1;
  const auto visitor = MeetingPoint::Visit(guess);
  EXPECT_NE(visitor, nullptr) << "it cannot know";
  EXPECT_EQ(point.Collect(guess), nullptr);
  EXPECT_EQ(point.Collect(*invitation), nullptr);
}

TEST(MeetingTest, NobodyIsMetWhereNobodyInvites) {
  Invitation invitation;
  invitation.point = 12345;
  EXPECT_EQ(MeetingPoint::Visit(invitation), nullptr);
}

TEST(MeetingTest, SilentStrangersDoNotStandInTheWay) {
  MeetingPoint point;
  std::vector<Descriptor> strangers;
  const auto first = point.Invite();
  for (int i = 0; i < 400; ++i) strangers.push_back(Stranger(first->point));
  const auto invitation = point.Invite();
  const auto visitor = MeetingPoint::Visit(*invitation);
  ASSERT_NE(visitor, nullptr);
  auto met = point.Collect(*invitation);
  if (met == nullptr) met = point.Collect(*invitation);
  EXPECT_NE(met, nullptr);
}

TEST(MeetingTest, AVisitorThatIsSlowToSpeakIsHeardLater) {
  MeetingPoint point;
  const auto invitation = point.Invite();
  const Descriptor slow = Stranger(invitation->point);
  const auto other = point.Invite();  // looks at visitors
  ASSERT_TRUE(other);
  int fd = -1;
  const auto memory = SharedMemory::Create(&fd);
  ASSERT_EQ(SendWithDescriptor(slow.get(), invitation->nonce, fd), static_cast<ssize_t>(invitation->nonce.size()));
  close(fd);
  EXPECT_NE(point.Collect(*invitation), nullptr);
}

TEST(MeetingTest, MemoryThatCouldBeMadeShorterIsRefused) {
  const Descriptor unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), SharedMemory::kBytes), 0);
  EXPECT_EQ(SharedMemory::Adopt(unsealed.get()), nullptr);
  ASSERT_EQ(fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_NE(SharedMemory::Adopt(unsealed.get()), nullptr);

  const Descriptor short_one(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(short_one.get(), 4096), 0);
  ASSERT_EQ(fcntl(short_one.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_EQ(SharedMemory::Adopt(short_one.get()), nullptr);

  const Descriptor file(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(SharedMemory::Adopt(file.get()), nullptr) << "no memory at all";
}

TEST(MeetingTest, WhatWeMakeCannotBeMadeShorter) {
  int fd = -1;
  const auto memory = SharedMemory::Create(&fd);
  const Descriptor owner(fd);
  EXPECT_EQ(ftruncate(fd, 4096), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST(MeetingTest, ForgedGreetingsLeaveNoDescriptorBehind) {
  MeetingPoint point;
  const auto invitation = point.Invite();
  const size_t before = Descriptors();
  {
    const Descriptor visitor = Stranger(invitation->point), file(open("/dev/null", O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(SendWithDescriptor(visitor.get(), invitation->nonce, file.get()), static_cast<ssize_t>(invitation->nonce.size()));
    const Descriptor mute = Stranger(invitation->point);
    ASSERT_EQ(send(mute.get(), "x", 1, 0), 1);
    EXPECT_EQ(point.Collect(*invitation), nullptr);
  }
  EXPECT_EQ(Descriptors(), before);
}

TEST(MeetingTest, AnotherUserIsNotMet) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user for a moment";
  MeetingPoint point;
  const auto invitation = point.Invite();
  EXPECT_EQ(InChild([&] {
              if (seteuid(1) != 0) return 1;
              return MeetingPoint::Visit(*invitation) == nullptr ? 0 : 2;  // the visitor sees whose the point is
            }),
            0);
  // And if it does not care, it is not let in.
  EXPECT_EQ(InChild([&] {
              if (seteuid(1) != 0) return 1;
              const Descriptor visitor = Stranger(invitation->point);
              int fd = -1;
              const auto memory = SharedMemory::Create(&fd);
              return SendWithDescriptor(visitor.get(), invitation->nonce, fd) == static_cast<ssize_t>(invitation->nonce.size()) ? 0 : 1;
            }),
            0);
  EXPECT_EQ(point.Collect(*invitation), nullptr);
}

TEST(MeetingTest, WithoutDescriptorsNobodyIsMet) {
  MeetingPoint point;
  const auto invitation = point.Invite();
  EXPECT_EQ(InChild([&] {
              rlimit limit{16, 16};
              if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
              while (dup(0) >= 0) {
              }
              if (MeetingPoint::Visit(*invitation) != nullptr) return 2;
              MeetingPoint another;
              return another.Invite() ? 3 : 0;
            }),
            0);
}

TEST(MeetingTest, MostDescriptorsAreLeftToConnections) {
  MeetingPoint point;
  const auto invitation = point.Invite();
  EXPECT_EQ(InChild([&] {
              constexpr rlimit kLimit{400, 400};
              if (setrlimit(RLIMIT_NOFILE, &kLimit) != 0) return 1;
              std::vector<std::unique_ptr<Met>> all;
              while (all.size() < kLimit.rlim_cur) {
                auto visitor = MeetingPoint::Visit(*invitation);
                if (visitor == nullptr) break;
                all.push_back(std::move(visitor));
              }
              if (all.size() < 80) return 2;
              size_t left = 0;
              while (dup(0) >= 0) ++left;
              return left < 280 ? 3 : 0;  // some were open before
            }),
            0);
}

TEST(MeetingTest, WhoMayNotMakeLongFilesDoesNotVisit) {
  MeetingPoint point;
  const auto invitation = point.Invite();
  EXPECT_EQ(InChild([&] {
              const rlimit limit{1024, 1024};
              if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
              return MeetingPoint::Visit(*invitation) != nullptr ? 2 : 0;  // and no SIGXFSZ
            }),
            0);
}

TEST(PeerMemoryTest, AnotherProcessIsReadWhereItsProbeIs) {
  int fd = -1;
  const auto memory = SharedMemory::Create(&fd);
  close(fd);
  int ready[2], done[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(done), 0);
  static char text[] = "nothing";
  const pid_t child = fork();
  if (child == 0) {
    std::memcpy(text, "theirs!", 7);
    PeerMemory::ShowProbe(memory->control().of_initiator);
    char byte = 0;
    [[maybe_unused]] ssize_t told = write(ready[1], &byte, 1);
    _exit(read(done[0], &byte, 1) == 1 ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  PeerMemory peer(child);
  ASSERT_TRUE(peer.TryProbe(memory->control().of_initiator));
  char here[8] = {};
  const iovec to{here, 7};
  const Piece from{reinterpret_cast<uintptr_t>(text), 7};
  EXPECT_EQ(peer.Read({&to, 1}, {&from, 1}, 7), 0);
  EXPECT_STREQ(here, "theirs!");
  const Piece nowhere{8, 7};
  EXPECT_EQ(peer.Read({&to, 1}, {&nowhere, 1}, 7), EFAULT);

  PeerMemory another(getpid());
  EXPECT_FALSE(another.TryProbe(memory->control().of_initiator)) << "the number is that of another process";

  ASSERT_EQ(write(done[1], &byte, 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(peer.Read({&to, 1}, {&from, 1}, 7), ESRCH) << "it is gone";
  for (const int end : {ready[0], ready[1], done[0], done[1]}) close(end);
}

// Both of one process, which may as well be the other one.
class PeerMemoryOfOurselvesTest : public testing::Test {
 protected:
  void SetUp() override {
    Probe probe;
    PeerMemory::ShowProbe(probe);
    ASSERT_TRUE(peer_.TryProbe(probe));
    ASSERT_TRUE(peer_.TryWriting());
  }
  int Write(std::span<const iovec> from, size_t length) { return peer_.Write(from, There(length)); }
  std::string Read(size_t length) {
    std::string got(length, '-');
    const iovec to{got.data(), length};
    const Piece there = There(length);
    EXPECT_EQ(peer_.Read({&to, 1}, {&there, 1}, length), 0);
    return got;
  }
  Piece There(size_t length) const { return {reinterpret_cast<uintptr_t>(memory_.data()) + 16, length}; }

  std::vector<char> memory_ = std::vector<char>(3 * MemoryFile::kMostBytes);
  PeerMemory peer_{getpid()};
};

TEST_F(PeerMemoryOfOurselvesTest, ItIsReachedInPiecesOfAnyLength) {
  for (const size_t length : {size_t{1}, size_t{64}, MemoryFile::kMostBytes, MemoryFile::kMostBytes + 1}) {
    std::string text(length, static_cast<char>('a' + length % 20));
    const iovec one{text.data(), length};
    EXPECT_EQ(Write({&one, 1}, length), 0);
    EXPECT_EQ(Read(length), text);
    text[0] = '!';
    const iovec two[] = {{text.data(), length / 2}, {text.data() + length / 2, length - length / 2}};
    EXPECT_EQ(Write(two, length), 0);
    EXPECT_EQ(Read(length), text);
  }
  char byte = 0;
  const iovec from{&byte, 1};
  EXPECT_EQ(peer_.Write({&from, 1}, {8, 1}), EFAULT);
}

TEST_F(PeerMemoryOfOurselvesTest, ItIsReachedWithoutADescriptorToSpare) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{12, before.rlim_max};  // of which none is to spare (IsToSpare); UBSan wants two
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  char text[] = "hello";
  const iovec from{text, 5};
  EXPECT_EQ(Write({&from, 1}, 5), 0);
  EXPECT_EQ(Read(5), "hello");
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(PeerMemoryTest, WhereItIsForbiddenTheProbeSaysSo) {
  int fd = -1;
  const auto memory = SharedMemory::Create(&fd);
  close(fd);
  PeerMemory::ShowProbe(memory->control().of_initiator);
  EXPECT_TRUE(PeerMemory(getpid()).TryProbe(memory->control().of_initiator));
  EXPECT_FALSE(PeerMemory(0).TryProbe(memory->control().of_initiator)) << "it has no number in our name space";
  PeerMemory::ForbidForTesting(true);
  EXPECT_FALSE(PeerMemory(getpid()).TryProbe(memory->control().of_initiator));
  PeerMemory::ForbidForTesting(false);
}

}  // namespace
}  // namespace weft::host
