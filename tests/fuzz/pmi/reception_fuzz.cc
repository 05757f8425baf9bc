// One who comes to a port of the KVS server's and says anything, cut anywhere: with a secret and without, and its rank's server once it was let in.
// The first byte says which, and the first byte of each chunk how long that is.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "pmi/server/reception.h"
#include "pmi/server/server.h"

namespace weft::pmi {
namespace {

class Owner final : public Server::Owner {
 public:
  void Send(int, const std::string&) override { WEFT_CHECK(!broken); }
  bool HasRoom(int) const override { return room; }
  void OnAbort(int, int, const std::string&) override {}
  void OnMisuse(int, const std::string& what) override {
    WEFT_CHECK(!broken && !what.empty());
    broken = true;
  }
  void OnFence(KeyValues) override { fence = true; }
  void OnQuestion(int, const std::string&, const Request&) override {}
  const Server::Space* SpaceOf(const std::string&) override { return nullptr; }
  void Signal(int, const std::string&) override {}

  bool broken = false, room = true, fence = false;
};

}  // namespace
}  // namespace weft::pmi

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::pmi;
  if (size == 0) return 0;
  const Reception::Job job{"kvs_1", 2, (data[0] & 1) != 0 ? "open sesame" : ""};
  Reception reception(&job);
  Owner owner;
  Server server({"kvs_1", 2, 2, {{0, 0}, {1, 0}}, {}}, &owner);
  int rank = -1;
  for (size_t at = 1; at < size;) {
    const uint8_t head = data[at++];
    const size_t length = std::min<size_t>(size - at, head >> 1);
    const std::string_view bytes(reinterpret_cast<const char*>(data + at), length);
    at += length;
    if (rank >= 0) {
      owner.room = (head & 1) != 0;
      server.Receive(rank, bytes);
      if (owner.fence) server.EndFence({});
      owner.fence = false;
      continue;
    }
    reception.Receive(bytes);
    auto guest = reception.TakeGuest();
    if (!guest) continue;
    WEFT_CHECK(job.secret.empty() && reception.problem().empty());  // nobody guesses a proof
    WEFT_CHECK(guest->rank >= 0 && guest->rank < job.size);
    if (guest->out_of_band) {
      server.Listen(guest->rank, std::move(guest->dialect), guest->question, guest->signal);
      server.Announce({"abort", "x"});
    } else {
      rank = guest->rank;
      server.Admit(rank, std::move(guest->dialect), guest->question);
    }
  }
  return 0;
}
