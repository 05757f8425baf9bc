// Messages of PMI-2: wherever the stream is cut, the same come out, each is written back so that it reads the same, and nothing
// follows an error.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "pmi/wire/counted.h"

namespace weft::pmi {
namespace {

struct Outcome {
  std::vector<Message> messages;
  std::string error;
};

Outcome Read(std::string_view bytes, size_t step) {
  CountedReader reader;
  Outcome outcome;
  for (size_t at = 0; at < bytes.size(); at += step) {
    reader.Append(bytes.substr(at, step));
    while (auto message = reader.Next()) outcome.messages.push_back(*std::move(message));
  }
  outcome.error = reader.error();
  return outcome;
}

bool Same(const Message& a, const Message& b) { return a.command == b.command && a.fields == b.fields; }

}  // namespace
}  // namespace weft::pmi

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::pmi;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Outcome whole = Read(bytes, size + 1);
  const Outcome single = Read(bytes, 1);
  WEFT_CHECK(whole.error == single.error && whole.messages.size() == single.messages.size());
  for (size_t i = 0; i < whole.messages.size(); ++i) {
    const Message& message = whole.messages[i];
    WEFT_CHECK(Same(message, single.messages[i]));
    const bool goes_on = !message.fields.empty() && message.fields.back().first == "concat";
    if (goes_on || message.command == "concat") continue;  // what a continuation left there
    const Outcome again = Read(SerializeCounted(message), 7);
    WEFT_CHECK(again.error.empty() && again.messages.size() == 1 && Same(message, again.messages[0]));
  }
  return 0;
}
