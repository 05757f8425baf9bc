#include "mpi_hybrid/io/background.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <mutex>
#include <utility>
#include <vector>

#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/io/collective.h"
#include "mpi_hybrid/io/task_thread.h"
#include "mpi_hybrid/p2p/progress.h"

namespace weft::mpi::io {
namespace {

// With the lock: the end of a request, of which a reference goes.
void Finish(FileRequest* request) {
  request->error = std::move(request->outcome);
  SetCount(request->status, request->moved);
  request->access = Access();  // closes nothing: the file is kept by its handle
  request->Complete();
  request->Release();
}

// The thread that works for all files without the library's lock, and what it has done, which waits for someone who has the lock.
class Alone final : public ProgressStage {
 public:
  Alone() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  void Start(FileRequest* request) {
    if (under_way_++ == 0) Progress::AddStage(this);
    thread_.Submit([this, request] {
      request->outcome = request->access.Run(&request->moved);
      {
        const std::lock_guard lock(mutex_);
        done_.push_back(request);
      }
      const uint64_t one = 1;
      [[maybe_unused]] const ssize_t written = write(event_, &one, sizeof one);
    });
  }

  bool Poll() override {
    std::vector<FileRequest*> done;
    {
      const std::lock_guard lock(mutex_);
      done.swap(done_);
    }
    if (done.empty()) return false;
    uint64_t count;
    [[maybe_unused]] const ssize_t got = read(event_, &count, sizeof count);
    for (FileRequest* request : done) {
      --request->access.file().alone_under_way;
      Finish(request);
    }
    under_way_ -= done.size();
    if (under_way_ == 0) Progress::RemoveStage(this);
    return true;
  }
  bool Arm() override {
    const std::lock_guard lock(mutex_);
    return done_.empty();
  }
  int fd() const override { return event_; }

 private:
  const int event_;
  size_t under_way_ = 0;
  std::mutex mutex_;  // guards done_
  std::vector<FileRequest*> done_;
  TaskThread thread_;
};

Alone& TheAlone() {
  static auto* alone = new Alone;  // outlives the program's exit handlers
  return *alone;
}

FileRequest* MakeRequest(File& file, Access access, Request** request) {
  auto* made = new FileRequest;
  made->access = std::move(access);
  made->status = EmptyStatus();
  made->comm = file.comm;
  made->AddRef();  // of who works at it
  *request = made;
  return made;
}

}  // namespace

void StartAlone(Access access, Request** request) {
  File& file = access.file();
  ++file.alone_under_way;
  TheAlone().Start(MakeRequest(file, std::move(access), request));
}

void StartTogether(File& file, Access access, const Error& begun, Request** request) {
  // Nobody to wait for: the other thread will do, which needs no lock.
  if (file.comm->size() == 1) return StartAlone(std::move(access), request);
  FileRequest* made = MakeRequest(file, std::move(access), request);
  made->outcome = begun;
  LibraryLock::EnableThreads();
  if (!file.thread) file.thread = std::make_unique<TaskThread>();
  ++file.together_under_way;
  file.AddRef();
  file.thread->Submit([&file, made] {
    const LockGuard lock;
    const Error begun = std::move(made->outcome);
    made->outcome = RunTogether(file, made->access, begun, &made->moved);
    --file.together_under_way;
    Finish(made);
    file.Release();
  });
}

void AwaitTogether(File& file) {
  if (file.together_under_way == 0) return;
  Progress::WaitUntil([&] { return file.together_under_way == 0; });
}

void EndBackground(File& file) {
  AwaitTogether(file);
  if (file.alone_under_way > 0) Progress::WaitUntil([&] { return file.alone_under_way == 0; });
  std::unique_ptr<TaskThread> ended = std::move(file.thread);
  if (!ended) return;
  const UnlockGuard unlocked;  // for its last task, which may be about to let go of it
  ended.reset();
}

}  // namespace weft::mpi::io
