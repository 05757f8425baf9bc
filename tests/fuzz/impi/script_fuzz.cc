// A script of weft-impi-test, and what a peer sends while it is played, behind the first byte 0xff. Each step of the
// peer is a byte that says what happens and where, and a number of bytes that come. A failure has a reason, and an
// error a text.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "impi/tester/play.h"
#include "impi/tester/script.h"

namespace weft::impi::tester {
namespace {

class Deaf : public Play::Owner {
 public:
  void Open(const std::string&, const HostId&, uint16_t) override {}
  void Send(const std::string&, const Bytes&) override {}
  void Close(const std::string&) override {}
};

void PlayWith(const Script& script, ByteSpan peer) {
  static const std::array<std::string, 5> kNames{"a", "b", "server", "host0", "host1"};
  Play::Time now{};
  Play::Setup setup;
  if (script.target == Target::kClient) setup.hosts.resize(static_cast<size_t>(script.hosts()));
  Deaf owner;
  Play play(script, setup, owner, now);
  while (!peer.empty() && play.state() == Play::State::kPlaying) {
    const uint8_t what = peer[0];
    peer = peer.subspan(1);
    const std::string& name = kNames[what / 8 % kNames.size()];
    switch (what % 8) {
      case 0:
        play.OnOpened(name, now);
        break;
      case 1:
        play.OnAccepted(name, now);
        break;
      case 2:
        play.OnClosed(name, now);
        break;
      case 3:
        play.OnExit(what / 8 % 2, now);
        break;
      case 4:
        now += std::chrono::milliseconds(100);
        play.OnTime(now);
        break;
      default: {
        const size_t count = std::min(peer.size(), size_t{1} << (what % 8));
        play.OnBytes(name, peer.first(count), now);
        peer = peer.subspan(count);
      }
    }
    WEFT_CHECK(play.done() <= script.steps.size());
  }
  // Whatever it waits for has a limit.
  for (size_t i = 0; i <= script.steps.size() && play.state() == Play::State::kPlaying; ++i) {
    WEFT_CHECK(play.deadline());
    now = std::max(now, *play.deadline());
    play.OnTime(now);
  }
  WEFT_CHECK(play.state() != Play::State::kPlaying);
  WEFT_CHECK((play.state() == Play::State::kFailed) == !play.failure().reason.empty());
}

}  // namespace
}  // namespace weft::impi::tester

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::impi::tester;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::string_view text = all.substr(0, all.find('\xff'));
  const auto script = ParseScript("a.script", text);
  if (!script.ok()) {
    WEFT_CHECK(!script.error().text.empty() && script.error().line <= static_cast<int>(text.size()) + 1);
    return 0;
  }
  WEFT_CHECK(!script->steps.empty() && !script->clause.empty());
  PlayWith(*script, weft::ByteSpan(data, size).subspan(std::min(size, text.size() + 1)));
  return 0;
}
