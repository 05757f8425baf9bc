#include "preload/root.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// The C library's own name: libtsan takes clone() for fork(), and then this process for the child that shares its memory.
extern "C" int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...);

namespace weft::preload {
namespace {

constexpr long kFreshSeconds = 2, kFreshAfterFailureSeconds = 60;
constexpr size_t kMaxText = 1024;
constexpr int kPatienceMs = 5000;
constexpr char kMaker[] = "/weft-paths";

pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;  // guards what follows
char g_root[kMaxRoot];
timespec g_asked;
bool g_was_asked, g_failed;

// Stacks of the two children, which share our memory.
constexpr size_t kStack = 16384;
alignas(16) char g_keeper_stack[kStack], g_maker_stack[kStack];

// What the calls that are not about our paths look at.
std::atomic<bool> g_known{false};
std::atomic<dev_t> g_device{0};

// Holds the mutex with signals blocked: a handler that opens one of our paths would wait for its own thread.
class Guard {
 public:
  Guard() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
    pthread_mutex_lock(&g_mutex);
  }
  ~Guard() {
    pthread_mutex_unlock(&g_mutex);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  sigset_t before_;
};

// The folder of this library plus kMaker.
bool MakerPath(char* out, size_t size) {
  Dl_info info;
  // From a relative path whoever chose the working directory would choose the program.
  if (dladdr(&g_root, &info) == 0 || info.dli_fname == nullptr || info.dli_fname[0] != '/') return false;
  const char* slash = strrchr(info.dli_fname, '/');
  if (slash == nullptr) return false;
  const size_t length = static_cast<size_t>(slash - info.dli_fname);
  if (length + sizeof kMaker > size) return false;
  memcpy(out, info.dli_fname, length);
  memcpy(out + length, kMaker, sizeof kMaker);
  return true;
}

// The program's environment without LD_PRELOAD: the maker needs neither this library nor a sanitizer's order of libraries disturbed. Not in
// memory of malloc, which the program may be in the middle of.
class Environment {
 public:
  Environment() {
    size_t count = 0;
    while (environ != nullptr && environ[count] != nullptr) ++count;
    bytes_ = (count + 1) * sizeof(char*);
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    entries_ = static_cast<char**>(memory);
    size_t kept = 0;
    for (size_t i = 0; i < count; ++i) {
      if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0) entries_[kept++] = environ[i];
    }
  }
  ~Environment() {
    if (entries_ != nullptr) munmap(entries_, bytes_);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  char** entries() const { return entries_; }  // null: no memory

 private:
  char** entries_ = nullptr;
  size_t bytes_;
};

struct Maker {
  const char* path;
  char** environment;
  int ends[2];  // of the pipe that it prints into
  char text[kMaxText];
  bool done;  // `text` is the root
  bool told;  // `text` says why there is none
};

// In the maker's process until it executes.
int Execute(void* argument) {
  const auto* maker = static_cast<const Maker*>(argument);
  const long null = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
  if (null >= 0) {
    syscall(SYS_dup3, null, 0, 0);
    syscall(SYS_dup3, null, 2, 0);
  }
  syscall(SYS_dup3, maker->ends[1], 1, 0);
  char* const arguments[] = {const_cast<char*>(maker->path), nullptr};
  execve(maker->path, arguments, maker->environment);
  _exit(127);
}

long MsSince(const timespec& start) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000;
}

// Up to `size` bytes until the end of a line; -1: none, or it took too long.
ssize_t ReadLine(int fd, char* into, size_t size) {
  timespec start;
  clock_gettime(CLOCK_MONOTONIC, &start);
  size_t length = 0;
  while (length < size) {
    const long left = kPatienceMs - MsSince(start);
    const timespec wait = {left / 1000, left % 1000 * 1000000};
    pollfd ready = {fd, POLLIN, 0};
    if (left <= 0 || syscall(SYS_ppoll, &ready, 1, &wait, nullptr, 0) <= 0) return -1;
    const long got = syscall(SYS_read, fd, into + length, size - length);
    if (got <= 0) return -1;
    length += static_cast<size_t>(got);
    if (into[length - 1] == '\n') return static_cast<ssize_t>(length);
  }
  return -1;
}

// In the keeper's process: the maker's parent in the program's place. Executing makes a process one whose end is told by SIGCHLD and
// whose parent's wait() returns it, so the program cannot be the parent itself.
int Keep(void* argument) {
  auto* maker = static_cast<Maker*>(argument);
  const int pid = __clone(Execute, g_maker_stack + kStack, CLONE_VM | CLONE_VFORK | SIGCHLD, maker);
  syscall(SYS_close, maker->ends[1]);
  maker->ends[1] = -1;
  if (pid < 0) return 1;
  const ssize_t length = ReadLine(maker->ends[0], maker->text, sizeof maker->text);
  if (length < 0) syscall(SYS_kill, pid, SIGKILL);
  int status = 0;
  // ECHILD where the program ignores SIGCHLD: what was printed has to do.
  while (syscall(SYS_wait4, pid, &status, __WALL, nullptr) < 0 && errno == EINTR) {
  }
  if (length >= 2) maker->text[length - 1] = '\0';
  maker->done = length >= 2 && length <= static_cast<ssize_t>(kMaxRoot) && status == 0 && maker->text[0] == '/';
  maker->told = length >= 2 && maker->text[0] == '!';
  return 0;
}

// What stderr was when the program started; anything else there is a file of the program.
struct stat g_stderr;
bool g_has_stderr;

// Once. Neither waits for whoever reads stderr, nor uses memory of malloc or buffers of stdio.
void Say(const char* why) {
  static bool said = false;
  struct stat now;
  pollfd ready = {STDERR_FILENO, POLLOUT, 0};
  const timespec none = {0, 0};
  if (said || !g_has_stderr || syscall(SYS_fstat, STDERR_FILENO, &now) != 0 || now.st_ino != g_stderr.st_ino ||
      now.st_dev != g_stderr.st_dev || syscall(SYS_ppoll, &ready, 1, &none, nullptr, 0) != 1 || (ready.revents & POLLOUT) == 0) {
    return;
  }
  said = true;
  char line[kMaxText + 256];
  const int length = snprintf(line, sizeof line, "weft: /sys/class/infiniband and /dev/infiniband show no device of Weft: %s (to ignore this: WEFT_PATHS=off)\n", why);
  if (length > 0) syscall(SYS_write, STDERR_FILENO, line, static_cast<size_t>(length) < sizeof line ? static_cast<size_t>(length) : sizeof line - 1);
}

// Runs weft-paths; its one line of output, terminated, in `root`.
bool RunMaker(char* root) {
  char path[4096];
  const Environment environment;
  Maker maker = {path, environment.entries(), {-1, -1}, {}, false, false};
  if (environment.entries() == nullptr || !MakerPath(path, sizeof path) || syscall(SYS_pipe2, maker.ends, O_CLOEXEC) != 0) return false;
  // No signal at its end, and only waiting for it in this way returns it. It shares our memory and
  // descriptors; we sleep until it ends.
  const int pid = __clone(Keep, g_keeper_stack + kStack, CLONE_VM | CLONE_FILES | CLONE_VFORK, &maker);
  while (pid > 0 && syscall(SYS_wait4, pid, nullptr, __WALL, nullptr) < 0 && errno == EINTR) {
  }
  for (const int end : maker.ends) {
    if (end >= 0) syscall(SYS_close, end);
  }
  if (maker.done) memcpy(root, maker.text, kMaxRoot);
  if (maker.told) Say(maker.text + 1);
  return maker.done;
}

bool IsOff() {
  if (getauxval(AT_SECURE) != 0) return true;  // a program is started with the environment, which is its caller's
  const char* value = getenv("WEFT_PATHS");
  return value != nullptr && strcmp(value, "off") == 0;
}

// Requires g_mutex.
void Refresh() {
  if (g_was_asked && MsSince(g_asked) < (g_failed ? kFreshAfterFailureSeconds : kFreshSeconds) * 1000) return;
  g_failed = true;
  char root[kMaxRoot];
  struct stat status;
  if (!IsOff() && RunMaker(root) && syscall(SYS_newfstatat, AT_FDCWD, root, &status, 0) == 0) {
    memcpy(g_root, root, sizeof g_root);
    g_device.store(status.st_dev, std::memory_order_relaxed);
    g_known.store(true, std::memory_order_release);
    g_failed = false;
  }
  clock_gettime(CLOCK_MONOTONIC, &g_asked);
  g_was_asked = true;
}

// Another thread may have held it when the process forked.
void UnlockInChild() { pthread_mutex_init(&g_mutex, nullptr); }

__attribute__((constructor)) void Initialize() {
  g_has_stderr = syscall(SYS_fstat, STDERR_FILENO, &g_stderr) == 0;
  pthread_atfork(nullptr, nullptr, UnlockInChild);
}

}  // namespace

bool AskForRoot(char* out) {
  const int error = errno;
  bool known;
  {
    Guard guard;
    Refresh();
    memcpy(out, g_root, sizeof g_root);
    known = g_root[0] != '\0';
  }
  errno = error;
  return known;
}

bool IsNode(const struct stat& status) {
  return g_known.load(std::memory_order_acquire) && S_ISREG(status.st_mode) && (status.st_mode & S_ISVTX) != 0 && status.st_size == 0 &&
         status.st_dev == g_device.load(std::memory_order_relaxed);
}

}  // namespace weft::preload
