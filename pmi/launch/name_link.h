#ifndef PMI_LAUNCH_NAME_LINK_H_
#define PMI_LAUNCH_NAME_LINK_H_

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "pmi/error.h"
#include "pmi/launch/connection.h"
#include "pmi/wire/dialect.h"

namespace weft::pmi {

// mpiexec's connection to a name server: PMI-2 after a proof of the secret. Owns the descriptor, which is non-blocking
// once it is connected.
class NameLink {
 public:
  // Connects to the server of the file `path`. Waits for it, a few seconds at most.
  static Result<std::unique_ptr<NameLink>, PmiError> Connect(const std::string& path);
  ~NameLink();
  NameLink(const NameLink&) = delete;
  NameLink& operator=(const NameLink&) = delete;

  int fd() const { return fd_; }
  bool wants_to_write() const { return !out_.empty(); }
  void Ask(const Request& request, const std::string& ticket) { out_.Add(dialect_->Write({request, ticket})); }
  // Both return false if the server is gone.
  bool Write() { return out_.WriteTo(fd_) == 0; }
  bool Read();
  // The next answer; its `thread` is the ticket.
  std::optional<Answered> Next() { return dialect_->NextAnswer(); }

 private:
  explicit NameLink(int fd) : fd_(fd), dialect_(Dialect::Text(Dialect::Side::kRank)) {}
  // Sends a request and waits for the answer. Call it while the descriptor still blocks.
  Result<Answer, PmiError> Await(const Request& request);
  std::string Greet(const std::string& secret);

  const int fd_;
  std::unique_ptr<Dialect> dialect_;
  Outbox out_;
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_NAME_LINK_H_
