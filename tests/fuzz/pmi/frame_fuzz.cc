// What a proxy or mpiexec receives: frames come out the same wherever the stream is cut, and what parses is written back the
// same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "pmi/launch/frame.h"

namespace weft::pmi {
namespace {

std::string ReadAll(std::string_view bytes, size_t step) {
  FrameReader reader;
  std::string again;
  for (size_t at = 0; at < bytes.size(); at += step) {
    reader.Append(bytes.substr(at, step));
    while (const auto frame = reader.Next()) again += frame->Serialize();
  }
  return again;
}

}  // namespace
}  // namespace weft::pmi

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::pmi;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = ReadAll(bytes, size + 1);
  WEFT_CHECK(bytes.starts_with(whole));
  WEFT_CHECK(ReadAll(bytes, 1) == whole);
  if (const auto order = StartOrder::Parse(bytes)) WEFT_CHECK(order->Serialize() == bytes);
  if (const auto values = ParseValues(bytes)) WEFT_CHECK(SerializeValues(*values) == bytes);
  ExitReport::Parse(std::string(bytes));
  return 0;
}
