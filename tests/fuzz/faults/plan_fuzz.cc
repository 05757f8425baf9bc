// Any bytes as a specification of faults: it is refused with a place inside it, or what was read says the same when it is read again.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "faults/plan.h"

namespace weft::faults {
namespace {

void Run(const std::string& text) {
  const auto plan = Parse(text);
  if (!plan.ok()) {
    WEFT_CHECK(plan.error().position <= text.size() && !plan.error().what.empty());
    const std::string refusal = plan.error().Describe(text);
    WEFT_CHECK(refusal.back() == '^' && refusal.size() < 4000);
    return;
  }
  std::string again;
  for (const Fault& fault : plan->faults) again += fault.text + "\n";
  if (plan->seed) again += "seed=" + std::to_string(*plan->seed);
  const auto second = Parse(again);
  WEFT_CHECK(second.ok() && second->faults.size() == plan->faults.size() && second->seed == plan->seed);
  for (size_t i = 0; i < plan->faults.size(); ++i) {
    const Fault &a = plan->faults[i], &b = second->faults[i];
    WEFT_CHECK(a.kind == b.kind && a.given == b.given && a.time == b.time && a.after == b.after && a.nth == b.nth &&
               a.after_bytes == b.after_bytes && a.qp == b.qp && a.probability == b.probability);
    WEFT_CHECK(a.probability >= 0 && a.probability <= 1 && a.time.count() >= 0 && a.after.count() >= 0 && a.lasts.count() >= 0);
    WEFT_CHECK(a.jitter <= a.time && (a.given & ~InfoOf(a.kind).takes) == 0 && (InfoOf(a.kind).needs & ~a.given) == 0);
  }
}

}  // namespace
}  // namespace weft::faults

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::faults::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
