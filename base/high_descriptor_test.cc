#include "base/high_descriptor.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

#include "base/descriptor.h"

namespace weft {
namespace {

// A listener at a name that the kernel chooses, which does not block.
class Listener {
 public:
  Listener() : socket_(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    address_.sun_family = AF_UNIX;
    EXPECT_EQ(bind(socket_.get(), Address(), sizeof(sa_family_t)), 0);
    EXPECT_EQ(listen(socket_.get(), 4), 0);
    EXPECT_EQ(getsockname(socket_.get(), Address(), &length_), 0);
  }
  int fd() const { return socket_.get(); }
  Descriptor Connect() {
    Descriptor client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(client.get(), Address(), length_), 0);
    return client;
  }

 private:
  sockaddr* Address() { return reinterpret_cast<sockaddr*>(&address_); }

  Descriptor socket_;
  sockaddr_un address_{};
  socklen_t length_ = sizeof(address_);
};

// While it lives, this process can open no descriptor.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const Descriptor lowest(dup(0));
    const rlimit none{static_cast<rlim_t>(lowest.get()), before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
};

TEST(AcceptOnListener, WithoutDescriptorsItSaysWhetherAConnectionWaits) {
  Listener listener;
  {
    const NoDescriptors none;
    EXPECT_EQ(AcceptOnListener(listener.fd()), -1);
    EXPECT_EQ(errno, EAGAIN) << "accept(2) says EMFILE here, at which a listener closes a connection that was not made";
  }
  const Descriptor client = listener.Connect();
  {
    const NoDescriptors none;
    EXPECT_EQ(AcceptOnListener(listener.fd()), -1);
    EXPECT_EQ(errno, EMFILE);
  }
  const Descriptor accepted(AcceptOnListener(listener.fd()));
  ASSERT_TRUE(accepted) << "it has waited";
  EXPECT_NE(fcntl(accepted.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(fcntl(accepted.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(AcceptOnListener(listener.fd()), -1);
  EXPECT_EQ(errno, EAGAIN);
}

}  // namespace
}  // namespace weft
