// What a rank or a launcher makes of bytes, in both versions of PMI (the first byte): every request that is understood is written so
// that it is understood again as the same, wherever the stream was cut.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "pmi/wire/dialect.h"

namespace weft::pmi {
namespace {

std::unique_ptr<Dialect> Make(bool counted, Dialect::Side side) { return counted ? Dialect::Counted(side) : Dialect::Text(side); }

struct Outcome {
  std::vector<Question> questions;
  std::string error;
};

Outcome Read(bool counted, std::string_view bytes, size_t step) {
  const auto dialect = Make(counted, Dialect::Side::kLauncher);
  Outcome outcome;
  for (size_t at = 0; at < bytes.size(); at += step) {
    dialect->Append(bytes.substr(at, step));
    while (auto question = dialect->NextQuestion()) outcome.questions.push_back(*std::move(question));
  }
  outcome.error = dialect->error();
  return outcome;
}

void ReadAnswers(bool counted, std::string_view bytes) {
  const auto dialect = Make(counted, Dialect::Side::kRank);
  dialect->Append(bytes);
  while (dialect->NextAnswer()) {
  }
}

}  // namespace
}  // namespace weft::pmi

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::pmi;
  if (size == 0) return 0;
  const bool counted = data[0] % 2 != 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const Outcome whole = Read(counted, bytes, size);
  const Outcome single = Read(counted, bytes, 1);
  WEFT_CHECK(whole.error == single.error && whole.questions.size() == single.questions.size());
  for (size_t i = 0; i < whole.questions.size(); ++i) {
    const Question& question = whole.questions[i];
    WEFT_CHECK(question.request == single.questions[i].request && question.thread == single.questions[i].thread);
    const auto launcher = Make(counted, Dialect::Side::kLauncher);
    (void)launcher->Write(question, {.code = 1, .why = "a b;c", .value = "v", .number = 3, .values = {{"k", "v"}}, .errors = {0, 1}});
  }
  ReadAnswers(counted, bytes);
  return 0;
}
