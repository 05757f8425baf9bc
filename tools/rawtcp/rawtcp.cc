// rawtcp: the bandwidth of one raw TCP connection over loopback, between two processes, in MiB/s (2^20 bytes). It is what a
// one-way RDMA Write is compared with: the sender writes one buffer again and again, the receiver reads into one buffer.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void Die(const char* call) {
  std::perror(call);
  std::exit(1);
}

int Listen(sockaddr_in* address) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  socklen_t length = sizeof *address;
  if (listener < 0 || bind(listener, reinterpret_cast<sockaddr*>(address), length) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(address), &length) != 0) {
    Die("listen on 127.0.0.1");
  }
  return listener;
}

[[noreturn]] void Send(const sockaddr_in& address, std::size_t size, double seconds) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) Die("connect");
  const std::vector<char> buffer(size, 'x');
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end) {
    for (std::size_t sent = 0; sent < size;) {
      const ssize_t n = write(fd, buffer.data() + sent, size - sent);
      if (n < 0) Die("write");
      sent += static_cast<std::size_t>(n);
    }
  }
  std::_Exit(0);
}

// Returns MiB/s from the first byte to the last.
double Receive(int fd, std::size_t size) {
  std::vector<char> buffer(size);
  double bytes = 0;
  const auto start = Clock::now();
  for (;;) {
    const ssize_t n = recv(fd, buffer.data(), size, MSG_WAITALL);
    if (n < 0) Die("recv");
    if (n == 0) break;
    bytes += static_cast<double>(n);
  }
  const std::chrono::duration<double> took = Clock::now() - start;
  return bytes / took.count() / (1 << 20);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Bandwidth of raw TCP over loopback, MiB/s.", "rawtcp");
  std::size_t size = 65536;
  double seconds = 1;
  app.add_option("--size", size, "bytes per write and read")->check(CLI::PositiveNumber);
  app.add_option("--seconds", seconds, "how long to send")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int listener = Listen(&address);
  const pid_t child = fork();
  if (child < 0) Die("fork");
  if (child == 0) Send(address, size, seconds);
  const int fd = accept(listener, nullptr, nullptr);
  if (fd < 0) Die("accept");
  std::printf("%.1f\n", Receive(fd, size));
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
