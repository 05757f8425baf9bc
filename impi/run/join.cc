#include "impi/run/join.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "pmi/launch/outbox.h"
#include "pmi/launch/sockets.h"

namespace weft::impi {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::chrono::seconds kFlushLimit{5};  // for FINI

}  // namespace

ServerLink::ServerLink(Descriptor fd, Dialogue::Setup setup) : fd_(std::move(fd)), dialogue_(std::move(setup), Clock::now()) {}

Result<std::unique_ptr<ServerLink>, std::string> ServerLink::Join(const std::string& address, uint16_t port, Dialogue::Setup setup,
                                                                          const Waiter& wait) {
  setup.server = address + ":" + std::to_string(port);
  const std::string server = setup.server;
  if (!setup.none && !setup.key) return Dialogue(std::move(setup), Clock::now()).reason();
  Descriptor fd(pmi::Dial(address, std::to_string(port)));
  if (!fd) return "cannot connect to the server at " + server + "; is it running, and is this the address that it printed?";
  pmi::ConfigureTcp(fd.get());
  std::unique_ptr<ServerLink> link(new ServerLink(std::move(fd), std::move(setup)));
  while (link->Talk(wait)) {
  }
  if (link->interrupted_) return *link->interrupted_;
  if (link->dialogue_.state() == Dialogue::State::kFailed) return link->dialogue_.reason();
  return link;
}

// Writes what is to be said, waits for the server and hears it. False: the start is over, in either way.
bool ServerLink::Talk(const Waiter& wait) {
  pmi::Outbox out;
  const Bytes output = dialogue_.TakeOutput();
  out.Add({reinterpret_cast<const char*>(output.data()), output.size()});
  const auto going = [this] { return dialogue_.state() < Dialogue::State::kRunning; };
  while (going()) {
    // A server that has gone may have said why not; so it is read, also when it takes nothing.
    if (out.WriteTo(fd_.get()) != 0) out.Clear();
    short came = 0;
    pmi::Poller poller;
    poller.Watch(fd_.get(), static_cast<short>(POLLIN | (out.empty() ? 0 : POLLOUT)), [&came](short events) { came = events; });
    const auto left = std::max(milliseconds(0), std::chrono::ceil<milliseconds>(*dialogue_.deadline() - Clock::now()));
    if (wait) {
      interrupted_ = wait(poller, static_cast<int>(left.count()));
      if (interrupted_) return false;
    } else {
      poller.Wait(static_cast<int>(left.count()));
    }
    dialogue_.OnTime(Clock::now());
    if ((came & ~POLLOUT) == 0) continue;
    LookAtServer();
    if (out.empty()) break;
  }
  return going();
}

std::optional<std::string> ServerLink::LookAtServer() {
  char block[65536];
  const long count = pmi::ReadSome(fd_.get(), block, sizeof block);
  if (count > 0) dialogue_.OnBytes({reinterpret_cast<const uint8_t*>(block), static_cast<size_t>(count)}, Clock::now());
  if (count <= 0 && count != -EAGAIN) dialogue_.OnClosed();
  if (dialogue_.state() != Dialogue::State::kFailed) return std::nullopt;
  return dialogue_.reason();
}

void ServerLink::Leave() {
  dialogue_.Finish();
  const Bytes output = dialogue_.TakeOutput();
  pmi::Outbox out;
  out.Add({reinterpret_cast<const char*>(output.data()), output.size()});
  for (const auto end = Clock::now() + kFlushLimit; out.WriteTo(fd_.get()) == 0 && !out.empty() && Clock::now() < end;) {
    pollfd ready{fd_.get(), POLLOUT, 0};
    poll(&ready, 1, 100);
  }
  fd_.Close();
}

}  // namespace weft::impi
