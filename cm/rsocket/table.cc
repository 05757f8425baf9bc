#include "cm/rsocket/table.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>

#include "base/file_limit.h"
#include "cm/rsocket/lingering.h"

namespace weft::rsocket {
namespace {

// How long the end of the process waits for what was sent.
constexpr std::chrono::seconds kFarewellLimit{2};
constexpr std::chrono::milliseconds kFarewellPause{1};

}  // namespace

Table& Table::Process() {
  static Table* const table = new Table;
  return *table;
}

// A lock that another thread held when this one forked is never released in the child: the child has a table of its own.
Table::Table() {
  pthread_atfork(nullptr, nullptr, [] { Process().ForgetAll(); });
  atexit([] { Process().FarewellAll(); });
}

int Table::Add(std::shared_ptr<Socket> socket, bool close_on_exec) {
  RaiseFileLimit();  // also where no adapter was looked for yet
  const int fd = eventfd(0, close_on_exec ? EFD_CLOEXEC : 0);
  if (fd < 0) return errno;
  socket->set_fd(fd);
  std::unique_lock lock(mutex_);
  if (static_cast<size_t>(fd) >= sockets_.size()) sockets_.resize(static_cast<size_t>(fd) + 1);
  sockets_[static_cast<size_t>(fd)] = std::move(socket);
  return 0;
}

std::shared_ptr<Socket> Table::Find(int fd) const {
  std::shared_lock lock(mutex_);
  return fd >= 0 && static_cast<size_t>(fd) < sockets_.size() ? sockets_[static_cast<size_t>(fd)] : nullptr;
}

std::shared_ptr<Socket> Table::Remove(int fd) {
  std::shared_ptr<Socket> socket;
  std::unique_lock lock(mutex_);
  if (fd < 0 || static_cast<size_t>(fd) >= sockets_.size()) return nullptr;
  socket.swap(sockets_[static_cast<size_t>(fd)]);
  if (socket != nullptr) close(fd);
  return socket;
}

// The sockets themselves are left alone: to destroy them would talk to an adapter that this process does not have.
void Table::ForgetAll() {
  new (&mutex_) std::shared_mutex;
  new (&sockets_) std::vector<std::shared_ptr<Socket>>;
}

void Table::FarewellAll() {
  std::vector<std::shared_ptr<Socket>> open;
  {
    std::shared_lock lock(mutex_);
    for (const auto& socket : sockets_) {
      if (socket != nullptr) open.push_back(socket);
    }
  }
  for (const auto& socket : Lingering::Process().Sockets()) open.push_back(socket);
  // All of them together: a peer that is silent costs the others nothing.
  const auto limit = Clock::now() + kFarewellLimit;
  for (;;) {
    std::erase_if(open, [](const auto& socket) { return socket->Farewell(); });
    if (open.empty() || Clock::now() >= limit) return;
    std::this_thread::sleep_for(kFarewellPause);
  }
}

}  // namespace weft::rsocket
