#include "base/passed_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <vector>

namespace weft {
namespace {

class PassedDescriptorTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, GetParam() | SOCK_CLOEXEC, 0, ends), 0);
    here_ = Descriptor(ends[0]);
    there_ = Descriptor(ends[1]);
  }
  ReceivedWithDescriptor Receive(size_t most) {
    into_.resize(most);
    return ReceiveWithDescriptor(there_.get(), into_, MSG_DONTWAIT);
  }

  const std::vector<uint8_t> words_ = {1, 2, 3};
  std::vector<uint8_t> into_;
  Descriptor here_, there_;
};

TEST_P(PassedDescriptorTest, TheReceiverHasTheSameOpenFile) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const Descriptor read_end(pipe_ends[0]);
  Descriptor write_end(pipe_ends[1]);
  ASSERT_EQ(SendWithDescriptor(here_.get(), words_, write_end.get()), 3);
  write_end.Close();
  const ReceivedWithDescriptor received = Receive(3);
  ASSERT_EQ(received.bytes, 3);
  EXPECT_EQ(into_, words_);
  EXPECT_EQ(received.descriptors, 1u);
  EXPECT_FALSE(received.truncated);
  EXPECT_NE(fcntl(received.fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(write(received.fd.get(), "x", 1), 1);
  char got = 0;
  EXPECT_EQ(read(read_end.get(), &got, 1), 1);
  EXPECT_EQ(got, 'x');
}

TEST_P(PassedDescriptorTest, BytesAloneBringNone) {
  ASSERT_EQ(send(here_.get(), words_.data(), words_.size(), 0), 3);
  const ReceivedWithDescriptor received = Receive(3);
  EXPECT_EQ(received.bytes, 3);
  EXPECT_EQ(received.descriptors, 0u);
  EXPECT_FALSE(received.fd);
}

TEST_P(PassedDescriptorTest, NeitherEndWaits) {
  EXPECT_EQ(Receive(3).bytes, -1);
  EXPECT_EQ(errno, EAGAIN);
  // Whatever the limit is on how many may be under way.
  ssize_t sent = 0;
  for (int i = 0; i < 100'000 && sent >= 0; ++i) sent = SendWithDescriptor(here_.get(), words_, here_.get());
  EXPECT_EQ(sent, -1);
}

TEST_P(PassedDescriptorTest, WordsWithDifferentDescriptorsComeApart) {
  ASSERT_EQ(SendWithDescriptor(here_.get(), words_, here_.get()), 3);
  ASSERT_EQ(SendWithDescriptor(here_.get(), words_, there_.get()), 3);
  for (int i = 0; i < 2; ++i) {
    const ReceivedWithDescriptor received = Receive(100);
    EXPECT_EQ(received.bytes, 3);
    EXPECT_EQ(received.descriptors, 1u);
  }
}

INSTANTIATE_TEST_SUITE_P(Sockets, PassedDescriptorTest, testing::Values(SOCK_STREAM, SOCK_SEQPACKET),
                         [](const auto& info) { return info.param == SOCK_STREAM ? "Stream" : "Packets"; });

}  // namespace
}  // namespace weft
