#include "transport/background_file.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/log.h"

namespace weft::transport {
namespace {

constexpr int kLookAgainMs = 100;
constexpr std::chrono::seconds kIdle{1};  // then the thread ends

}  // namespace

struct BackgroundFile::State {
  State(int descriptor, std::string text, size_t most_waiting)
      : fd(descriptor), name(std::move(text)), most(most_waiting) {}
  ~State() { close(fd); }

  const int fd;
  const std::string name;
  const size_t most;
  std::mutex mutex;  // guards the rest; not held over a write
  std::condition_variable changed;
  std::vector<uint8_t> waiting;
  size_t writing = 0;  // bytes that the thread has taken from `waiting` and not written
  uint64_t written = 0;
  uint64_t left_out = 0;
  bool thread_runs = false;
  bool abandoned = false;
  bool failed = false;

  // All of `bytes`; false: it failed, or nobody wants them any more.
  bool WriteAll(const std::vector<uint8_t>& bytes) {
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t count = write(fd, bytes.data() + done, bytes.size() - done);
      const int error = count < 0 ? errno : 0;
      if (error == EAGAIN) {
        pollfd ready{fd, POLLOUT, 0};
        poll(&ready, 1, kLookAgainMs);
      }
      std::lock_guard lock(mutex);
      if (abandoned) return false;
      if (count > 0) {
        done += static_cast<size_t>(count);
        written += static_cast<size_t>(count);
        writing -= static_cast<size_t>(count);
        changed.notify_all();
      } else if (error != EAGAIN && error != EINTR) {
        failed = true;
        LogWarning(
            Format("cannot write the capture %s (%s); nothing more is captured", name.c_str(), std::strerror(error)));
        return false;
      }
    }
    return true;
  }

  void Run() {
    std::vector<uint8_t> mine;
    std::unique_lock lock(mutex);
    for (;;) {
      if (waiting.empty() && !changed.wait_for(lock, kIdle, [&] { return abandoned || !waiting.empty(); })) break;
      if (abandoned) break;
      mine.clear();
      mine.swap(waiting);
      writing = mine.size();
      lock.unlock();
      const bool went = WriteAll(mine);
      lock.lock();
      if (!went) break;
    }
    writing = 0;
    if (failed) waiting.clear();
    thread_runs = false;
    changed.notify_all();
  }
};

BackgroundFile::BackgroundFile(int fd, std::string name, size_t most_waiting)
    : state_(std::make_shared<State>(fd, std::move(name), most_waiting)) {}

BackgroundFile::~BackgroundFile() {
  std::lock_guard lock(state_->mutex);
  state_->abandoned = true;
  state_->changed.notify_all();
}

void BackgroundFile::Append(std::vector<uint8_t>& bytes) {
  State& state = *state_;
  std::lock_guard lock(state.mutex);
  if (state.failed || bytes.empty()) return bytes.clear();
  if (state.waiting.size() + state.writing + bytes.size() > state.most) {
    if (state.left_out == 0) {
      LogWarning(Format("the capture %s cannot be written as fast as packets arrive; packets are left out of it",
                        state.name.c_str()));
    }
    state.left_out += bytes.size();
    return bytes.clear();
  }
  if (state.waiting.empty()) {
    state.waiting.swap(bytes);
  } else {
    state.waiting.insert(state.waiting.end(), bytes.begin(), bytes.end());
  }
  bytes.clear();
  state.changed.notify_all();
  if (state.thread_runs) return;
  sigset_t all, before;  // the program's handlers run on its own threads, and SIGPIPE nowhere
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  auto* held = new std::shared_ptr<State>(state_);
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    const std::unique_ptr<std::shared_ptr<State>> mine(static_cast<std::shared_ptr<State>*>(argument));
    (*mine)->Run();
    return nullptr;
  };
  state.thread_runs = pthread_create(&thread, nullptr, run, held) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (state.thread_runs) {
    pthread_detach(thread);
  } else {
    delete held;  // the next call tries again
  }
}

bool BackgroundFile::Sync(std::chrono::milliseconds patience) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  const auto done = [&] { return !state.thread_runs || (state.waiting.empty() && state.writing == 0); };
  while (!done()) {
    const uint64_t before = state.written;
    state.changed.wait_for(lock, patience, [&] { return done() || state.written != before; });
    if (!done() && state.written == before) break;
  }
  if (const uint64_t lost = std::exchange(state.left_out, 0); lost > 0) {
    LogWarning(Format("%llu bytes of packets were left out of the capture %s", static_cast<unsigned long long>(lost),
                      state.name.c_str()));
  }
  return done() && state.waiting.empty();
}

}  // namespace weft::transport
