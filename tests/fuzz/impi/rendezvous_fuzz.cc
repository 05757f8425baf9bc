// Clients and strangers at the server of an IMPI job. Each input byte pair says who does what; then nothing was sent to who is gone, and the state fits.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>

#include "base/check.h"
#include "impi/server/rendezvous.h"

namespace weft::impi {
namespace {

constexpr int kClients = 2;

class Owner : public Rendezvous::Owner {
 public:
  void Send(Rendezvous::Connection connection, const Bytes& bytes) override { WEFT_CHECK(open.contains(connection) && !bytes.empty()); }
  void Close(Rendezvous::Connection connection) override { WEFT_CHECK(open.erase(connection) == 1); }
  void Warn(const std::string& text) override { WEFT_CHECK(!text.empty() && ++warnings <= Rendezvous::kMostWarnings); }
  std::set<Rendezvous::Connection> open;
  int warnings = 0;
};

// The first nibble of a step is what is done, the second one by which connection.
enum Step : uint8_t { kConnect, kLeave, kAuth, kKey, kWrongKey, kJoin, kSay, kDone, kFini, kRaw, kTime };

}  // namespace
}  // namespace weft::impi

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::impi;
  using State = Rendezvous::State;
  Owner owner;
  Rendezvous server({.clients = kClients, .methods = {AuthMethod::kKey, AuthMethod::kNone}, .key = 7}, owner);
  Rendezvous::Time now{};
  Rendezvous::Connection generation = 0;
  for (size_t at = 0; at + 1 < size; at += 2) {
    const Rendezvous::Connection connection = data[at] & 0xf;
    const uint8_t word = data[at + 1];
    const auto say = [&](const Bytes& bytes) { server.OnBytes(generation + connection, bytes, now); };
    switch (static_cast<Step>(data[at] >> 4)) {
      case kConnect:
        if (owner.open.insert(generation + connection).second) server.OnConnected(generation + connection, "address", now);
        break;
      case kLeave:
        if (owner.open.erase(generation + connection) == 1) server.OnClosed(generation + connection);
        break;
      case kAuth:
        say(Command::OfNumber(CommandCode::kAuth, word).Serialize());
        break;
      case kKey:
        say(SerializeKey(7));
        break;
      case kWrongKey:
        say(SerializeKey(word));
        break;
      case kJoin:
        say(Command::OfNumber(CommandCode::kImpi, word).Serialize());
        break;
      case kSay:
        say(Collected{static_cast<Label>(word), 0, Bytes(word)}.ToServer().Serialize());
        break;
      case kDone:
        say(Command{CommandCode::kDone, {}}.Serialize());
        break;
      case kFini:
        say(Command{CommandCode::kFini, {}}.Serialize());
        break;
      case kRaw:
        say(Bytes{word});
        break;
      case kTime:
      default:
        now += std::chrono::milliseconds(100 * word);
        server.OnTime(now);
        WEFT_CHECK(!server.deadline() || *server.deadline() > now);
        generation += 16 * (word == 255);
    }
    WEFT_CHECK((server.state() == State::kFailed) == !server.reason().empty());
    if (server.state() == State::kFailed || server.state() == State::kEnded) WEFT_CHECK(owner.open.empty());
  }
  return 0;
}
