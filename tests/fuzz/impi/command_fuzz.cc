// What a server or a client of an IMPI job receives: commands come out the same wherever the stream is cut, and are written back the same.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "impi/wire/command.h"

namespace weft::impi {
namespace {

Bytes ReadAll(ByteSpan bytes, size_t step) {
  CommandReader reader(1000);
  Bytes again;
  for (size_t at = 0; at < bytes.size(); at += step) {
    reader.Append(bytes.subspan(at, std::min(step, bytes.size() - at)));
    while (const auto command = reader.NextCommand()) {
      const Bytes one = command->Serialize();
      again.insert(again.end(), one.begin(), one.end());
      if (const auto said = Collected::FromClient(*command)) WEFT_CHECK(said->ToServer().payload == command->payload);
      if (const auto told = Collected::FromServer(*command)) WEFT_CHECK(told->ToClient().payload == command->payload);
    }
  }
  return again;
}

}  // namespace
}  // namespace weft::impi

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::impi;
  const weft::ByteSpan bytes(data, size);
  const Bytes whole = ReadAll(bytes, size + 1);
  WEFT_CHECK(whole.size() <= size && std::equal(whole.begin(), whole.end(), data));
  WEFT_CHECK(ReadAll(bytes, 1) == whole);
  return 0;
}
