// SCTP as part of a shared library, as the drop-in libraries have it.
#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>

#include "transport/sctp/process_sctp.h"
#include "transport/tcp_network.h"

// 0 when a process that loaded this had a message to itself, else an errno.
extern "C" __attribute__((visibility("default"))) int weft_sctp_talks_to_itself() {
  using namespace weft::transport;        // NOLINT
  using namespace weft::transport::sctp;  // NOLINT
  auto sctp = ProcessSctp(ProcessNetwork(), {});
  if (!sctp) return sctp.error();
  auto listener = (*sctp)->Listen(*SocketAddress::Parse("127.0.0.1", 0), 1, {});
  if (!listener) return listener.error();
  const uint16_t port = (*listener)->LocalAddresses().at(0).port();
  auto client = (*sctp)->Connect({{*SocketAddress::Parse("127.0.0.1", port)}, (*sctp)->udp_port()}, 0, {});
  if (!client) return client.error();
  uint8_t byte = 42;
  const iovec piece{.iov_base = &byte, .iov_len = 1};
  uint8_t room[512];
  const iovec into{.iov_base = room, .iov_len = sizeof room};
  std::unique_ptr<Association> server;
  bool sent = false;
  for (int i = 0; i < 10'000; ++i) {
    const Received received = (*client)->Receive({&into, 1});
    if (received.kind == Received::Kind::kFailed) return received.error;
    if (!sent) sent = (*client)->Send({.pieces = {&piece, 1}}).kind == IoResult::Kind::kDone;
    if (server == nullptr) {
      auto accepted = (*listener)->Accept();
      if (accepted) server = std::move(accepted).value();
    } else if (server->Receive({&into, 1}).kind == Received::Kind::kMessage) {
      return room[0] == 42 ? 0 : EBADMSG;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return ETIMEDOUT;
}
