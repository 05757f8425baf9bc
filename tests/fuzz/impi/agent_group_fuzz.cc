// What a client with two hosts hears from its agents. Each step is two bytes, the agent and a length, and so many bytes that it sends; length 0 closes its
// connection. Then stages only ascend, a failure has a reason, and reports are written back the same.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "impi/client/agent_group.h"
#include "impi/client/report.h"

namespace weft::impi {
namespace {

void CheckReports(ByteSpan bytes) {
  CommandReader reader(kLongestReport);
  reader.Append(bytes);
  while (const auto command = reader.NextCommand()) {
    if (const auto here = HereReport::From(*command)) WEFT_CHECK(here->ToCommand() == *command);
    if (const auto fail = FailReport::From(*command)) WEFT_CHECK(fail->ToCommand() == *command);
    if (const auto work = WorkOrder::From(*command)) WEFT_CHECK(work->ToCommand() == *command);
  }
}

}  // namespace
}  // namespace weft::impi

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::impi;
  using Stage = AgentGroup::Stage;
  CheckReports({data, size});
  AgentGroup group(ClientRank(1), {"a", "b"});
  Stage before = group.stage();
  for (size_t at = 0; at + 2 <= size;) {
    const size_t agent = data[at] % 2, length = std::min<size_t>(data[at + 1], size - at - 2);
    if (data[at + 1] == 0) {
      group.OnClosed(agent);
    } else {
      group.OnBytes(agent, {data + at + 2, length});
    }
    at += 2 + length;
    if (group.stage() == Stage::kPlaced) group.Begin(HostRank(3), Bytes(8));
    WEFT_CHECK(group.stage() >= before);
    WEFT_CHECK((group.stage() == Stage::kFailed) == !group.reason().empty());
    before = group.stage();
  }
  return 0;
}
