/* relays: what a message between two clients of an IMPI job costs before anybody looks at it. Two processes, in the place of the ranks, send 40 bytes to and
 * fro through two others, in the place of the agents, that sleep until something comes and pass it on. Prints half of a round trip, in microseconds, with
 * ends that spin and with ends that sleep. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kBytes = 40, kTurns = 4500, kBatches = 9 };

static void Check(int good, const char* what) {
  if (good) return;
  perror(what);
  exit(1);
}

static void TcpPair(int ends[2]) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  const int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  Check(bind(listener, (struct sockaddr*)&address, length) == 0 && listen(listener, 1) == 0, "listen");
  Check(getsockname(listener, (struct sockaddr*)&address, &length) == 0, "getsockname");
  ends[0] = socket(AF_INET, SOCK_STREAM, 0);
  Check(connect(ends[0], (struct sockaddr*)&address, length) == 0, "connect");
  Check((ends[1] = accept(listener, NULL, NULL)) >= 0, "accept");
  for (int i = 0; i < 2; ++i) setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  close(listener);
}

static void Pass(int from, int to) {
  char bytes[4096];
  const ssize_t got = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
  if (got == 0) exit(0);
  if (got > 0) Check(send(to, bytes, (size_t)got, MSG_NOSIGNAL) == got, "send");
}

static void Relay(int one, int other) {
  const int epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  event.data.fd = one;
  Check(epoll_ctl(epoll, EPOLL_CTL_ADD, one, &event) == 0, "epoll_ctl");
  event.data.fd = other;
  Check(epoll_ctl(epoll, EPOLL_CTL_ADD, other, &event) == 0, "epoll_ctl");
  for (;;) {
    struct epoll_event ready[2];
    const int count = epoll_wait(epoll, ready, 2, -1);
    for (int i = 0; i < count; ++i) Pass(ready[i].data.fd, ready[i].data.fd == one ? other : one);
  }
}

static void Receive(int fd, int spins) {
  char bytes[kBytes];
  for (size_t come = 0; come < kBytes;) {
    const ssize_t got = recv(fd, bytes + come, kBytes - come, spins ? MSG_DONTWAIT : 0);
    if (got == 0) exit(0);
    if (got > 0) come += (size_t)got;
  }
}

static void Send(int fd) {
  static const char bytes[kBytes];
  Check(send(fd, bytes, kBytes, MSG_NOSIGNAL) == kBytes, "send");
}

static double Now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static int Ascending(const void* a, const void* b) { return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b); }

static double Measure(int spins) {
  int left[2], middle[2], right[2];
  double batches[kBatches];
  Check(socketpair(AF_UNIX, SOCK_STREAM, 0, left) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, right) == 0, "socketpair");
  TcpPair(middle);
  for (int child = 0; child < 3; ++child) {
    if (fork() != 0) continue;
    const int kept[3][2] = {{left[1], middle[0]}, {middle[1], right[0]}, {right[1], right[1]}};
    const int all[] = {left[0], left[1], middle[0], middle[1], right[0], right[1]};
    for (int i = 0; i < 6; ++i) {
      if (all[i] != kept[child][0] && all[i] != kept[child][1]) close(all[i]);
    }
    if (child < 2) Relay(kept[child][0], kept[child][1]);
    for (;;) {
      Receive(right[1], spins);
      Send(right[1]);
    }
  }
  for (int i = 0; i < 2; ++i) {
    close(middle[i]);
    close(right[i]);
  }
  close(left[1]);
  for (int batch = -1; batch < kBatches; ++batch) { /* one to warm up */
    const double start = Now();
    for (int i = 0; i < kTurns / kBatches; ++i) {
      Send(left[0]);
      Receive(left[0], spins);
    }
    if (batch >= 0) batches[batch] = (Now() - start) / (kTurns / kBatches) / 2;
  }
  close(left[0]); /* the others end one after the other */
  qsort(batches, kBatches, sizeof *batches, Ascending);
  return batches[kBatches / 2];
}

int main(void) {
  printf("%.2f ", Measure(1));
  fflush(stdout);
  printf("%.2f\n", Measure(0));
  return 0;
}
