// What an agent tells a process, and what a process says first: they are accepted or explained. The first byte is the rank.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "impi/entry/hello.h"
#include "impi/entry/welcome.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::impi;
  if (size == 0) return 0;
  const int32_t rank = data[0];
  const weft::ByteSpan bytes(data + 1, size - 1);
  if (bytes.size() >= Hello::kSize) {
    const auto hello = Hello::Parse(bytes.first(Hello::kSize));
    if (hello.ok()) WEFT_CHECK(std::ranges::equal(hello->Serialize(), bytes.first(Hello::kSize)));
  }
  const auto welcome = Welcome::Parse(bytes, rank);
  if (welcome.ok()) {
    WEFT_CHECK(welcome->job.host(welcome->job.process(welcome->self).host).client == welcome->job.self());
    WEFT_CHECK(welcome->own.size() == welcome->job.ProcessesOf(welcome->job.self()).size());
  } else {
    WEFT_CHECK(!welcome.error().empty());
  }
  AnswerReader reader;
  size_t at = 0;
  while (reader.Wants() != 0 && at < bytes.size()) {
    const size_t count = std::min(reader.Wants(), bytes.size() - at);
    reader.Append(bytes.subspan(at, count));
    at += count;
  }
  if (reader.Wants() == 0) (void)reader.Take(rank).ok();
  return 0;
}
