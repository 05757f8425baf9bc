// What a rank or a launcher sends: wherever it is cut, the same messages come out, each is written back so that it reads the
// same, and nothing follows an error.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "pmi/wire/message.h"

namespace weft::pmi {
namespace {

struct Outcome {
  std::vector<Message> messages;
  std::string error;
};

Outcome Read(std::string_view bytes, size_t step) {
  MessageReader reader;
  Outcome outcome;
  for (size_t at = 0; at < bytes.size(); at += step) {
    reader.Append(bytes.substr(at, step));
    while (auto message = reader.Next()) outcome.messages.push_back(*std::move(message));
  }
  outcome.error = reader.error();
  return outcome;
}

bool Same(const Message& a, const Message& b) {
  return a.command == b.command && a.multi_line == b.multi_line && a.fields == b.fields;
}

}  // namespace
}  // namespace weft::pmi

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using weft::pmi::Message;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = weft::pmi::Read(bytes, size + 1);
  const auto single = weft::pmi::Read(bytes, 1);
  WEFT_CHECK(whole.error == single.error && whole.messages.size() == single.messages.size());
  for (size_t i = 0; i < whole.messages.size(); ++i) {
    const Message& message = whole.messages[i];
    WEFT_CHECK(weft::pmi::Same(message, single.messages[i]));
    const auto again = weft::pmi::Read(message.Serialize(), 7);
    WEFT_CHECK(again.error.empty() && again.messages.size() == 1 && weft::pmi::Same(message, again.messages[0]));
    message.FindInt("rc");
  }
  return 0;
}
