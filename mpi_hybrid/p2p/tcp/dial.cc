#include "mpi_hybrid/p2p/tcp/dial.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/host_port.h"

namespace weft::mpi {
namespace {

constexpr auto kFirstPause = std::chrono::milliseconds(10);  // between rounds; doubled each time
constexpr int kMostDoublings = 6;

}  // namespace

std::optional<Dial> Dial::Make(const std::string& published) {
  Dial dial;
  for (size_t at = 0; at <= published.size();) {
    const size_t comma = std::min(published.find(',', at), published.size());
    if (const auto place = ParseHostPort(std::string_view(published).substr(at, comma - at))) {
      if (const auto address = transport::SocketAddress::Parse(place->host, place->port)) dial.all_.push_back(*address);
    }
    at = comma + 1;
  }
  if (dial.all_.empty()) return std::nullopt;
  dial.addresses_ = dial.all_;
  return dial;
}

std::optional<Dial::Clock::time_point> Dial::Begin(Clock::time_point now) {
  if (!since_) since_ = now;
  no_room_since_.reset();
  looks_for_room_ = 0;
  // The last one has the kernel's time, and when that accepts as long as the process likes; unless another has been found to wait for.
  if (at_ + 1 == addresses_.size() && silent_.empty()) return std::nullopt;
  return now + limit_;
}

Dial::Next Dial::Failed(Clock::time_point now, End end) {
  if (end == End::kSilent) silent_.push_back(addresses_[at_]);
  somebody_ |= end == End::kClosed;
  retry_at_ = now;
  if (++at_ < addresses_.size()) return Next::kTry;
  return EndRound(now);
}

Dial::Next Dial::EndRound(Clock::time_point now) {
  at_ = 0;
  const bool somebody = std::exchange(somebody_, false);
  if (!silent_.empty()) {
    addresses_ = std::exchange(silent_, {});
    limit_ = std::min<Clock::duration>(2 * limit_, kMostAddressLimit);
    since_.reset();
    rounds_ = 0;
    return Next::kTry;
  }
  // Those that were silent are no more; what of the others?
  const bool asked_all = addresses_.size() == all_.size();
  addresses_ = all_;
  if (!somebody) return asked_all ? Next::kDead : Next::kTry;
  if (++rounds_ >= kFewestAttempts && now - *since_ >= kPatience) return Next::kUnreachable;
  retry_at_ = now + kFirstPause * (1 << std::min(rounds_ - 1, kMostDoublings));
  return Next::kTry;
}

void Dial::Busy(Clock::time_point now) {
  since_.reset();
  rounds_ = 0;
  retry_at_ = now + kBusyPause;
}

Dial::Next Dial::NoRoom(Clock::time_point now) {
  if (!no_room_since_) no_room_since_ = now;
  if (++looks_for_room_ >= kFewestAttempts && now - *no_room_since_ >= kPatience) return Next::kUnreachable;
  retry_at_ = now + kRoomLook;
  return Next::kTry;
}

std::string JoinAddresses(const std::vector<transport::SocketAddress>& addresses, size_t most) {
  std::string text;
  for (const transport::SocketAddress& address : addresses) {
    const std::string one = address.ToString();
    if (!text.empty() && text.size() + 1 + one.size() > most) continue;
    text += (text.empty() ? "" : ",") + one;
  }
  return text;
}

}  // namespace weft::mpi
