// The whole conversation of two ranks with their server, hostile ones: each chunk of the input goes to one of them, its first byte
// says which, how many bytes, and what the owner does next. Nothing crashes, and no rank is answered after it was told off.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "pmi/server/names.h"
#include "pmi/server/server.h"

namespace weft::pmi {
namespace {

class Owner final : public Server::Owner {
 public:
  void Send(int rank, const std::string& bytes) override {
    WEFT_CHECK(!broken[rank]);
    sent += bytes.size();
  }
  bool HasRoom(int) const override { return true; }
  void OnAbort(int, int, const std::string&) override {}
  void OnMisuse(int rank, const std::string& what) override {
    WEFT_CHECK(!broken[rank] && !what.empty());
    broken[rank] = true;
  }
  void OnFence(KeyValues put) override { fence = std::move(put); }
  void OnQuestion(int rank, const std::string& ticket, const Request& request) override { questions.push_back({rank, ticket, request}); }
  const Server::Space* SpaceOf(const std::string& job_id) override { return job_id == "a" ? &other : nullptr; }
  void Signal(int, const std::string&) override {}

  struct Asked {
    int rank;
    std::string ticket;
    Request request;
  };
  std::map<int, bool> broken;
  std::vector<Asked> questions;
  std::optional<KeyValues> fence;
  Server::Space other{{"k", "v"}};
  size_t sent = 0;
};

}  // namespace
}  // namespace weft::pmi

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::pmi;
  Owner owner;
  NameService names;
  Server server({"kvs_1", 4, 9, {{0, 0}, {1, 1}}, {{"given", "x"}}, "a"}, &owner);
  for (size_t at = 0; at < size;) {
    const uint8_t head = data[at++];
    const int rank = head & 1;
    const size_t length = std::min<size_t>(size - at, head >> 2);
    if (!owner.broken[rank] && (head & 2) != 0 && server.state(rank) == Server::State::kSilent) {
      server.Receive(rank, "cmd=init pmi_version=2 pmi_subversion=0\n    13cmd=fullinit;");
    }
    server.Receive(rank, {reinterpret_cast<const char*>(data + at), length});
    at += length;
    if (owner.fence) server.EndFence(*std::exchange(owner.fence, std::nullopt));
    for (const auto& [asker, ticket, request] : std::exchange(owner.questions, {})) {
      if (!owner.broken[asker]) server.TakeAnswer(asker, ticket, names.Do(request, 0));
    }
  }
  return 0;
}
