#include "impi/tester/board.h"

#include <array>
#include <cstdio>

namespace weft::impi::tester {
namespace {

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\') {
      quoted += character;
      continue;
    }
    std::array<char, 8> escaped;
    std::snprintf(escaped.data(), escaped.size(), "\\u%04x", byte);
    quoted += escaped.data();
  }
  return quoted + "\"";
}

const char* NameOf(Board::State state) {
  switch (state) {
    case Board::State::kWaits:
      return "waits";
    case Board::State::kRuns:
      return "runs";
    case Board::State::kPassed:
      return "passed";
    case Board::State::kFailed:
      break;
  }
  return "failed";
}

std::string JsonOf(const Board::Entry& entry) {
  std::string json = "{\"file\":" + Quoted(entry.file) + ",\"clause\":" + Quoted(entry.clause) +
                     ",\"about\":" + Quoted(entry.about) + ",\"steps\":" + std::to_string(entry.steps) +
                     ",\"done\":" + std::to_string(entry.done) + ",\"state\":\"" + NameOf(entry.state) + "\"" +
                     ",\"milliseconds\":" + std::to_string(entry.verdict.took.count());
  if (entry.state == Board::State::kFailed) {
    const Play::Failure& failure = entry.verdict.failure;
    json += ",\"line\":" + std::to_string(failure.line) + ",\"step\":" + Quoted(failure.step) +
            ",\"reason\":" + Quoted(failure.reason) + ",\"trace\":[";
    for (size_t i = 0; i < entry.verdict.trace.size(); ++i)
      json += (i == 0 ? "" : ",") + Quoted(entry.verdict.trace[i]);
    json += "],\"output\":" + Quoted(entry.verdict.output);
  }
  return json + "}";
}

}  // namespace

Board::Board(const std::vector<Script>& scripts) {
  for (const Script& script : scripts) {
    Entry entry;
    entry.file = script.file;
    entry.clause = script.clause;
    entry.about = script.about;
    entry.steps = script.steps.size();
    entries.push_back(std::move(entry));
  }
}

void Board::Clear() {
  for (Entry& entry : entries) {
    entry.done = 0;
    entry.state = State::kWaits;
    entry.verdict = {};
  }
}

std::string JsonOf(const Board& board) {
  std::string json = std::string("{\"running\":") + (board.running ? "true" : "false") +
                     ",\"runs\":" + std::to_string(board.runs) + ",\"entries\":[";
  for (size_t i = 0; i < board.entries.size(); ++i) json += (i == 0 ? "" : ",") + JsonOf(board.entries[i]);
  return json + "]}";
}

}  // namespace weft::impi::tester
