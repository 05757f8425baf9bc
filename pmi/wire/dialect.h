#ifndef PMI_WIRE_DIALECT_H_
#define PMI_WIRE_DIALECT_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "pmi/wire/meaning.h"
#include "pmi/wire/message.h"

namespace weft::pmi {

// An answer as it comes in. Which request it belongs to: by `thread` where the asker has several, else the oldest of its kind.
struct Answered {
  std::string command;  // the word of the wire
  std::string thread;
  Answer answer;
  std::string text;  // as it came, printable: for messages to the user
};

// Puts several types of function together to visit a Request.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

// std::visit without its exception for a variant that holds nothing, which no request is.
template <size_t I = 0, class Visitor>
auto Visit(Visitor&& visitor, const Request& request) -> decltype(visitor(*std::get_if<0>(&request))) {
  if constexpr (I + 1 < std::variant_size_v<Request>) {
    if (request.index() != I) return Visit<I + 1>(visitor, request);
  }
  return visitor(*std::get_if<I>(&request));
}

// One version of PMI: turns the bytes of one connection into meaning, and meaning into bytes. Either side's: a launcher reads
// questions, a rank answers. No I/O. The first error is final: what follows cannot be trusted.
class Dialect {
 public:
  enum class Side { kLauncher, kRank };

  // Limits on what one request may be made of, so that no peer makes the other grow without bound.
  static constexpr size_t kMostCommands = 1024;     // programs of one spawn
  static constexpr size_t kMostSpawnBytes = 4 << 20;  // all of its words
  static constexpr int kMostProcesses = 65536;
  static constexpr size_t kMostPairs = 65536;       // of kvs-putall and kvs-getall

  // PMI version 1 (text_dialect.cc) and 2 (counted_dialect.cc).
  static std::unique_ptr<Dialect> Text(Side side);
  static std::unique_ptr<Dialect> Counted(Side side);
  virtual ~Dialect() = default;

  virtual int version() const = 0;
  virtual void Append(std::string_view bytes) = 0;
  // Bytes that belong to no message that was given out yet: what follows Init is for the dialect that it names.
  virtual std::string TakeRest() = 0;
  const std::string& error() const { return error_; }  // what came, as the end of "it sent ..."; empty: none

  // The launcher's side. Empty: more bytes are needed, or error().
  virtual std::optional<Question> NextQuestion() = 0;
  // The whole wire form: several messages for some. Empty for what has no answer.
  virtual std::string Write(const Question& question, const Answer& answer) const = 0;
  virtual std::string Write(const Announcement& announcement) const = 0;

  // The rank's side. Empty from Write(): this version has no words for it.
  virtual std::string Write(const Question& question) const = 0;
  // An announcement is one with its command, and why.
  virtual std::optional<Answered> NextAnswer() = 0;
  // The command of the message that answers, "kvs-get-response"; empty where there is none.
  virtual std::string AnswerTo(const Request& request) const = 0;

 protected:
  static bool IsAnnouncement(std::string_view command) { return command == "abort" || command == "checkpoint"; }
  // The ranks of a "died"; none where it names no ranks.
  static std::vector<int> DeadIn(const Message& message) {
    const std::string* text = message.Find("ranks");
    return text == nullptr ? std::vector<int>() : ParseNumberList(*text, Announcement::kMostRanks).value_or(std::vector<int>());
  }

  std::string error_;
};

}  // namespace weft::pmi

#endif  // PMI_WIRE_DIALECT_H_
