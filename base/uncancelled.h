#ifndef BASE_UNCANCELLED_H_
#define BASE_UNCANCELLED_H_

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <ctime>

// Verbs that are no cancellation points (pthreads(7)) in rdma-core are none in Weft. A program may cancel a thread that
// posts or polls. It expects the thread to end at a cancellation point of its own, not inside the library with the
// library's locks held.
namespace weft::uncancelled {

// While a Scope lives, its thread is not cancelled. It costs tens of nanoseconds, so it is for rare operations.
class Scope {
 public:
  Scope() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Scope() { pthread_setcancelstate(before_, nullptr); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  int before_;
};

// System calls that are no cancellation points. They also save the two atomic operations that the C library makes
// around each of these calls in a process with threads. Otherwise they behave like the C library's functions of those
// names. Where a file offset is longer than a machine word, they are those functions.
#if defined(__LP64__)
inline ssize_t Read(int fd, void* into, size_t length) { return syscall(SYS_read, fd, into, length); }
inline ssize_t Write(int fd, const void* from, size_t length) { return syscall(SYS_write, fd, from, length); }
inline ssize_t ReadAt(int fd, void* into, size_t length, off_t offset) { return syscall(SYS_pread64, fd, into, length, offset); }
inline ssize_t WriteAt(int fd, const void* from, size_t length, off_t offset) { return syscall(SYS_pwrite64, fd, from, length, offset); }
inline ssize_t Receive(int fd, void* into, size_t length, int flags) {
  return syscall(SYS_recvfrom, fd, into, length, flags, nullptr, nullptr);
}
inline ssize_t Send(int fd, const void* from, size_t length, int flags) { return syscall(SYS_sendto, fd, from, length, flags, nullptr, 0); }
inline ssize_t ReceiveMessage(int fd, msghdr* message, int flags) { return syscall(SYS_recvmsg, fd, message, flags); }
inline ssize_t SendMessage(int fd, const msghdr* message, int flags) { return syscall(SYS_sendmsg, fd, message, flags); }
inline int ReceiveMessages(int fd, mmsghdr* messages, unsigned count, int flags) {
  return static_cast<int>(syscall(SYS_recvmmsg, fd, messages, count, flags, nullptr));
}
inline int SendMessages(int fd, mmsghdr* messages, unsigned count, int flags) {
  return static_cast<int>(syscall(SYS_sendmmsg, fd, messages, count, flags));
}
inline int EpollWait(int fd, epoll_event* events, int room, int milliseconds) {
  return static_cast<int>(syscall(SYS_epoll_pwait, fd, events, room, milliseconds, nullptr, size_t{0}));
}
// poll(2) that does not wait.
inline int PollNow(pollfd* fds, nfds_t count) {
  const timespec no_time{};
  return static_cast<int>(syscall(SYS_ppoll, fds, count, &no_time, nullptr, size_t{0}));
}
#if defined(__SANITIZE_THREAD__)  // it has to see that the number is free for another thread
inline int Close(int fd) {
  const Scope scope;
  return close(fd);
}
#else
inline int Close(int fd) { return static_cast<int>(syscall(SYS_close, fd)); }
#endif
#else
inline ssize_t Read(int fd, void* into, size_t length) { return read(fd, into, length); }
inline ssize_t Write(int fd, const void* from, size_t length) { return write(fd, from, length); }
inline ssize_t ReadAt(int fd, void* into, size_t length, off_t offset) { return pread(fd, into, length, offset); }
inline ssize_t WriteAt(int fd, const void* from, size_t length, off_t offset) { return pwrite(fd, from, length, offset); }
inline ssize_t Receive(int fd, void* into, size_t length, int flags) { return recv(fd, into, length, flags); }
inline ssize_t Send(int fd, const void* from, size_t length, int flags) { return send(fd, from, length, flags); }
inline ssize_t ReceiveMessage(int fd, msghdr* message, int flags) { return recvmsg(fd, message, flags); }
inline ssize_t SendMessage(int fd, const msghdr* message, int flags) { return sendmsg(fd, message, flags); }
inline int ReceiveMessages(int fd, mmsghdr* messages, unsigned count, int flags) { return recvmmsg(fd, messages, count, flags, nullptr); }
inline int SendMessages(int fd, mmsghdr* messages, unsigned count, int flags) { return sendmmsg(fd, messages, count, flags); }
inline int EpollWait(int fd, epoll_event* events, int room, int milliseconds) { return epoll_wait(fd, events, room, milliseconds); }
inline int PollNow(pollfd* fds, nfds_t count) { return poll(fds, count, 0); }
inline int Close(int fd) { return close(fd); }
#endif

}  // namespace weft::uncancelled

#endif  // BASE_UNCANCELLED_H_
