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

// A received answer. `thread` tells which request it belongs to; if the asker has only one thread, it belongs to the
// oldest request of its kind.
struct Answered {
  std::string command;  // the command on the wire
  std::string thread;
  Answer answer;
  std::string text;  // as received, made printable: for messages to the user
};

// Combines several function objects to visit a Request.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

// std::visit without its exception for a variant without a value, which a Request never is.
template <size_t I = 0, class Visitor>
auto Visit(Visitor&& visitor, const Request& request) -> decltype(visitor(*std::get_if<0>(&request))) {
  if constexpr (I + 1 < std::variant_size_v<Request>) {
    if (request.index() != I) return Visit<I + 1>(visitor, request);
  }
  return visitor(*std::get_if<I>(&request));
}

// One version of PMI: translates the bytes of one connection into requests and answers, and back. For both sides: a
// launcher reads requests, a rank reads answers. No I/O. The first error is final: later data cannot be trusted.
class Dialect {
 public:
  enum class Side { kLauncher, kRank };

  // Limits of one request, so that a peer cannot make the other side's memory grow without bound.
  static constexpr size_t kMostCommands = 1024;     // programs of one spawn
  static constexpr size_t kMostSpawnBytes = 4 << 20;  // in all of its words
  static constexpr int kMostProcesses = 65536;
  static constexpr size_t kMostPairs = 65536;       // in kvs-putall and kvs-getall

  // PMI version 1 (text_dialect.cc) and 2 (counted_dialect.cc).
  static std::unique_ptr<Dialect> Text(Side side);
  static std::unique_ptr<Dialect> Counted(Side side);
  virtual ~Dialect() = default;

  virtual int version() const = 0;
  virtual void Append(std::string_view bytes) = 0;
  // Bytes that belong to no returned message: the bytes after Init are for the dialect that it selects.
  virtual std::string TakeRest() = 0;
  // describes the received data, as the end of "it sent ..."; empty: no error
  const std::string& error() const { return error_; }

  // The launcher's side. nullopt: more bytes are needed, or error().
  virtual std::optional<Question> NextQuestion() = 0;
  // The complete wire form, which consists of several messages for some answers. Empty: the request has no answer.
  virtual std::string Write(const Question& question, const Answer& answer) const = 0;
  virtual std::string Write(const Announcement& announcement) const = 0;

  // The rank's side. Empty: this version has no form for the request.
  virtual std::string Write(const Question& question) const = 0;
  // The next answer. An announcement is returned as an answer with its command and reason.
  virtual std::optional<Answered> NextAnswer() = 0;
  // The command of the message that answers, such as "kvs-get-response"; empty: there is no answer.
  virtual std::string AnswerTo(const Request& request) const = 0;

 protected:
  static bool IsAnnouncement(std::string_view command) { return command == "abort" || command == "checkpoint"; }
  // The ranks in a "died"; empty if it contains none.
  static std::vector<int> DeadIn(const Message& message) {
    const std::string* text = message.Find("ranks");
    return text == nullptr ? std::vector<int>() : ParseNumberList(*text, Announcement::kMostRanks).value_or(std::vector<int>());
  }

  std::string error_;
};

}  // namespace weft::pmi

#endif  // PMI_WIRE_DIALECT_H_
