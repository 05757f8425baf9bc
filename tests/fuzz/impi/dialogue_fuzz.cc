// What a server sends a client of an IMPI job. The first byte says how the stream is cut; then the dialogue has ended with a reason, or every answer that it
// keeps is one that it asked for, and its next question is a whole command. Job::Of takes what was told, whatever it is.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "impi/client/dialogue.h"
#include "impi/job/announcement.h"
#include "impi/job/job.h"

namespace weft::impi {
namespace {

Announcement Mine() {
  HostId address{};
  address[12] = 127;
  address[15] = 1;
  return {.data_length = 65536, .tag_upper_bound = INT32_MAX, .hosts = {{address, 34853, 10, 20, {{address, 2209}}}}};
}

void CheckOutput(const Dialogue& dialogue, const Bytes& output, bool key) {
  ByteSpan bytes(output);
  if (key && bytes.size() >= kKeySize && bytes[0] == 0) bytes = bytes.subspan(kKeySize);
  CommandReader reader(1000);
  reader.Append(bytes);
  while (reader.NextCommand()) {
  }
  WEFT_CHECK(!reader.refused_length() && reader.waiting() == 0);
  WEFT_CHECK(dialogue.state() != Dialogue::State::kFailed || output.empty());
}

}  // namespace
}  // namespace weft::impi

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::impi;
  using State = Dialogue::State;
  if (size == 0) return 0;
  const Announcement mine = Mine();
  Dialogue::Time now{};
  Dialogue dialogue({.server = "192.0.2.1:5678", .rank = 1, .none = true, .key = 5678, .says = mine.ToLabels()}, now);
  dialogue.TakeOutput();
  const size_t step = 1 + data[0];
  weft::ByteSpan bytes(data + 1, size - 1);
  while (!bytes.empty()) {
    dialogue.OnBytes(bytes.first(std::min(step, bytes.size())), now);
    bytes = bytes.subspan(std::min(step, bytes.size()));
    CheckOutput(dialogue, dialogue.TakeOutput(), true);
    WEFT_CHECK((dialogue.state() == State::kFailed) == !dialogue.reason().empty());
    WEFT_CHECK(dialogue.deadline().has_value() == (dialogue.state() < State::kRunning));
  }
  if (dialogue.state() == State::kRunning) {
    WEFT_CHECK(dialogue.told().size() == 14);
    const auto job = Job::Of(dialogue.clients(), dialogue.told(), ClientRank(1), mine);
    WEFT_CHECK(job.ok() || !job.error().empty());
    if (job.ok()) WEFT_CHECK(job->limits().data_length <= mine.data_length && 1 <= job->ack_mark() && job->ack_mark() <= job->high_water());
    dialogue.Finish();
    CheckOutput(dialogue, dialogue.TakeOutput(), false);
  } else {
    dialogue.OnTime(now + std::chrono::hours(2));
    WEFT_CHECK(dialogue.state() == State::kFailed);
  }
  dialogue.OnClosed();
  WEFT_CHECK(dialogue.state() == State::kEnded || dialogue.state() == State::kFailed);
  return 0;
}
