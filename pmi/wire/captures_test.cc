// What ranks and Slurm said to each other (tests/slurm/captures), read by both dialects, whole and byte by byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "pmi/wire/dialect.h"

namespace weft::pmi {
namespace {

constexpr char kDirectory[] = "tests/slurm/captures";

// "\\n", "\\\\" and "\\xHH" as the bytes that they stand for.
std::string Bytes(const std::string& text) {
  std::string bytes;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\') {
      bytes += text[at];
    } else if (text[++at] == 'x') {
      bytes += static_cast<char>(std::stoi(text.substr(at + 1, 2), nullptr, 16));
      at += 2;
    } else {
      bytes += text[at] == 'n' ? '\n' : '\\';
    }
  }
  return bytes;
}

struct Conversation {
  std::string questions, answers;  // of the rank, of Slurm
};

std::map<std::string, Conversation> ReadAll() {
  std::map<std::string, Conversation> all;
  for (const auto& entry : std::filesystem::directory_iterator(kDirectory)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("pmi1_") && !name.starts_with("pmi2_") && !name.starts_with("libpmi2-")) continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("> ")) all[name].questions += Bytes(line.substr(2));
      if (line.starts_with("< ")) all[name].answers += Bytes(line.substr(2));
    }
  }
  return all;
}

// The version that `init` agreed on, and the dialect for what follows it.
std::unique_ptr<Dialect> Follow(const std::string& bytes, size_t step, Dialect::Side side, size_t* messages, std::string* error) {
  auto dialect = Dialect::Text(side);
  bool agreed = false;
  for (size_t at = 0; at < bytes.size(); at += step) {
    dialect->Append(std::string_view(bytes).substr(at, step));
    for (;;) {
      bool two = false;
      if (side == Dialect::Side::kLauncher) {
        const auto question = dialect->NextQuestion();
        if (!question) break;
        const auto* init = std::get_if<ask::Init>(&question->request);
        two = init != nullptr && init->version == 2;
      } else {
        const auto answered = dialect->NextAnswer();
        if (!answered) break;
        two = answered->command == "response_to_init" && answered->answer.number == 2;
      }
      ++*messages;
      if (!two || agreed) continue;
      agreed = true;
      auto counted = Dialect::Counted(side);
      counted->Append(dialect->TakeRest());
      dialect = std::move(counted);
    }
  }
  *error = dialect->error();
  return dialect;
}

TEST(PmiCaptures, BothSidesOfSlurmsConversationsAreUnderstood) {
  // Of ranks that say what nobody knows, or ask for versions that there are not.
  const std::set<std::string> mistaken = {"pmi1_unknown-rank0.txt", "pmi1_version-rank0.txt", "pmi2_version-rank0.txt"};
  const auto all = ReadAll();
  ASSERT_GE(all.size(), 15u);
  for (const auto& [name, conversation] : all) {
    for (const size_t step : {size_t{1}, size_t{100000}}) {
      std::string error;
      size_t questions = 0, answers = 0;
      Follow(conversation.answers, step, Dialect::Side::kRank, &answers, &error);
      EXPECT_EQ(error, "") << name;
      if (mistaken.contains(name)) continue;
      Follow(conversation.questions, step, Dialect::Side::kLauncher, &questions, &error);
      EXPECT_EQ(error, "") << name;
      EXPECT_GE(questions, 2u) << name;
      EXPECT_GE(answers, 2u) << name;
    }
  }
}

}  // namespace
}  // namespace weft::pmi
