// What ranks said to Slurm (tests/slurm/captures) and to hydra (tests/mpi_launch/captures), and heard, read by both dialects, whole and byte by byte.
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

constexpr char kOfSlurm[] = "tests/slurm/captures", kOfHydra[] = "tests/mpi_launch/captures";

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
  std::string questions, answers;  // of the rank, of its launcher
};

std::map<std::string, Conversation> ReadAll(const char* directory) {
  std::map<std::string, Conversation> all;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (name.find("-rank") == std::string::npos) continue;
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

void ExpectUnderstood(const std::map<std::string, Conversation>& all, const std::set<std::string>& mistaken) {
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

TEST(PmiCaptures, BothSidesOfSlurmsConversationsAreUnderstood) {
  const auto all = ReadAll(kOfSlurm);
  ASSERT_GE(all.size(), 15u);
  // Of ranks that say what nobody knows, or ask for versions that there are not.
  ExpectUnderstood(all, {"pmi1_unknown-rank0.txt", "pmi1_version-rank0.txt", "pmi2_version-rank0.txt"});
}

TEST(PmiCaptures, BothSidesOfHydrasConversationsAreUnderstood) {
  const auto all = ReadAll(kOfHydra);
  ASSERT_GE(all.size(), 11u);
  ExpectUnderstood(all, {});
}

}  // namespace
}  // namespace weft::pmi
