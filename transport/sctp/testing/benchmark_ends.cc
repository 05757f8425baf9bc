#include "transport/sctp/testing/benchmark_ends.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/settings.h"
#include "transport/sctp/environment.h"
#include "transport/sctp/process_sctp.h"
#include "transport/tcp_network.h"

namespace weft::transport::sctp {
namespace {

const char* g_program = "";

class Accepting : public ReadyHandler {
 public:
  Accepting(std::unique_ptr<sctp::Listener> listener, std::function<void(std::unique_ptr<Association>)> take)
      : listener_(std::move(listener)), take_(std::move(take)) {}
  void OnReady(Interest) override {
    while (auto association = listener_->Accept()) take_(std::move(association).value());
  }
  sctp::Listener& listener() { return *listener_; }

 private:
  std::unique_ptr<sctp::Listener> listener_;
  std::function<void(std::unique_ptr<Association>)> take_;
};

}  // namespace

void SetProgramName(const char* name) { g_program = name; }

void Fail(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", g_program, what.c_str());
  std::exit(1);
}

std::vector<SocketAddress> ParseAddresses(const std::string& list, uint16_t port) {
  std::vector<SocketAddress> addresses;
  for (size_t at = 0; at < list.size();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    auto address = SocketAddress::Parse(list.substr(at, comma - at), port);
    if (!address) Fail("no address: " + list.substr(at, comma - at));
    addresses.push_back(*address);
    at = comma + 1;
  }
  return addresses;
}

Sctp& OpenSctp(bool native) {
  auto sctp = ProcessSctp(ProcessNetwork(), {.udp = !native, .native = native});
  if (!sctp) Fail(std::string("no SCTP: ") + strerror(sctp.error()));
  return **sctp;
}

Settings EndSettings(const std::vector<SocketAddress>& addresses) {
  return WithUserSettings({.local_addresses = addresses}, ProcessSettings().sctp);
}

void Serve(const std::vector<SocketAddress>& addresses, bool native,
           std::function<void(std::unique_ptr<Association>)> take) {
  Sctp& sctp = OpenSctp(native);
  auto listener = sctp.Listen(*SocketAddress::Parse("0.0.0.0", 0), 16, EndSettings(addresses));
  if (!listener) Fail(std::string("cannot listen: ") + strerror(listener.error()));
  auto accepting = std::make_shared<Accepting>(std::move(listener).value(), std::move(take));
  std::printf("port %u udp %u\n", accepting->listener().LocalAddresses().at(0).port(), sctp.udp_port());
  std::fflush(stdout);
  accepting->listener().Watch(accepting);
  while (true) pause();
}

std::unique_ptr<Association> ConnectTo(Sctp& sctp, const std::string& where, bool native, const Settings& settings) {
  const size_t udp_at = where.rfind(':');
  const size_t port_at = udp_at == std::string::npos || udp_at == 0 ? std::string::npos : where.rfind(':', udp_at - 1);
  if (port_at == std::string::npos) Fail("ADDRESS,ADDRESS:PORT:UDPPORT is wanted, not " + where);
  const auto port = static_cast<uint16_t>(std::atoi(where.c_str() + port_at + 1));
  const auto udp_port = static_cast<uint16_t>(std::atoi(where.c_str() + udp_at + 1));
  const Peer peer{.addresses = ParseAddresses(where.substr(0, port_at), port),
                  .udp_port = native ? uint16_t{0} : udp_port};
  auto association = sctp.Connect(peer, 0, settings);
  if (!association) Fail(std::string("cannot connect: ") + strerror(association.error()));
  return std::move(association).value();
}

void Bell::OnReady(Interest) {
  association_.SetReading(false);
  const std::lock_guard lock(mutex_);
  rung_ = true;
  condition_.notify_one();
}

void Bell::Wait() {
  association_.SetReading(true);
  std::unique_lock lock(mutex_);
  condition_.wait_for(lock, std::chrono::milliseconds(100), [this] { return rung_; });
  rung_ = false;
}

void PrintPaths(const Association& association) {
  for (const Path& path : association.Paths()) {
    std::printf("path %s %s%s: %.1f MB out, srtt %lld ms, cwnd %u, mtu %u, failures %u\n", path.address.host().c_str(),
                path.state == PathState::kActive ? "active" : "not active", path.primary ? " primary" : "",
                static_cast<double>(path.bytes_out) / 1e6, static_cast<long long>(path.smoothed_rtt.count()),
                path.congestion_window, path.mtu, path.failures);
  }
}

void PrintPacketCounters() {
  const PacketCounters counters = ProcessPacketCounters();
  std::printf(
      "packets out %llu in %llu batches, in %llu in %llu, %llu not sent, %llu damaged, %llu of strangers\n",
      static_cast<unsigned long long>(counters.packets_out), static_cast<unsigned long long>(counters.output_batches),
      static_cast<unsigned long long>(counters.packets_in), static_cast<unsigned long long>(counters.input_batches),
      static_cast<unsigned long long>(counters.not_sent), static_cast<unsigned long long>(counters.damaged),
      static_cast<unsigned long long>(counters.strangers));
}

}  // namespace weft::transport::sctp
