#include "cm/rsocket/lingering.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <new>
#include <thread>
#include <utility>

namespace weft::rsocket {
namespace {

// Between two looks. Each socket's RNIC goes on sending meanwhile.
constexpr std::chrono::milliseconds kLingerPause{5};

}  // namespace

Lingering& Lingering::Process() {
  static Lingering* const lingering = new Lingering;
  return *lingering;
}

Lingering::Lingering() {
  // The sockets are left alone: to destroy them would talk to an adapter that the child does not have.
  pthread_atfork(nullptr, nullptr, [] {
    Lingering& mine = Process();
    new (&mine.mutex_) std::mutex;
    new (&mine.sockets_) std::list<std::shared_ptr<Socket>>;
    mine.thread_runs_ = false;
  });
}

void Lingering::Add(std::shared_ptr<Socket> socket) {
  std::shared_ptr<Socket> gives_way;  // destroyed without the lock
  std::unique_lock lock(mutex_);
  if (sockets_.size() >= kMost) {
    gives_way = std::move(sockets_.front());
    sockets_.pop_front();
  }
  sockets_.push_back(socket);
  if (thread_runs_) return;
  sigset_t all, before;  // the program's handlers run on its own threads
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const auto run = [](void*) -> void* {
    Process().Run();
    return nullptr;
  };
  thread_runs_ = pthread_create(&thread, nullptr, run, nullptr) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (thread_runs_) {
    pthread_detach(thread);
    return;
  }
  // There is no thread to be had: whoever closes it waits.
  sockets_.remove(socket);
  lock.unlock();
  while (!socket->Linger()) std::this_thread::sleep_for(kLingerPause);
}

void Lingering::Run() {
  std::unique_lock lock(mutex_);
  while (!sockets_.empty()) {
    std::vector<std::shared_ptr<Socket>> now(sockets_.begin(), sockets_.end());
    lock.unlock();
    std::vector<std::shared_ptr<Socket>> done;
    for (auto& socket : now) {
      if (socket->Linger()) done.push_back(std::move(socket));
    }
    now.clear();
    if (done.empty()) std::this_thread::sleep_for(kLingerPause);
    lock.lock();
    for (const auto& socket : done) sockets_.remove(socket);
    lock.unlock();
    done.clear();  // destroyed without the lock
    lock.lock();
  }
  thread_runs_ = false;
}

bool Lingering::any() const {
  std::lock_guard lock(mutex_);
  return !sockets_.empty();
}

std::vector<std::shared_ptr<Socket>> Lingering::Sockets() const {
  std::lock_guard lock(mutex_);
  return {sockets_.begin(), sockets_.end()};
}

}  // namespace weft::rsocket
