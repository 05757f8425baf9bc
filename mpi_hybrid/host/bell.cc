#include "mpi_hybrid/host/bell.h"

#include <linux/filter.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>

#include "mpi_hybrid/host/abstract_name.h"

namespace weft::mpi::host {
namespace {

constexpr char kBellPrefix[] = "weft-bell-";

uint32_t BigEndian(const uint8_t* bytes) {
  return static_cast<uint32_t>(bytes[0]) << 24 | static_cast<uint32_t>(bytes[1]) << 16 |
         static_cast<uint32_t>(bytes[2]) << 8 | bytes[3];
}

}  // namespace

bool Bell::Open() {
  socket_ = Descriptor(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) return false;
  const Nonce name = NewNonce(), random = NewNonce();
  std::copy(name.begin(), name.end(), name_.name.begin());
  std::copy_n(random.begin(), name_.key.size(), name_.key.begin());
  Filter();
  const AbstractName at(kBellPrefix, name_.name);
  if (bind(socket_.get(), at.get(), at.length) == 0) return true;
  name_ = {};
  return false;
}

// A kernel that takes no filter lets others ring too.
void Bell::Filter() const {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BigEndian(name_.key.data()), 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BigEndian(name_.key.data() + 4), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0xffff),
      BPF_STMT(BPF_RET | BPF_K, 0),
  };
  sock_fprog program = {.len = std::size(code), .filter = code};
  (void)setsockopt(socket_.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

// A queue that is full is a bell that rings already.
void Bell::Ring(const BellName& other) const {
  const AbstractName to(kBellPrefix, other.name);
  (void)sendto(socket_.get(), other.key.data(), other.key.size(), MSG_DONTWAIT | MSG_NOSIGNAL, to.get(), to.length);
}

void Bell::Silence() const {
  uint8_t bytes[16];
  while (recv(socket_.get(), bytes, sizeof(bytes), MSG_DONTWAIT) >= 0) {
  }
}

}  // namespace weft::mpi::host
