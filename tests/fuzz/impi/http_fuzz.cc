// What comes at the port of weft-impi-test -serve: the request comes out the same wherever the stream is cut, and
// nothing outside of the secret folder starts the scripts.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "impi/tester/page.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::impi::tester;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  HttpReader whole, pieces;
  bool good = true;
  const bool all = whole.Append(text);
  for (size_t at = 0; at < size && good; ++at) good = pieces.Append(text.substr(at, 1));
  WEFT_CHECK(all == good || size >= HttpReader::kMost);
  if (!whole.request()) return 0;
  WEFT_CHECK(pieces.request() && pieces.request()->target == whole.request()->target &&
             pieces.request()->method == whole.request()->method);
  const PageAnswer answer = AnswerFor(*whole.request(), "secret", Board({}));
  WEFT_CHECK(answer.text.starts_with("HTTP/1.1 ") &&
             answer.starts == (whole.request()->method == "POST" && whole.request()->target == "/secret/start"));
  return 0;
}
