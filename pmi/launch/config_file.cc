#include "pmi/launch/config_file.h"

#include <cstring>
#include <utility>

#include "pmi/named_file.h"

namespace weft::pmi {
namespace {

// Goes through the text once. wordexp(3) would replace variables and patterns, and takes neither comments nor lines.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  // Why the text is wrong, or empty; line() says where.
  std::string Read() {
    while (at_ < text_.size()) {
      if (std::string problem = Take(text_[at_++]); !problem.empty()) return problem;
    }
    EndLine();
    return {};
  }
  int line() const { return line_; }
  std::vector<ConfigLine> Lines() { return std::move(lines_); }

 private:
  std::string Take(char c) {
    switch (c) {
      case '\n':
        EndLine();
        ++line_;
        return {};
      case ' ':
      case '\t':
      case '\r':
        EndWord();
        return {};
      case '\'':
      case '"':
        return Quoted(c);
      case '\\':
        return Escaped();
      case '\0':
        return "a zero byte; is it a text file?";
      case '#':
        if (in_word_) break;
        at_ = std::min(text_.find('\n', at_), text_.size());
        return {};
    }
    Add(c);
    return {};
  }

  // A backslash was taken.
  std::string Escaped() {
    if (at_ == text_.size()) return "the file ends with a backslash";
    const char c = text_[at_++];
    if (c == '\n') {
      ++line_;
    } else {
      Add(c);
    }
    return {};
  }

  // A quote was taken. Within "..." a backslash is for what it would be for in a shell.
  std::string Quoted(char quote) {
    in_word_ = true;
    while (at_ < text_.size() && text_[at_] != '\n') {
      const char c = text_[at_++];
      if (c == quote) return {};
      if (c == '\0') return Take(c);
      if (quote == '"' && c == '\\' && at_ < text_.size() && std::strchr("\"\\$`", text_[at_]) != nullptr &&
          text_[at_] != '\0') {
        Add(text_[at_++]);
      } else {
        Add(c);
      }
    }
    return std::string("a quote ") + quote + " is not closed on its line";
  }

  void Add(char c) {
    in_word_ = true;
    word_ += c;
  }

  void EndWord() {
    if (!in_word_) return;
    if (words_.words.empty()) words_.number = line_;
    words_.words.push_back(std::exchange(word_, {}));
    in_word_ = false;
  }

  void EndLine() {
    EndWord();
    if (!words_.words.empty()) lines_.push_back(std::exchange(words_, {}));
  }

  const std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  bool in_word_ = false;  // also in one that is empty so far: ''
  std::string word_;
  ConfigLine words_;
  std::vector<ConfigLine> lines_;
};

}  // namespace

Result<std::vector<ConfigLine>, PmiError> ParseConfigFile(std::string_view text, const std::string& name) {
  Reader reader(text);
  if (const std::string problem = reader.Read(); !problem.empty()) {
    return PmiError{name + ", line " + std::to_string(reader.line()) + ": " + problem};
  }
  std::vector<ConfigLine> lines = reader.Lines();
  if (lines.empty()) return PmiError{name + " names no program"};
  return lines;
}

Result<std::vector<ConfigLine>, PmiError> ReadConfigFile(const std::string& name) {
  const auto file = ReadNamedFile(name, name, kLargestConfigFile, Accepts::kFilesOrPipes);
  if (!file) return file.error();
  return ParseConfigFile(file->text, name);
}

}  // namespace weft::pmi
